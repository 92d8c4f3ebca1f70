// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
)

// nodeHeap is the largest heap that a replica allows itself above its memory limit without being set to it; nil: none
// was seen. Replicas that run with -XX:MaxRAM show nothing, so what was seen of the same image stays until a replica
// shows the contrary.
func nodeHeap(s *Snapshot, container string, before, now *v1alpha1.FoundRuntime) *resource.Quantity {
	var most *resource.Quantity
	sees := false
	for _, pod := range s.Governed {
		runs, spec := inspected(s, pod, container)
		if runs == nil || runs.Type != string(now.Type) {
			continue
		}
		heap, limit := heapAndLimit(runs, pod, spec)
		switch {
		case heap == 0 || limit == 0:
		case heap <= limit.Plus(limit/heapSlack):
			sees = true
		case most == nil || heap > amount(*most):
			most = new(heap.Quantity())
		}
	}
	if most != nil || sees || before == nil || before.NodeHeap == nil || before.Type != now.Type ||
		!inject.SameRepository(before.Image, now.Image) {
		return most
	}
	return new(before.NodeHeap.DeepCopy())
}

// heapSlack: a heap of all of the limit is rounded up to whole regions, by less than an eighth.
const heapSlack = 8

// heapAndLimit are the largest heap that a process chose and the limit under which it started; 0: not known. After a
// resize the limit at its start is unknown.
func heapAndLimit(runs *v1alpha1.InspectedRuntime, pod *corev1.Pod, spec *corev1.Container) (heap, limit memory.Bytes) {
	if runs.MaxHeap == nil || runs.HeapSet || inject.WasResized(pod) {
		return 0, 0
	}
	limit = constraints.SizeOf(&spec.Resources).Limit
	if whole := constraints.WholeSize(pod).Limit; limit == 0 || whole > 0 && whole < limit {
		limit = whole
	}
	return amount(*runs.MaxHeap), limit
}

// reportNodeHeaps adds to the advisories which containers do not see their limit.
func (d *decider) reportNodeHeaps() {
	for i := range d.v.status.Containers {
		c := &d.v.status.Containers[i]
		if f := c.FoundRuntime; f != nil && f.NodeHeap != nil {
			d.v.status.Advisories = append([]string{fmt.Sprintf("Container %s: the JVM allows itself a heap of %s, above the "+
				"memory limit: it does not see the limit (JDK-8349988, kernels without CONFIG_MEMCG_V1). Upgrade the JDK; until "+
				"then set heapPercent in the profile (new pods then get -XX:MaxRAM), or -XX:MaxRAM beside options of your own",
				c.Container, amount(*f.NodeHeap))},
				d.v.status.Advisories...)
		}
	}
}
