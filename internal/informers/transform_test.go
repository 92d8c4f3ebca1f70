// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
)

// fatPod is a pod as a cluster has it: a web service with a mesh sidecar, written by kubectl, the scheduler and the
// kubelet.
func fatPod(t testing.TB) *corev1.Pod {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "pod.json"))
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(data, &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// TestSlimConfigMap: keys are kept, values and everything else are not.
func TestSlimConfigMap(t *testing.T) {
	whole := &corev1.ConfigMap{
		Data: map[string]string{"PASSWORD": "by mistake"}, BinaryData: map[string][]byte{"icon": {1}},
	}
	whole.Namespace, whole.Name, whole.Annotations = "shop", "settings", map[string]string{"last-applied": "by mistake"}
	got, err := slim(slimConfigMap)(whole)
	want := &corev1.ConfigMap{Data: map[string]string{"PASSWORD": ""}}
	want.Namespace, want.Name = "shop", "settings"
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// TestSlimRecommendationsAnswerTheSame: a plan made from the cache is the one made from the whole, and nothing is kept
// that no plan needs.
func TestSlimRecommendationsAnswerTheSame(t *testing.T) {
	q := func(s string) *resource.Quantity { return new(resource.MustParse(s)) }
	whole := &v1alpha1.MemoryRecommendation{}
	whole.Status.Containers = []v1alpha1.ContainerRecommendation{{
		Container: "app", Decision: "Keep", Summary: "keep it", Reasons: []string{"many"}, Settings: []string{"some"},
		Recommended: &v1alpha1.Size{Limit: q("768Mi")}, NewPods: &v1alpha1.Size{Limit: q("768Mi")},
		OtherPrograms: []v1alpha1.ProgramSize{{
			Program: "v1", Owner: &v1alpha1.Size{Limit: q("256Mi")}, NewPods: v1alpha1.Size{Limit: q("512Mi")},
		}},
		Evidence: v1alpha1.Evidence{
			PeakRSS: q("500Mi"), LiveSetMedian: q("400Mi"), LiveSet: q("420Mi"),
			LiveSetSeen: &metav1.Time{}, HeapCap: q("381Mi"),
			Source: "kubelet",
		},
	}}
	want, offers := inject.ObservedIn(whole.DeepCopy().Status.Containers), inject.OffersIn(whole.Status.Containers)
	made, err := SlimRecommendation(whole.DeepCopy())
	slim, ok := made.(*v1alpha1.MemoryRecommendation)
	if err != nil || !ok {
		t.Fatalf("a %T, %v", made, err)
	}
	if diff := cmp.Diff(want, inject.ObservedIn(slim.Status.Containers)); diff != "" || len(want) != 1 {
		t.Errorf("live heaps differ (-whole +slim):\n%s", diff)
	}
	if diff := cmp.Diff(offers, inject.OffersIn(slim.Status.Containers)); diff != "" || len(offers["app"].Others) != 1 {
		t.Errorf("offers differ (-whole +slim):\n%s", diff)
	}
	kept := v1alpha1.Evidence{LiveSet: q("420Mi"), HeapCap: q("381Mi")}
	if diff := cmp.Diff(kept, slim.Status.Containers[0].Evidence); diff != "" {
		t.Errorf("evidence in the cache (-want +got):\n%s", diff)
	}
}

// TestSlimRecommendationsKeepNoLists: every replica holds every recommendation, and lists are most of one.
func TestSlimRecommendationsKeepNoLists(t *testing.T) {
	whole := &v1alpha1.MemoryRecommendation{}
	status := reflect.ValueOf(&whole.Status).Elem()
	for _, f := range status.Fields() {
		if f.Kind() == reflect.Slice {
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		}
	}
	if _, err := SlimRecommendation(whole); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for i := range status.NumField() {
		if f := status.Field(i); f.Kind() == reflect.Slice && f.Len() > 0 {
			kept = append(kept, status.Type().Field(i).Name)
		}
	}
	slices.Sort(kept)
	if want := []string{"Conditions", "Containers"}; !slices.Equal(kept, want) {
		t.Errorf("the cache keeps %v, want %v", kept, want)
	}
}

// TestSlimPodsAnswerTheSame: what memfit asks of a pod in its cache has the same answer as asked of the whole pod.
func TestSlimPodsAnswerTheSame(t *testing.T) {
	whole := fatPod(t)
	whole.Annotations["karpenter.sh/do-not-disrupt"] = "true"
	whole.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{
		{Name: "debug", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}},
		{Name: "debug-2", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: metav1.Now(), FinishedAt: metav1.Now(),
		}}},
		{Name: "debug-3", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "Pulling"}}},
	}
	whole.Status.Conditions = append(whole.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	})
	whole.Spec.Overhead = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("120Mi")}
	if n := len(oom.Observe(whole)[0].Ephemeral); n != 2 {
		t.Fatalf("%d debug sessions are observed in the whole pod", n)
	}
	made, err := SlimPod(whole.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	slim, ok := made.(*corev1.Pod)
	if !ok {
		t.Fatalf("slimPod made a %T", made)
	}
	if !slices.Contains(slim.Status.Conditions, whole.Status.Conditions[len(whole.Status.Conditions)-1]) {
		t.Error("that no node takes the pod is lost")
	}
	for _, runtime := range []v1alpha1.RuntimeType{
		v1alpha1.RuntimeAuto, v1alpha1.RuntimeNodeJS, v1alpha1.RuntimeJVM, v1alpha1.RuntimeGo, v1alpha1.RuntimeRuby,
	} {
		spec := &v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: runtime}}
		p := profile.NewIndex(
			[]profile.Profile{
				{Ref: v1alpha1.ProfileReference{Kind: "MemoryProfile", Name: "web"}, Namespace: whole.Namespace, Spec: spec},
			},
		).Find(whole.Namespace, "web")
		wantPlan, gotPlan := inject.MakePlan(
			inject.Input{Pod: whole, Profile: p},
		), inject.MakePlan(inject.Input{Pod: slim, Profile: p})
		for i := range whole.Spec.Containers {
			name := whole.Spec.Containers[i].Name
			if diff := cmp.Diff(wantPlan.Container(name).Settings(), gotPlan.Container(name).Settings()); diff != "" {
				t.Errorf("%s: settings differ (-whole +slim):\n%s", runtime, diff)
			}
		}
		wantState, wantWhy := inject.Compare(whole, p, nil)
		gotState, gotWhy := inject.Compare(slim, p, nil)
		if wantState != gotState || wantWhy != gotWhy {
			t.Errorf("%s: the whole pod is %s (%s), the slim one %s (%s)", runtime, wantState, wantWhy, gotState, gotWhy)
		}
	}
	if want, got := constraints.Need(whole, nil), constraints.Need(slim, nil); got != want {
		t.Errorf("the whole pod needs %s, the slim one %s", want, got)
	}
	if constraints.DoNotDisrupt(slim.Annotations) == "" {
		t.Error("that its owner forbids to disturb it is lost")
	}
	if diff := cmp.Diff(oom.Observe(whole), oom.Observe(slim)); diff != "" {
		t.Errorf("observations differ (-whole +slim):\n%s", diff)
	}
}

