// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/memfit/memfit/api/v1alpha1"
)

func named(namespace, name string, selector *metav1.LabelSelector) Profile {
	kind := KindNamespaced
	if namespace == "" {
		kind = KindCluster
	}
	return Profile{
		Ref: v1alpha1.ProfileReference{Kind: kind, Name: name}, Namespace: namespace,
		Spec: &v1alpha1.MemoryProfileSpec{Selector: selector},
	}
}

func labeled(pairs ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		s.MatchLabels[pairs[i]] = pairs[i+1]
	}
	return s
}

func use(profile string) map[string]string {
	return map[string]string{v1alpha1.ProfileAnnotation: profile}
}

func optOut(value string) map[string]string {
	return map[string]string{v1alpha1.InjectAnnotation: value}
}

func TestMatch(t *testing.T) {
	newer := named("shop", "tier-a", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"front", "edge"}},
	}})
	newer.Created = time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	index := NewIndex([]Profile{
		named("shop", "web", labeled("app", "web")),
		named("shop", "named-only", nil),
		named("shop", "shared", nil),
		newer,
		named("shop", "tier-b", labeled("tier", "edge")),
		named(
			"shop", "broken",
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Like"}}},
		),
		named("all", "everything", &metav1.LabelSelector{}),
		named("", "shared", nil),
		named("", "cluster-web", labeled("app", "web")),
		named("", "cluster-batch", labeled("kind", "batch", "app", "job")),
	})

	for name, tc := range map[string]struct {
		subject     Subject
		wantProfile string
		wantProblem Problem
		wantWhy     string
	}{
		"nobody asks": {subject: Subject{Namespace: "shop", PodLabels: map[string]string{"app": "db"}}},
		"pod template names it": {
			subject: Subject{
				Namespace: "shop", PodAnnotations: use("named-only"), WorkloadAnnotations: use("web"),
				NamespaceAnnotations: use("shared"),
			},
			wantProfile: "MemoryProfile shop/named-only", wantWhy: "annotation memfit.dev/profile on the pod template",
		},
		"workload wins over namespace, and is called what it is": {
			subject: Subject{
				Namespace: "shop", WorkloadKind: "Deployment", WorkloadAnnotations: use("web"), NamespaceAnnotations: use("shared"),
			},
			wantProfile: "MemoryProfile shop/web", wantWhy: "annotation memfit.dev/profile on the Deployment",
		},
		"namespace names it": {
			subject:     Subject{Namespace: "shop", NamespaceAnnotations: use("named-only")},
			wantProfile: "MemoryProfile shop/named-only", wantWhy: "on the Namespace",
		},
		"an annotation wins over a selector": {
			subject: Subject{
				Namespace: "shop", PodLabels: map[string]string{"app": "web"}, NamespaceAnnotations: use("named-only"),
			},
			wantProfile: "MemoryProfile shop/named-only",
		},
		"an empty annotation asks for nothing": {
			subject:     Subject{Namespace: "shop", PodLabels: map[string]string{"app": "web"}, PodAnnotations: use(" ")},
			wantProfile: "MemoryProfile shop/web", wantWhy: "selector app=web",
		},
		"namespaced wins over cluster by name": {
			subject: Subject{Namespace: "shop", PodAnnotations: use("shared")}, wantProfile: "MemoryProfile shop/shared",
		},
		"cluster profile by name": {
			subject: Subject{Namespace: "other", PodAnnotations: use("shared")}, wantProfile: "ClusterMemoryProfile shared",
		},
		"namespaced wins over cluster by selector": {
			subject:     Subject{Namespace: "shop", PodLabels: map[string]string{"app": "web"}},
			wantProfile: "MemoryProfile shop/web",
		},
		"cluster profile by selector": {
			subject:     Subject{Namespace: "other", PodLabels: map[string]string{"app": "web"}},
			wantProfile: "ClusterMemoryProfile cluster-web",
		},
		"cluster selector needs all its labels": {
			subject: Subject{Namespace: "other", PodLabels: map[string]string{"app": "job"}},
		},
		"a profile of another namespace is none of ours": {
			subject: Subject{Namespace: "other", PodAnnotations: use("named-only")}, wantProblem: NotFound,
			wantWhy: `names "named-only", but there is no MemoryProfile of that name in namespace "other" and no ClusterMemoryProfile`,
		},
		"expression with several values": {
			subject:     Subject{Namespace: "shop", PodLabels: map[string]string{"tier": "front"}},
			wantProfile: "MemoryProfile shop/tier-a",
		},
		"two selectors: the older one takes effect, both are named": {
			subject: Subject{Namespace: "shop", PodLabels: map[string]string{"tier": "edge"}}, wantProblem: Ambiguous,
			wantProfile: "MemoryProfile shop/tier-b",
			wantWhy: "MemoryProfile shop/tier-a (selector tier in (edge,front)) and MemoryProfile shop/tier-b (selector " +
				"tier=edge) both choose this pod, and the older one, MemoryProfile shop/tier-b, takes effect",
		},
		"an annotation settles an ambiguity": {
			subject: Subject{
				Namespace: "shop", PodLabels: map[string]string{"tier": "edge"}, WorkloadAnnotations: use("tier-b"),
			}, wantProfile: "MemoryProfile shop/tier-b",
		},
		"an empty selector chooses every pod of its namespace": {
			subject: Subject{Namespace: "all"}, wantProfile: "MemoryProfile all/everything", wantWhy: "selector {} (every pod)",
		},
		"opted out on the pod template": {
			subject:     Subject{Namespace: "shop", PodAnnotations: optOut("false"), NamespaceAnnotations: use("web")},
			wantProblem: Excluded,
			wantWhy:     `excluded by annotation memfit.dev/inject: "false" on the pod template`,
		},
		"opted out on the workload": {
			subject:     Subject{Namespace: "shop", PodAnnotations: use("web"), WorkloadAnnotations: optOut("False")},
			wantProblem: Excluded, wantWhy: "on the workload",
		},
		"opted out on the namespace": {
			subject:     Subject{Namespace: "shop", PodAnnotations: use("web"), NamespaceAnnotations: optOut("0")},
			wantProblem: Excluded, wantWhy: "on the Namespace",
		},
		"inject: true opts nobody out": {
			subject: Subject{
				Namespace:      "shop",
				PodAnnotations: map[string]string{v1alpha1.InjectAnnotation: "true", v1alpha1.ProfileAnnotation: "web"},
			}, wantProfile: "MemoryProfile shop/web",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := index.Match(tc.subject)
			gotProfile := ""
			if got.Profile != nil {
				gotProfile = got.Profile.String()
			}
			if gotProfile != tc.wantProfile || got.Problem != tc.wantProblem {
				t.Errorf(
					"profile %q problem %q, want %q %q (why: %s)", gotProfile, got.Problem, tc.wantProfile, tc.wantProblem, got.Why,
				)
			}
			if !strings.Contains(got.Why, tc.wantWhy) {
				t.Errorf("why %q, want it to contain %q", got.Why, tc.wantWhy)
			}
		})
	}
}

