// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

func sized(request, limit string) (r corev1.ResourceRequirements) {
	for text, list := range map[string]*corev1.ResourceList{request: &r.Requests, limit: &r.Limits} {
		if text != "" {
			*list = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(text)}
		}
	}
	return r
}

// app is the record of injection of one container.
func app(of string) string { return `{"v":1,"containers":{"app":` + of + `}}` }

// TestSavings: what memfit did counts, in both directions, and nothing that somebody else did.
func TestSavings(t *testing.T) {
	was512 := app(`{"size":{"request":"300Mi","wasRequest":"512Mi"}}`)
	memfit, other := []string{"memfit"}, []string{"memfit", "vpa"}
	owner := &v1alpha1.Size{Request: new(resource.MustParse("512Mi"))}
	mib := func(less, more memory.Bytes) Difference {
		return Difference{Less: less * memory.MiB, More: more * memory.MiB}
	}
	for name, tc := range map[string]struct {
		record, has string
		resizedBy   []string // one after the other
		owner       *v1alpha1.Size
		phase       corev1.PodPhase
		want        Difference
	}{
		"created with less": {record: was512, has: "300Mi", want: mib(212, 0)},
		"created with more": {
			record: app(`{"size":{"request":"1Gi","wasRequest":"512Mi"}}`), has: "1Gi", want: mib(0, 512),
		},
		"created with a first request": {record: app(`{"size":{"request":"64Mi"}}`), has: "64Mi", want: mib(0, 64)},
		"only the limit was changed":   {record: app(`{"size":{"limit":"1Gi","wasLimit":"2Gi"}}`), has: "512Mi"},
		"what would be set": {
			record: app(`{"dryRun":true,"size":{"request":"300Mi","wasRequest":"512Mi"}}`), has: "300Mi",
		},
		"created with less, and raised":     {record: was512, has: "600Mi", resizedBy: memfit, want: mib(0, 88)},
		"created with less, changed by vpa": {record: was512, has: "100Mi", resizedBy: other},
		"lowered in place":                  {has: "200Mi", resizedBy: memfit, owner: owner, want: mib(312, 0)},
		"raised in place":                   {has: "612Mi", resizedBy: memfit, owner: owner, want: mib(0, 100)},
		"lowered by vpa":                    {has: "200Mi", resizedBy: other, owner: owner},
		"resized, of an unknown owner":      {has: "200Mi", resizedBy: memfit, want: Difference{Unknown: 1}},
		"created unsized, resized": {
			record: app(`{"program":"0a1b","owner":{"request":"300Mi"}}`), has: "200Mi", resizedBy: memfit,
			owner: owner, want: mib(100, 0),
		},
		"not touched": {has: "200Mi", owner: owner},
		"over":        {record: was512, has: "300Mi", phase: corev1.PodSucceeded},
		"a forged record": {
			record: app(`{"size":{"request":"300Mi","wasRequest":"-9e99"}}`), has: "300Mi", want: mib(0, 300),
		},
	} {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		pod.Annotations = map[string]string{v1alpha1.InjectedAnnotation: tc.record}
		pod.Status.Phase = tc.phase
		pod.Spec.Containers = []corev1.Container{{Name: "app", Resources: sized(tc.has, "2Gi")}}
		for i, who := range tc.resizedBy {
			at := metav1.NewTime(time.Unix(int64(i), 0))
			pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{
				Manager: who, Subresource: "resize", Time: &at,
			})
		}
		rec := v1alpha1.MemoryRecommendation{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod-web"}}
		rec.Status.Workload = v1alpha1.WorkloadReference{APIVersion: "v1", Kind: "Pod", Name: "web"}
		rec.Status.Containers = []v1alpha1.ContainerRecommendation{{Container: "app", Owner: tc.owner}}
		count := func(recs ...v1alpha1.MemoryRecommendation) map[types.NamespacedName]Difference {
			given := NewSavings(RecordsOf(recs))
			given.AddPod(&pod)
			return given.Differences
		}
		if got := count(rec)[types.NamespacedName{Namespace: "shop", Name: "pod-web"}]; got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
		if none := count(); len(none) != 0 {
			t.Errorf("%s: a pod that memfit does not govern counts: %v", name, none)
		}
	}
}

