// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
)

// unnamed returns, by container, what to do about OOM-killed init containers that memfit does not size because the
// profile does not list them.
func unnamed(
	p *profile.Profile, pod *corev1.Pod, kills func(container string) []memory.OOMKill, total func(container string) int64,
) map[string]string {
	texts := map[string]string{}
	for i := range pod.Spec.InitContainers {
		name := pod.Spec.InitContainers[i].Name
		known := kills(name)
		if len(known) == 0 || !p.Container(name, pod.Annotations).Managed ||
			slices.ContainsFunc(Managed(p, pod), func(c managedContainer) bool { return c.Name == name }) {
			continue
		}
		last := known[len(known)-1]
		limit := "no limit of its own"
		if last.Limit > 0 {
			limit = "limit " + last.Limit.String()
		}
		texts[name] = fmt.Sprintf("Init container %s was OOM killed %s, last at %s with %s; init containers are only "+
			"sized when the profile lists them: add {name: %s} to spec.containers of %s, or raise its limit yourself", name,
			format.Count(total(name), "time"), format.Time(last.Time), limit, name, p)
	}
	return texts
}

// throttledHeap returns advice if the heap of a container's replica may grow beyond memory.high: the kernel then slows
// it down before its runtime collects. Empty: not the case, or unknown.
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
			"(memory.high, which the kubelet's MemoryQoS puts between request and limit): raise the request, or lower "+
			"heapPercent", pod.Name, heap, high)
	}
	return ""
}

// silence returns why samples of a workload are missing, and what to do; "": all of its nodes report.
func silence(s *Snapshot) string {
	if s.Unmeasured {
		return "memfit runs without a usage source (--usage-interval=0): only OOM kills change a size"
	}
	nodes, _ := silent(s)
	if len(nodes) == 0 {
		return ""
	}
	return `usage cannot be read from ` + format.Silent(nodes) +
		` (what to do: docs/guide/troubleshooting.md, "Usage cannot be read")`
}

// unmeasured reports whether no pod of the workload has usage, so that waiting brings no evidence.
func unmeasured(s *Snapshot) bool {
	_, all := silent(s)
	return s.Unmeasured || all
}

// silent returns the workload's nodes that report no usage; all: there are no others.
func silent(s *Snapshot) (nodes []memory.Silence, all bool) {
	if len(s.Silent) == 0 {
		return nil, false
	}
	ours := map[string]bool{}
	for _, pod := range s.Governed {
		if pod.Spec.NodeName != "" {
			ours[pod.Spec.NodeName] = true
		}
	}
	nodes = slices.DeleteFunc(slices.Clone(s.Silent), func(n memory.Silence) bool { return !ours[n.Node] })
	return nodes, len(nodes) > 0 && len(nodes) == len(ours)
}
