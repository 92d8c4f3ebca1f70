// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"

	"github.com/memfit/memfit/internal/inject"
)

// throttledHeap returns that the heap of a container's replica may grow beyond memory.high: the kernel then puts it to
// sleep over and over before its runtime has a reason to collect. Empty: nothing is known of that.
func throttledHeap(s *Snapshot, container string) string {
	for _, pod := range s.Governed { // newest first
		seen := s.seenByAgent(pod, container)
		if seen == nil || seen.High == nil {
			continue
		}
		high := amount(*seen.High)
		frozen := inject.OfRunning(pod, s.Profile, nil).Container(container).Frozen()
		heap := cmp.Or(frozen.Cap, inject.HeapCap(pod, container))
		if heap <= high {
			continue
		}
		return fmt.Sprintf("pod %s: the heap may grow to %s, and from %s on the kernel slows the container down "+
			"(memory.high, which the kubelet's MemoryQoS puts between request and limit): raise the request, or let the heap "+
			"have less (heapPercent)", pod.Name, heap, high)
	}
	return ""
}