func TestNilAndEmptyIndexGovernNothing(t *testing.T) {
	for name, index := range map[string]*Index{"nil": nil, "zero": {}, "no profiles": NewIndex(nil)} {
		s := Subject{Namespace: "shop", PodLabels: map[string]string{"app": "web"}}
		if got := index.Match(s); !reflect.DeepEqual(got, Match{}) {
			t.Errorf("%s index matches %+v, want nothing", name, got)
		}
		s.PodAnnotations = use("web")
		if got := index.Match(s); got.Problem != NotFound || got.Profile != nil {
			t.Errorf("%s index matches %+v, want NotFound", name, got)
		}
	}
}

// manyProfiles are 10k: one namespace holds half of them, all sharing one label, and a thousand belong to the cluster.
func manyProfiles() []Profile {
	out := make([]Profile, 0, 10_000)
	for i := range 5_000 {
		out = append(out, named("shop", fmt.Sprintf("p%d", i), labeled("app", fmt.Sprintf("app%d", i), "team", "shop")))
	}
	for i := range 1_000 {
		out = append(out, named("", fmt.Sprintf("c%d", i), labeled("app", fmt.Sprintf("capp%d", i), "team", "shop")))
	}
	for i := range 4_000 {
		out = append(out, named(fmt.Sprintf("ns%d", i), "web", labeled("app", "web")))
	}
	return out
}

