// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
)

// TestDeclaredIdentities: a pod that a profile identifies by labels has the workload of its recommendation, where there
// is one.
func TestDeclaredIdentities(t *testing.T) {
	keys := []string{"app", "step"}
	pod := func(namespace, step, kind string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "run-1", Labels: map[string]string{"app": "shop", "step": step},
				OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "apps/v1", Kind: kind, Name: "run", Controller: new(true)},
				},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "shop/step:1"}}},
		}
	}
	id, found := identity.Find(pod("ci", "unit", "Run"), memory.WorkloadRef{
		APIVersion: "apps/v1", Kind: "Run", Namespace: "ci", Name: "run",
	}, keys)
	if !found {
		t.Fatal("nothing identifies the pod")
	}
	ref := id.Ref("ci")
	rec := v1alpha1.MemoryRecommendation{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: ref.Name}}
	rec.Status.Workload = v1alpha1.WorkloadReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
	rec.Status.Identity = &v1alpha1.PodIdentity{Platform: identity.Labeled, Values: id.Values, Labels: keys}
	rec.Status.Profile = v1alpha1.ProfileReference{Kind: "MemoryProfile", Name: "steps"}
	recs := []v1alpha1.MemoryRecommendation{rec}

	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"as its recommendation":          {pod("ci", "unit", "Run"), "PodIdentity " + ref.Name},
		"another step":                   {pod("ci", "lint", "Run"), "Run run"},
		"another namespace":              {pod("cd", "unit", "Run"), "Run run"},
		"the pod of a lasting owner":     {pod("ci", "unit", "StatefulSet"), "StatefulSet run"},
		"without the label of a profile": {pod("ci", "", "Run"), "Run run"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RecordsOf(recs).Owner(tc.pod); got.Kind+" "+got.Name != tc.want {
				t.Errorf("%s %s, want %s", got.Kind, got.Name, tc.want)
			}
		})
	}

	in := New(RecordsOf(recs))
	in.AddPod(pod("ci", "unit", "Run"))
	c := in.Containers()[0]
	if c.Kind != "PodIdentity" || c.Workload != ref.Name || c.Profile != "steps" {
		t.Errorf("listed as %s %s with profile %q", c.Kind, c.Workload, c.Profile)
	}
}

// TestClassesOfNodes: the pods of a DaemonSet that a profile keeps apart are listed by class, each with the kills of
// its own, and by the DaemonSet alone while no node can be read. A class without a recommendation has its profile, and
// nothing of another class. The label is that of the newest recommendation.
func TestClassesOfNodes(t *testing.T) {
	class := func(label, name string, day, kills int) v1alpha1.MemoryRecommendation {
		rec := v1alpha1.MemoryRecommendation{ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "of-" + name, CreationTimestamp: metav1.Unix(int64(day)*24*3600, 0),
		}}
		rec.Status.Workload = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "log"}
		rec.Status.Identity = &v1alpha1.PodIdentity{
			Platform: identity.ByNode, Values: []string{"log", name}, Labels: []string{label},
		}
		rec.Status.Profile.Name = "agents"
		for range kills {
			rec.Status.RecentOOMKills = append(rec.Status.RecentOOMKills, v1alpha1.OOMKillRecord{
				Container: "app", Time: metav1.Now(),
			})
		}
		return rec
	}
	recs := []v1alpha1.MemoryRecommendation{
		class("size", "large", 2, 3), class("size", "small", 3, 0), class("zone", "west", 1, 5),
	}
	pod := func(node string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "kube-system", Name: "log-" + node, OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "log", Controller: new(true)},
				},
				Annotations: map[string]string{
					v1alpha1.InjectedAnnotation: `{"v":1,"containers":{"app":{"size":{"request":"300Mi","wasRequest":"512Mi"}}}}`,
				},
			},
			Spec: corev1.PodSpec{
				NodeName: node, Containers: []corev1.Container{{Name: "app", Resources: sized("300Mi", "2Gi")}},
			},
		}
	}
	list := func(read bool) (rows []string, given map[types.NamespacedName]Difference) {
		records := RecordsOf(recs)
		if !records.ByNode() {
			t.Fatal("no node is asked for")
		}
		if read {
			for name, size := range map[string]string{"n1": "small", "n2": "large", "n3": "small", "n4": "huge"} {
				records.AddNode(&metav1.PartialObjectMetadata{
					ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"size": size, "zone": "west"}},
				})
			}
		}
		in, back := New(records), NewSavings(records)
		for _, node := range []string{"n1", "n2", "n3", "n4"} {
			in.AddPod(pod(node))
			back.AddPod(pod(node))
		}
		for _, w := range Workloads(in.Containers(), time.Now()) {
			rows = append(rows, fmt.Sprintf("%s, %d pods, %d kills, %s", w.typed(), w.Replicas, w.Kills, w.Profile))
		}
		return rows, back.Differences
	}
	rows, given := list(true)
	if want := []string{
		"daemonset/log [large], 1 pods, 3 kills, agents", "daemonset/log [huge], 1 pods, 0 kills, agents",
		"daemonset/log [small], 2 pods, 0 kills, agents",
	}; !slices.Equal(rows, want) {
		t.Errorf("%q, want %q", rows, want)
	}
	if want := map[types.NamespacedName]Difference{
		{Namespace: "kube-system", Name: "of-small"}: {Less: 424 * memory.MiB},
		{Namespace: "kube-system", Name: "of-large"}: {Failed: 1},
	}; !maps.Equal(given, want) {
		t.Errorf("given back: %+v, want %+v", given, want)
	}
	rows, given = list(false)
	if want := []string{"daemonset/log, 4 pods, 0 kills, agents"}; !slices.Equal(rows, want) || len(given) > 0 {
		t.Errorf("without nodes: %q, %+v given back", rows, given)
	}
}