// TestSlimPodsKeepWhoAppliesThem: field managers of a pod that a controller creates are not needed.
func TestSlimPodsKeepWhoAppliesThem(t *testing.T) {
	for _, bare := range []bool{true, false} {
		pod := &corev1.Pod{}
		if !bare {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1", Controller: new(true)}}
		}
		pod.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status"},
			{
				Manager: "git", Operation: metav1.ManagedFieldsOperationApply,
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:containers":{"f:resources":{"f:limits":{"f:memory":{}}}}}}`),
			},
		}
		if _, err := SlimPod(pod); err != nil {
			t.Fatal(err)
		}
		var want []metav1.ManagedFieldsEntry
		if bare {
			want = []metav1.ManagedFieldsEntry{{Manager: "git", Operation: metav1.ManagedFieldsOperationApply}}
		}
		if diff := cmp.Diff(want, pod.ManagedFields); diff != "" {
			t.Errorf("bare %v (-want +got):\n%s", bare, diff)
		}
	}
}

// TestPodCacheBytes prints what one pod costs in the cache, and fails when slim pods put on weight.
func TestPodCacheBytes(t *testing.T) {
	data, err := json.Marshal(fatPod(t))
	if err != nil {
		t.Fatal(err)
	}
	decode := func() *corev1.Pod {
		var pod corev1.Pod
		if err := json.Unmarshal(data, &pod); err != nil {
			t.Fatal(err)
		}
		return &pod
	}
	whole := heap(func() any { return decode() })
	slim := heap(func() any {
		pod, err := SlimPod(decode())
		if err != nil {
			t.Fatal(err)
		}
		return pod
	})
	t.Logf(
		"one pod with two containers takes %d bytes whole and %d in memfit's cache (%d %%); 10,000 pods: %d MiB", whole, slim,
		slim*100/whole, slim*10000>>20,
	)
	if slim > 4500 {
		t.Errorf("a slim pod takes %d bytes, want at most 4500", slim)
	}
}

// heap is the live heap that one object made by f takes.
func heap(f func() any) int {
	const n = 500
	kept := make([]any, n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range kept {
		kept[i] = f()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	size := int(after.HeapAlloc-before.HeapAlloc) / n
	runtime.KeepAlive(kept)
	return size
}

// TestNodesKeepTheirSwap: where a source has none of its series, it decides whether demand is known.
func TestNodesKeepTheirSwap(t *testing.T) {
	swap := &corev1.NodeSwapStatus{Capacity: new(int64(1 << 30))}
	node := &corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{Swap: swap, KernelVersion: "6.12"}}}
	slimNode(node)
	if got := node.Status.NodeInfo; got != (corev1.NodeSystemInfo{Swap: swap}) {
		t.Errorf("kept %+v", got)
	}
}