func busyPod(app string) Subject {
	return Subject{
		Namespace: "shop",
		PodLabels: map[string]string{
			"app": app, "team": "shop", "pod-template-hash": "6d4cf56db6", "version": "v1", "app.kubernetes.io/name": "web",
			"app.kubernetes.io/instance": "web-1", "app.kubernetes.io/managed-by": "Helm",
		},
		PodAnnotations: map[string]string{"prometheus.io/scrape": "true"},
	}
}

func TestMatchAmongTenThousandProfiles(t *testing.T) {
	index := NewIndex(manyProfiles())
	if got := index.Match(busyPod("app4999")); got.Profile == nil || got.Profile.Ref.Name != "p4999" {
		t.Errorf("got %+v, want profile p4999", got)
	}
	if got := index.Match(busyPod("capp7")); got.Profile == nil || got.Profile.String() != "ClusterMemoryProfile c7" {
		t.Errorf("got %+v, want ClusterMemoryProfile c7", got)
	}
	ungoverned := busyPod("db")
	if got := index.Match(ungoverned); !reflect.DeepEqual(got, Match{}) {
		t.Errorf("got %+v, want nothing", got)
	}
	// Nearly every pod of a cluster takes this path, for every CREATE: it must not feed the garbage collector.
	if allocs := testing.AllocsPerRun(100, func() { index.Match(ungoverned) }); allocs > 0 {
		t.Errorf("matching a pod that nobody governs allocates %v times, want 0", allocs)
	}
}

func BenchmarkMatch(b *testing.B) {
	index := NewIndex(manyProfiles())
	named := busyPod("db")
	named.WorkloadAnnotations = use("p77")
	for name, subject := range map[string]Subject{
		"ungoverned": busyPod("db"), "selector": busyPod("app77"), "annotation": named,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				index.Match(subject)
			}
		})
	}
}

func BenchmarkNewIndex10k(b *testing.B) {
	profiles := manyProfiles()
	b.ReportAllocs()
	for b.Loop() {
		NewIndex(profiles)
	}
}

// BenchmarkNewIndex10kInheriting: each profile takes from the cluster's defaults and its namespace's.
func BenchmarkNewIndex10kInheriting(b *testing.B) {
	bounds := &v1alpha1.Bounds{Min: quantity("64Mi"), Max: quantity("4Gi")}
	profiles := append(
		manyProfiles(),
		scope("base", 0, giving(v1alpha1.MemoryProfileSpec{Sizing: v1alpha1.SizingSpec{Limit: bounds, Request: bounds}})),
		scope("shop/base", 0, giving(v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{Reserve: quantity("64Mi")}})),
	)
	b.ReportAllocs()
	for b.Loop() {
		NewIndex(profiles)
	}
}

