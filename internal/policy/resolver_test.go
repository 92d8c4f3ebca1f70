// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/build"
)

// TestRule: who governs a pod, from what the caches know of it.
func TestRule(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	deployment := build.Deployment("shop", "api", v1alpha1.ProfileAnnotation, "web", v1alpha1.PauseAnnotation, "true")
	deployment.UID = "deployment"
	set := build.ReplicaSet(deployment, "abc")
	set.UID = "set"
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		build.Namespace("shop"),
		build.Namespace("paused", v1alpha1.PauseAnnotation, "true", v1alpha1.ProfileAnnotation, "everything"),
		deployment, set,
		build.Profile("shop", "web", v1alpha1.RuntimeNodeJS),
		build.ClusterProfile(
			"everything", v1alpha1.RuntimeGo, func(s *v1alpha1.MemoryProfileSpec) { s.Selector = &metav1.LabelSelector{} },
		),
		build.Namespace("memfit-system"),
		build.Profile("memfit-system", "memfit", v1alpha1.RuntimeGo, func(s *v1alpha1.MemoryProfileSpec) {
			s.Tuning.Mode, s.Sizing.Mode = v1alpha1.TuningDisabled, v1alpha1.SizingRecommend
		}),
	).Build()
	resolver := policy.New(reader, nil).Excluding("kube-system", "memfit-system").WithOwnNamespace("memfit-system")
	select {
	case <-resolver.Built():
		t.Fatal("profiles are known before they were read")
	default:
	}
	if err := resolver.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-resolver.Built()

	for name, tc := range map[string]struct {
		pod     metav1.Object
		want    string // the profile; empty: nobody
		record  string
		problem profile.Problem
		paused  bool
	}{
		"by its own annotation": {
			pod: build.Pod("shop", "web").Annotate(v1alpha1.ProfileAnnotation, "web").Obj(), want: "MemoryProfile shop/web",
			record: "pod-web",
		},
		"by its Deployment's, paused": {
			pod: build.Pod("shop", "api-abc-1").OwnedBy(set, "apps/v1", "ReplicaSet").Obj(), want: "MemoryProfile shop/web",
			record: "deployment-api", paused: true,
		},
		"by a selector for everything": {
			pod: build.Pod("shop", "other").Obj(), want: "ClusterMemoryProfile everything", record: "pod-other",
		},
		"in a namespace nobody has seen": {
			pod: build.Pod("new", "other").Obj(), want: "ClusterMemoryProfile everything", record: "pod-other",
		},
		"by its namespace, paused": {
			pod: build.Pod("paused", "other").Obj(), want: "ClusterMemoryProfile everything", record: "pod-other", paused: true,
		},
		"in an excluded namespace": {
			pod: build.Pod("kube-system", "dns").Annotate(v1alpha1.ProfileAnnotation, "everything").Obj(), record: "pod-dns",
			problem: profile.Excluded,
		},
		"memfit's own, measured": {
			pod:  build.Pod("memfit-system", "manager").Annotate(v1alpha1.ProfileAnnotation, "memfit").Obj(),
			want: "MemoryProfile memfit-system/memfit", record: "pod-manager",
		},
		"memfit's own, by a profile that would change it": {
			pod: build.Pod("memfit-system", "manager").Obj(), record: "pod-manager", problem: profile.Excluded,
		},
		"a static pod": {
			pod: build.Pod("shop", "proxy").OwnedBy(build.Namespace("node-1"), "v1", "Node").Obj(), record: "pod-proxy",
			problem: profile.Excluded,
		},
		"of a profile that is not there": {
			pod: build.Pod("shop", "web").Annotate(v1alpha1.ProfileAnnotation, "wbe").Obj(), record: "pod-web",
			problem: profile.NotFound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			resolved, err := resolver.Resolve(t.Context(), tc.pod)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if resolved.Profile != nil {
				got = resolved.Profile.String()
			}
			if got != tc.want || resolved.Problem != tc.problem || (resolved.Paused != "") != tc.paused {
				t.Errorf(
					"governed by %q (problem %q, paused %t), want %q (%q, %t)", got, resolved.Problem, resolved.Paused != "", tc.want,
					tc.problem, tc.paused,
				)
			}
			if name := policy.RecordName(resolved.Ref); name != tc.record {
				t.Errorf("recorded as %s, want %s", name, tc.record)
			}
		})
	}
}

// TestRecordNames: names are valid, short enough, and never shared by two workloads.
func TestRecordNames(t *testing.T) {
	long := strings.Repeat("a", 252)
	seen := map[string]memory.WorkloadRef{}
	for _, w := range []memory.WorkloadRef{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
		{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"},
		{APIVersion: "batch/v1", Kind: "Job", Name: "web"},
		{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: "web"},
		{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: "web"},
		// What somebody may write into an owner reference. Neither spelling, group nor name makes one workload another's.
		{APIVersion: "apps/v1", Kind: "deployment", Name: "web"},
		{APIVersion: "apps/v1", Kind: "DEPLOYMENT", Name: "web"},
		{APIVersion: "v1", Kind: "Deployment", Name: "web"},
		{APIVersion: "apps/v1", Kind: "Job", Name: "web"},
		{APIVersion: "argoproj.io/v1alpha1", Kind: "rollout", Name: "web"},
		{APIVersion: "argoproj.io/v1alpha1", Kind: "RollOut", Name: "web"},
		{APIVersion: "argoproj-io/v1alpha1", Kind: "Rollout", Name: "web"},
		{APIVersion: "argoproj/v1alpha1", Kind: "Rollout", Name: "io-web"},
		{APIVersion: "argoproj.io/v1alpha1", Kind: "Roll out", Name: "We/b"},
		{APIVersion: "argoproj.io/v1alpha1", Kind: "Roll out", Name: "We/B"},
		{APIVersion: "v1", Kind: "Pod", Name: long},
		{APIVersion: "v1", Kind: "Pod", Name: long + "b"},
		{APIVersion: "v1", Kind: "Pod", Name: strings.Repeat("a", 237) + ".-" + "tail-that-is-cut-off"},
	} {
		name := policy.RecordName(w)
		if other, taken := seen[name]; taken {
			t.Errorf("%s and %s are both recorded as %s", w, other, name)
		}
		seen[name] = w
		if len(name) > 253 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			t.Errorf("%s is recorded as %s, which is no valid name", w, name)
		}
	}
	if name := policy.RecordName(
		memory.WorkloadRef{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: "web"},
	); name != "rollout.argoproj.io-web" {
		t.Errorf("a Rollout is recorded as %s, want rollout.argoproj.io-web", name)
	}
}

// TestAReplicaThatOnlyServesHoldsNoPods: every replica starts the informers of a Resolver. Pods are the leader's.
func TestAReplicaThatOnlyServesHoldsNoPods(t *testing.T) {
	for _, obj := range policy.Informers() {
		if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind == "" || kind == "Pod" {
			t.Errorf("an informer of %q is started on every replica", kind)
		}
	}
}
