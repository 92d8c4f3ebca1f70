// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/podplan"
)

func TestFilledByTellsTheFullestReplicaInFiveLines(t *testing.T) {
	q := resource.MustParse
	free := q("61Mi")
	parts := func(resident string) *v1alpha1.MemoryParts {
		return &v1alpha1.MemoryParts{
			Resident: q(resident), Unexplained: q("1Mi"), Time: metav1.NewTime(time.Date(2026, 3, 2, 1, 2, 3, 0, time.UTC)),
			Parts: []v1alpha1.MemoryPart{
				{Name: "stacks", Resident: q("2Mi")},
				{Name: "V8 heap", Resident: q("301Mi")},
				{Name: "glibc arenas", Resident: q("96Mi"), Free: &free},
				{Name: "program\nand libraries", Resident: q("10Mi")},
				{Name: "shared", Resident: q("2Mi")},
			},
		}
	}
	runs := &v1alpha1.InspectedRuntime{Type: "NodeJS"}
	s := withSnapshots(
		v1alpha1.RuntimeSpec{}, inspectedPod{"app:1", "", runs}, inspectedPod{"app:1", "", runs},
		inspectedPod{"app:1", "node-z", runs}, inspectedPod{"app:1", "", nil},
	)
	for uid, resident := range map[string]string{"a": "200Mi", "b": "412Mi", "c": "4Gi"} {
		for _, pod := range s.Governed {
			if string(pod.UID) == uid {
				s.Snapshots[pod.UID].Status.Containers[0].Memory = parts(resident)
			}
		}
	}
	want := []string{
		"b: 412Mi resident at 2026-03-02T01:02:03Z", "V8 heap 301Mi", "glibc arenas 96Mi, of which 61Mi is free",
		"program and libraries 10Mi", "other parts 4Mi, unexplained 1Mi",
	}
	got, outlier := breakdown(s, "app")
	if diff := cmp.Diff(want, got); diff != "" || outlier != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, _ := breakdown(s, "sidecar"); got != nil {
		t.Errorf("nobody inspected it: %v", got)
	}
	// What every reading finds is no reason to write.
	before := &v1alpha1.MemoryRecommendationStatus{
		Containers: []v1alpha1.ContainerRecommendation{{Container: "app", Breakdown: want}},
	}
	after := before.DeepCopy()
	after.Containers[0].Breakdown[1] = "V8 heap 302Mi"
	if NewState().HashStatus(before) != NewState().HashStatus(after) {
		t.Error("a part that grew by 1Mi is written")
	}
	after.Containers[0].Breakdown = nil
	if NewState().HashStatus(before) == NewState().HashStatus(after) {
		t.Error("that no agent reads it any more is not written")
	}
	after = before.DeepCopy()
	after.Containers[0].BreakdownOutlier = "b"
	if NewState().HashStatus(before) == NewState().HashStatus(after) {
		t.Error("a pod that holds far more than the others is not written")
	}
}

// TestWhoStandsOut: a replica that holds far more than the others is told with what is usual, if there are enough of
// them.
func TestWhoStandsOut(t *testing.T) {
	runs := &v1alpha1.InspectedRuntime{Type: "NodeJS"}
	of := func(resident ...string) (line, outlier string) {
		pods := make([]inspectedPod, len(resident))
		for i := range pods {
			pods[i] = inspectedPod{"app:1", "", runs}
		}
		s := withSnapshots(v1alpha1.RuntimeSpec{}, pods...)
		for i, pod := range s.Governed {
			s.Snapshots[pod.UID].Status.Containers[0].Memory = &v1alpha1.MemoryParts{
				Resident: resource.MustParse(resident[i]),
				Time:     metav1.NewTime(time.Date(2026, 3, 2, 1, 2, 3, 0, time.UTC)),
			}
		}
		lines, outlier := breakdown(s, "app")
		return lines[0], outlier
	}
	const sick = "538Mi resident at 2026-03-02T01:02:03Z"
	got, outlier := of("233Mi", "538Mi", "231Mi", "236Mi")
	if !strings.HasSuffix(got, sick+", its replicas 235Mi (median of 4)") || !strings.HasPrefix(got, outlier+": ") {
		t.Errorf("one of four: %s, outlier %q", got, outlier)
	}
	for name, resident := range map[string][]string{
		"one of two": {"233Mi", "538Mi"}, "all": {"538Mi", "530Mi", "531Mi", "529Mi"},
	} {
		if got, outlier := of(resident...); !strings.HasSuffix(got, sick) || outlier != "" {
			t.Errorf("%s: %s, outlier %q", name, got, outlier)
		}
	}
}