// TestNamespaceSelector: it limits what a ClusterMemoryProfile governs, by selector and by annotation, and gives no
// precedence.
func TestNamespaceSelector(t *testing.T) {
	cluster := func(name string, namespaces map[string]string, pods map[string]string) Profile {
		n := Profile{
			Ref: v1alpha1.ProfileReference{Kind: KindCluster, Name: name}, Spec: &v1alpha1.MemoryProfileSpec{},
		}
		if pods != nil {
			n.Spec.Selector = &metav1.LabelSelector{MatchLabels: pods}
		}
		if namespaces != nil {
			n.NamespaceSelector = &metav1.LabelSelector{MatchLabels: namespaces}
		}
		return n
	}
	web, shop := map[string]string{"app": "web"}, map[string]string{"team": "shop"}
	own := Profile{
		Ref: v1alpha1.ProfileReference{Kind: KindNamespaced, Name: "own"}, Namespace: "a",
		Spec: &v1alpha1.MemoryProfileSpec{Selector: &metav1.LabelSelector{MatchLabels: web}},
	}
	unreadable := cluster("unreadable", nil, web)
	unreadable.NamespaceSelector = &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Like"}},
	}
	for name, tc := range map[string]struct {
		profiles  []Profile
		namespace map[string]string
		asks      string
		want      string
		problem   Problem
		why       string
	}{
		"by selector": {
			profiles: []Profile{cluster("some", shop, web)}, namespace: shop, want: "some",
			why: "selector app=web, namespaceSelector team=shop",
		},
		"another namespace": {profiles: []Profile{cluster("some", shop, web)}, namespace: map[string]string{"team": "bank"}},
		"no labels":         {profiles: []Profile{cluster("some", shop, web)}},
		"empty selects every namespace": {
			profiles: []Profile{cluster("some", map[string]string{}, web)}, want: "some",
			why: "namespaceSelector {} (every namespace)",
		},
		"by annotation": {profiles: []Profile{cluster("some", shop, nil)}, namespace: shop, asks: "some", want: "some"},
		"by annotation in another namespace": {
			profiles: []Profile{cluster("some", shop, nil)}, asks: "some", problem: NotFound,
			why: "names ClusterMemoryProfile some, whose namespaceSelector (team=shop) does not match the labels of " +
				`namespace "a"`,
		},
		"no precedence over one for every namespace": {
			profiles: []Profile{cluster("some", shop, web), cluster("all", nil, web)}, namespace: shop, problem: Ambiguous,
			want: "all",
			why: "ClusterMemoryProfile all (selector app=web) and ClusterMemoryProfile some (selector app=web, " +
				"namespaceSelector team=shop) both choose this pod",
		},
		"the one for every namespace elsewhere": {
			profiles: []Profile{cluster("some", shop, web), cluster("all", nil, web)}, want: "all",
		},
		"the namespace's own wins": {profiles: []Profile{cluster("some", shop, web), own}, namespace: shop, want: "own"},
		"one that cannot be read":  {profiles: []Profile{unreadable}, namespace: shop},
	} {
		t.Run(name, func(t *testing.T) {
			got := NewIndex(tc.profiles).Match(Subject{
				Namespace: "a", PodLabels: web, NamespaceLabels: tc.namespace,
				PodAnnotations: map[string]string{v1alpha1.ProfileAnnotation: tc.asks},
			})
			found := ""
			if got.Profile != nil {
				found = got.Profile.Ref.Name
			}
			if found != tc.want || got.Problem != tc.problem || !strings.Contains(got.Why, tc.why) {
				t.Errorf("got %q, %q, %q; want %q, %q, %q", found, got.Problem, got.Why, tc.want, tc.problem, tc.why)
			}
		})
	}
	if wrong := unreadable.Invalid(); len(wrong) != 1 || !strings.Contains(wrong[0], "spec.namespaceSelector") {
		t.Errorf("unreadable: %q", wrong)
	}
}

func TestMaxUnavailable(t *testing.T) {
	for value, want := range map[intstr.IntOrString]int32{
		intstr.FromInt32(3): 3, intstr.FromString("25%"): 2, intstr.FromString("1%"): 1, intstr.FromString("100%"): 10,
		intstr.FromString("many"): 1, intstr.FromInt32(0): 1,
	} {
		if got := MaxUnavailable(&v1alpha1.DisruptionSpec{MaxUnavailable: &value}, 10); got != want {
			t.Errorf("%s of 10: got %d, want %d", value.String(), got, want)
		}
	}
}