// TestSavingsOfAPodAsAWhole: the scheduler counts the pod's own request, not those of its containers.
func TestSavingsOfAPodAsAWhole(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{
		v1alpha1.InjectedAnnotation: `{"v":1,"pod":{"request":"300Mi","wasRequest":"512Mi"},` +
			`"containers":{"app":{"size":{"request":"200Mi","wasRequest":"400Mi"}}}}`,
	}}}
	whole := sized("300Mi", "1Gi")
	pod.Spec.Resources = &whole
	pod.Spec.Containers = []corev1.Container{{Name: "app", Resources: sized("200Mi", "")}}
	var d Difference
	if d.add(&pod, &v1alpha1.MemoryRecommendation{}); d != (Difference{Less: 212 * memory.MiB}) {
		t.Errorf("%+v", d)
	}
}

// TestNothingIsGivenBackByWhatFailed: a lower request counts while no kill, stall or rollback of its container follows.
func TestNothingIsGivenBackByWhatFailed(t *testing.T) {
	at := func(hour int) metav1.Time { return metav1.NewTime(time.Date(2026, 11, 26, hour, 0, 0, 0, time.UTC)) }
	less, none := Difference{Less: 212 * memory.MiB}, Difference{Failed: 1}
	kill := func(container string, hour int) v1alpha1.MemoryRecommendationStatus {
		return v1alpha1.MemoryRecommendationStatus{RecentOOMKills: []v1alpha1.OOMKillRecord{
			{Container: container, Pod: "another", Time: at(hour)},
		}}
	}
	changed := func(kind string, hour int) v1alpha1.MemoryRecommendationStatus {
		return v1alpha1.MemoryRecommendationStatus{RecentChanges: []v1alpha1.ChangeRecord{{Kind: kind, Time: at(hour)}}}
	}
	stalled := v1alpha1.MemoryRecommendationStatus{
		RecentStalls: []v1alpha1.StallRecord{{Container: "app", Time: at(7)}},
	}
	lowered := kill("app", 7)
	lowered.RecentChanges = changed("Resized", 8).RecentChanges
	killedSince := kill("app", 9)
	killedSince.RecentChanges = lowered.RecentChanges
	for name, tc := range map[string]struct {
		inPlace bool
		status  v1alpha1.MemoryRecommendationStatus
		want    Difference
	}{
		"killed before the pod was created":       {status: kill("app", 5), want: less},
		"a replica was killed after it":           {status: kill("app", 7), want: none},
		"another container was killed":            {status: kill("proxy", 7), want: less},
		"a size was rolled back":                  {status: changed("Reverted", 7), want: none},
		"resized again":                           {status: changed("Resized", 7), want: less},
		"stalled":                                 {status: stalled, want: none},
		"lowered in place after a kill":           {inPlace: true, status: lowered, want: less},
		"lowered in place, and a kill after that": {inPlace: true, status: killedSince, want: none},
	} {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", CreationTimestamp: at(6)}}
		pod.Spec.Containers = []corev1.Container{{Name: "app", Resources: sized("300Mi", "2Gi")}}
		if tc.inPlace {
			resized := at(8)
			pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "memfit", Subresource: "resize", Time: &resized}}
		} else {
			pod.Annotations = map[string]string{
				v1alpha1.InjectedAnnotation: app(`{"size":{"request":"300Mi","wasRequest":"512Mi"}}`),
			}
		}
		rec := v1alpha1.MemoryRecommendation{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod-web"}, Status: tc.status,
		}
		rec.Status.Workload = v1alpha1.WorkloadReference{APIVersion: "v1", Kind: "Pod", Name: "web"}
		rec.Status.Containers = []v1alpha1.ContainerRecommendation{
			{Container: "app", Owner: &v1alpha1.Size{Request: new(resource.MustParse("512Mi"))}},
		}
		given := NewSavings(RecordsOf([]v1alpha1.MemoryRecommendation{rec}))
		given.AddPod(&pod)
		got := given.Differences[types.NamespacedName{Namespace: "shop", Name: "pod-web"}]
		if got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