// TestEase: the highest limit that a replica needs for what is alive in it raises the limit within minutes.
func TestEase(t *testing.T) {
	runs := &v1alpha1.InspectedRuntime{Type: "Go"}
	s := withSnapshots(v1alpha1.RuntimeSpec{Type: "Go"}, inspectedPod{"app:1", "", runs}, inspectedPod{"app:1", "", runs})
	for i, limit := range []string{"131Mi", "120Mi"} {
		q := resource.MustParse(limit)
		pod := s.Governed[i]
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"memory": resource.MustParse("88Mi")}
		podplan.Apply(pod, inject.MakePlan(inject.Input{Pod: pod, Profile: s.Profile}))
		s.Snapshots[s.Governed[i].UID].Status.Containers[0].Memory = &v1alpha1.MemoryParts{
			Savings: []v1alpha1.PredictedSaving{
				{Action: "debug.FreeOSMemory"}, {Action: "GOMEMLIMIT", Setting: "GOMEMLIMIT", Limit: &q, Method: "53Mi\nalive"},
			},
		}
	}
	got := ease(s, "app", 88*memory.MiB, nil)
	if got.Limit != 131*memory.MiB || !strings.HasSuffix(got.Why, "53Mi alive") ||
		!strings.Contains(got.Why, "pod "+s.Governed[0].Name) {
		t.Errorf("%+v", got)
	}
	if none := ease(s, "app", 39*memory.MiB, nil); none.Limit != 0 {
		t.Errorf("more than three times the limit is told to be needed: %+v", none)
	}
	if none := ease(s, "sidecar", 88*memory.MiB, nil); none.Limit != 0 {
		t.Errorf("%+v", none)
	}
	for name, change := range map[string]func(pod *corev1.Pod){
		"one of the owner's, which does not move": func(pod *corev1.Pod) { pod.Annotations = nil },
		"resized in place, with that of before": func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Limits["memory"] = resource.MustParse("125Mi")
		},
	} {
		pod := s.Governed[0].DeepCopy()
		change(pod)
		one := *s
		one.Governed = []*corev1.Pod{pod}
		if none := ease(&one, "app", 88*memory.MiB, nil); none.Limit != 0 {
			t.Errorf("%s: %+v", name, none)
		}
	}
}

// TestWouldHelp: what gives memory of the fullest replica back is told with its numbers, zeroes too, and what a setting
// did elsewhere is not told where it is known what it would do here.
func TestWouldHelp(t *testing.T) {
	q := resource.MustParse
	most := q("30Mi")
	runs := &v1alpha1.InspectedRuntime{Type: "NodeJS"}
	s := withSnapshots(v1alpha1.RuntimeSpec{Type: "NodeJS"}, inspectedPod{"app:1", "", runs})
	seen := &s.Snapshots[s.Governed[0].UID].Status.Containers[0]
	before := decide(s, NewState(), time.Date(2026, 3, 2, 1, 2, 3, 0, time.UTC)).status.Containers[0]
	seen.Memory = &v1alpha1.MemoryParts{
		Resident: q("200Mi"), Summary: "malloc_trim would give back 61Mi\nof the 200Mi that are resident",
		Savings: []v1alpha1.PredictedSaving{
			{Action: "malloc_trim", Amount: q("61Mi"), Method: "counted", How: "call it"},
			{Action: "MALLOC_ARENA_MAX=2", Setting: "MALLOC_ARENA_MAX", Amount: q("0"), AtMost: &most, Method: "4 " +
				"arenas", How: "ask"},
			{Action: "--max-semi-space-size=16", Amount: q("0"), Method: "it takes 4Mi"},
			{Action: "a", Amount: q("0")}, {Action: "b", Amount: q("0")}, {Action: "c", Amount: q("0")},
		},
	}
	after := decide(s, NewState(), time.Date(2026, 3, 2, 1, 2, 3, 0, time.UTC)).status.Containers[0]
	want := []string{
		"malloc_trim would give back 61Mi of the 200Mi that are resident", "malloc_trim: 61Mi (counted); call it",
		"MALLOC_ARENA_MAX=2: 0 to 30Mi (4 arenas); ask", "--max-semi-space-size=16: nothing (it takes 4Mi)", "a: nothing ()",
		"b: nothing ()",
	}
	if diff := cmp.Diff(want, after.Suggestions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	elsewhere := func(advice string) bool { return strings.HasPrefix(advice, "MALLOC_ARENA_MAX is not set by default") }
	if !slices.ContainsFunc(before.Advice, elsewhere) || slices.ContainsFunc(after.Advice, elsewhere) {
		t.Errorf("advice without numbers of this workload: %q, with them: %q", before.Advice, after.Advice)
	}
	one := v1alpha1.MemoryRecommendationStatus{Containers: []v1alpha1.ContainerRecommendation{after}}
	other := one.DeepCopy()
	other.Containers[0].Suggestions[1] = "malloc_trim: 62Mi (counted); call it"
	if NewState().HashStatus(&one) != NewState().HashStatus(other) {
		t.Error("a gain that grew by 1Mi is written")
	}
}
