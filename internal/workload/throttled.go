// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
)

// throttledHeap returns that the heap of a container's replica may grow beyond memory.high: the kernel then puts it to
// sleep over and over before its runtime has a reason to collect. Empty: nothing is known of that.
func throttledHeap(s *Snapshot, container string) string {
	for _, pod := range s.Governed { // newest first
		high := highOf(s, pod, container)
		if high == 0 {
			continue
		}
		heap := cmp.Or(inject.FrozenIn(pod, s.Profile, nil, container).Cap, inject.HeapCap(pod, container))
		if heap <= high {
			continue
		}
		return fmt.Sprintf("pod %s: the heap may grow to %s, and from %s on the kernel slows the container down "+
			"(memory.high, which the kubelet's MemoryQoS puts between request and limit): raise the request, or let the heap "+
			"have less (heapPercent)", pod.Name, heap, high)
	}
	return ""
}

// highOf is the memory.high of a container as the agent of its node reads it; 0: unset, or no agent.
func highOf(s *Snapshot, pod *corev1.Pod, container string) memory.Bytes {
	seen := s.Snapshots[pod.UID]
	if seen == nil || seen.Status.NodeName != pod.Spec.NodeName {
		return 0
	}
	for i := range seen.Status.Containers {
		if c := &seen.Status.Containers[i]; c.Container == container && c.High != nil {
			return amount(*c.High)
		}
	}
	return 0
}