// TestOnNode: the pod of a DaemonSet has the recommendation for the class of its node, or that without a class.
func TestOnNode(t *testing.T) {
	log := v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "log"}
	rec := func(name, class string) v1alpha1.MemoryRecommendation {
		r := v1alpha1.MemoryRecommendation{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		if r.Status.Workload = log; class != "" {
			r.Status.Identity = &v1alpha1.PodIdentity{
				Platform: identity.ByNode, Values: []string{"log", class}, Labels: []string{"size"},
			}
		}
		return r
	}
	records := RecordsOf([]v1alpha1.MemoryRecommendation{rec("small", "small"), rec("whole", ""), rec("large", "large")})
	for size, want := range map[string]string{"small": "small", "large": "large", "huge": "whole", "": "whole"} {
		records.AddNode(&metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"size": size, "zone": "large"}},
		})
		if found := records.Of(records.OnNode(RefOf("shop", log), "node")); found == nil || found.Name != want {
			t.Errorf("on a node with size %q: %+v, want %s", size, found, want)
		}
	}
}

// TestRecords: the recommendation of a workload is not that of one whose name begins likewise, or of another group.
func TestRecords(t *testing.T) {
	rec := func(apiVersion, kind, name string) v1alpha1.MemoryRecommendation {
		var r v1alpha1.MemoryRecommendation
		r.Namespace = "shop"
		r.Status.Workload = v1alpha1.WorkloadReference{APIVersion: apiVersion, Kind: kind, Name: name}
		return r
	}
	records := RecordsOf([]v1alpha1.MemoryRecommendation{
		rec("apps/v1", "Deployment", "web"), rec("apps/v1", "StatefulSet", "db"),
		rec("batch.volcano.sh/v1alpha1", "Job", "train"),
	})
	for owner, want := range map[v1alpha1.WorkloadReference]bool{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}:      true,
		{APIVersion: "apps/v1beta1", Kind: "Deployment", Name: "web"}: true,
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "web-api"}:  false,
		{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}:     false,
		{APIVersion: "batch/v1", Kind: "Job", Name: "train"}:          false,
	} {
		if got := records.Of(RefOf("shop", owner)); (got != nil) != want {
			t.Errorf("%v has %+v, want a recommendation: %t", owner, got, want)
		}
		if got := records.Of(RefOf("team", owner)); got != nil {
			t.Errorf("another namespace has the recommendation: %+v", got)
		}
	}
}
