// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
)

// TestAHeapAboveMemoryHighIsTold: 75 % of 512Mi are 384Mi of heap. With a request of 64Mi and a throttling factor of
// 0.6, memory.high is 332Mi.
func TestAHeapAboveMemoryHighIsTold(t *testing.T) {
	jvm := v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM}
	runs := &v1alpha1.InspectedRuntime{Type: "JVM"}
	for name, tc := range map[string]struct {
		runtime v1alpha1.RuntimeSpec
		node    string
		env     []corev1.EnvVar
		high    string
		want    string
	}{
		"memfit's share": {
			runtime: jvm, high: "332Mi",
			want: "pod a: the heap may grow to 384Mi, but the kernel throttles the container above 332Mi",
		},
		"it lies below":           {runtime: jvm, high: "467Mi"},
		"nobody sets memory.high": {runtime: jvm},
		"another node's agent":    {runtime: jvm, node: "node-z", high: "332Mi"},
		"the user's own number": {
			runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS}, high: "332Mi",
			env:  []corev1.EnvVar{{Name: "NODE_OPTIONS", Value: "--max-old-space-size=400"}},
			want: "pod a: the heap may grow to 4",
		},
		"no cap": {runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimePython}, high: "332Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			s := withSnapshots(tc.runtime, inspectedPod{"app:1", tc.node, runs})
			percent := int32(75)
			if tc.runtime.Type == v1alpha1.RuntimeJVM {
				s.Profile.Spec.Tuning.HeapPercent = &percent
			}
			c := &s.Governed[0].Spec.Containers[0]
			c.Env = tc.env
			c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}
			if tc.high != "" {
				high := resource.MustParse(tc.high)
				s.Snapshots[s.Governed[0].UID].Status.Containers[0].High = &high
			}
			got := throttledHeap(s, "app")
			if got == "" != (tc.want == "") || !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if other := throttledHeap(s, "side"); other != "" {
				t.Errorf("another container: %q", other)
			}
		})
	}
}
