// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/build"
)

func TestNoPodIsTakenFromTooFew(t *testing.T) {
	const serving, unready, leaving, over = "serving", "unready", "leaving", "over"
	for name, tc := range map[string]struct {
		pods     []string
		wanted   int
		most     int32
		evicting []int // others that are being evicted already
		says     string
	}{
		"all serve":    {pods: []string{serving, serving, serving}, wanted: 3},
		"the only one": {pods: []string{serving}, wanted: 1},
		"one was not created": {
			pods: []string{serving, serving}, wanted: 3,
			says: "1 of 3 pods unavailable or missing, 0 of them updating: maxUnavailable is 1",
		},
		"one was not created, two may be": {pods: []string{serving, serving}, wanted: 3, most: 2},
		"one was not created, and one is evicted": {
			pods: []string{serving, serving}, wanted: 3, most: 2, evicting: []int{1}, says: "2 of 3 pods",
		},
		"one is not ready":               {pods: []string{serving, serving, unready}, wanted: 3, says: "1 of 3 pods"},
		"one leaves, one more surges":    {pods: []string{serving, serving, serving, leaving}, wanted: 3},
		"one leaves":                     {pods: []string{serving, serving, leaving}, wanted: 3, says: "1 of 3 pods"},
		"nobody says how many":           {pods: []string{serving, unready}, says: "1 of 2 pods"},
		"nobody says, and one leaves":    {pods: []string{serving, leaving}, says: "1 of 2 pods"},
		"nobody says, and one has ended": {pods: []string{serving, over}},
		"scaled down":                    {pods: []string{serving, serving, unready}, wanted: 2},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.MemoryProfileSpec{}
			if tc.most > 0 {
				spec.Sizing.Disruption = &v1alpha1.DisruptionSpec{MaxUnavailable: new(intstr.FromInt32(tc.most))}
			}
			s := &Snapshot{Profile: &profile.Profile{Spec: spec}}
			st := &State{}
			for i, is := range tc.pods {
				pod := build.Pod("shop", is).Container("app").Obj()
				pod.UID = types.UID(rune('a' + i))
				if is != unready {
					pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				}
				if is == leaving {
					pod.DeletionTimestamp = &pod.CreationTimestamp
				}
				if is == over {
					pod.Status.Phase = corev1.PodSucceeded
				}
				s.Pods = append(s.Pods, pod)
			}
			for _, i := range tc.evicting {
				st.rollout.Restart = &rollout.Step{UID: s.Pods[i].UID}
			}
			a := rollout.Action{UID: s.Pods[0].UID, Evict: true}
			if !MakesUnavailable(s.Pods[0], a) {
				t.Error("evicting a pod that serves disturbs it")
			}
			got := st.TooFewAvailable(s, a, tc.wanted)
			if (got == "") != (tc.says == "") || !strings.HasPrefix(got, tc.says) {
				t.Errorf("says %q, want %q", got, tc.says)
			}
		})
	}
}

func TestWhatDisturbs(t *testing.T) {
	pod := build.Pod("shop", "web").Container("app").Container("log").Obj()
	pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
		{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
	}
	sizes := func(name string) map[string]memory.Size { return map[string]memory.Size{name: {Limit: memory.GiB}} }
	for name, tc := range map[string]struct {
		action rollout.Action
		want   bool
	}{
		"eviction":                        {rollout.Action{Evict: true}, true},
		"a fresh pod":                     {rollout.Action{Evict: true, Restart: true}, true},
		"a resize that restarts":          {rollout.Action{Sizes: sizes("app")}, true},
		"one that does not":               {rollout.Action{Sizes: sizes("log")}, false},
		"taking back what did not happen": {rollout.Action{Sizes: sizes("app"), Undo: true}, false},
	} {
		if MakesUnavailable(pod, tc.action) {
			t.Errorf("%s: a pod that does not serve cannot be disturbed", name)
		}
		serving := pod.DeepCopy()
		serving.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if got := MakesUnavailable(serving, tc.action); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
