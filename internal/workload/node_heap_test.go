// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// TestNodeHeap: a heap above the limit that no option sets is a share of the node.
func TestNodeHeap(t *testing.T) {
	jvm := func(heap string, set bool) *v1alpha1.InspectedRuntime {
		f := &v1alpha1.InspectedRuntime{Type: "JVM", Version: "17.0.12", HeapSet: set}
		if heap != "" {
			f.MaxHeap = new(resource.MustParse(heap))
		}
		return f
	}
	seen := func(image string) map[string]*v1alpha1.FoundRuntime {
		return map[string]*v1alpha1.FoundRuntime{
			"app": {Type: v1alpha1.RuntimeJVM, Image: image, Replicas: 1, NodeHeap: new(resource.MustParse("6Gi"))},
		}
	}
	for name, tc := range map[string]struct {
		pods       []inspectedPod
		before     map[string]*v1alpha1.FoundRuntime
		generation int64
		resized    bool
		noLimit    bool
		want       string // empty: none
	}{
		"above the limit": {pods: []inspectedPod{{"app:1", "", jvm("6Gi", false)}}, want: "6Gi"},
		"the largest of two": {
			pods: []inspectedPod{{"app:1", "", jvm("6Gi", false)}, {"app:1", "", jvm("16Gi", false)}}, want: "16Gi",
		},
		"one node's kernel shows it": {
			pods: []inspectedPod{{"app:1", "", jvm("256Mi", false)}, {"app:1", "", jvm("16Gi", false)}}, want: "16Gi",
		},
		"its owner set it": {pods: []inspectedPod{{"app:1", "", jvm("6Gi", true)}}},
		"below the limit":  {pods: []inspectedPod{{"app:1", "", jvm("256Mi", false)}}},
		"rounded up":       {pods: []inspectedPod{{"app:1", "", jvm("1056Mi", false)}}},
		"resized since": {
			pods: []inspectedPod{{"app:1", "", jvm("6Gi", false)}}, generation: 2, resized: true,
		},
		"a debug session since": {pods: []inspectedPod{{"app:1", "", jvm("6Gi", false)}}, generation: 2, want: "6Gi"},
		"without a limit":       {pods: []inspectedPod{{"app:1", "", jvm("6Gi", false)}}, noLimit: true},
		"another node's agent":  {pods: []inspectedPod{{"app:1", "node-z", jvm("6Gi", false)}}},
		"not read":              {pods: []inspectedPod{{"app:1", "", jvm("", false)}}},
		"seen before, -XX:MaxRAM now": {
			pods: []inspectedPod{{"app:2", "", jvm("600Mi", true)}}, before: seen("app:1"), want: "6Gi",
		},
		"seen before, and it sees the limit now": {
			pods: []inspectedPod{{"app:2", "", jvm("256Mi", false)}}, before: seen("app:1"),
		},
		"seen before of another image": {
			pods: []inspectedPod{{"other:2", "", jvm("600Mi", true)}}, before: seen("app:1"),
		},
		"seen before, no agent since": {pods: []inspectedPod{{"app:2", "", nil}}, before: seen("app:1"), want: "6Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			s := withSnapshots(v1alpha1.RuntimeSpec{}, tc.pods...)
			for _, pod := range s.Governed {
				if pod.Generation = tc.generation; tc.resized {
					pod.ManagedFields = resizedBy(FieldManager)
				}
				if !tc.noLimit {
					pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
				}
			}
			var got memory.Bytes
			if f := findRuntimes(s, tc.before)["app"]; f != nil && f.NodeHeap != nil {
				got = amount(*f.NodeHeap)
			}
			want := memory.Bytes(0)
			if tc.want != "" {
				want = amount(resource.MustParse(tc.want))
			}
			if got != want {
				t.Errorf("the heap of the node is %s, want %s", got, want)
			}
		})
	}
}
