// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

// Observed has data about running replicas of a container: heap and runtime.
type Observed struct {
	// LiveSet is the upper bound of the live heap: the lowest RSS between collections of replicas without a heap cap. A
	// cap needs a margin above it; otherwise the process could run out of heap. 0: unknown.
	LiveSet memory.Bytes
	// HeapCap is the smallest heap cap of replicas, which is safe regardless of LiveSet; 0 if a replica has none.
	HeapCap memory.Bytes
	// Limit is the recommended limit; 0: none. If all replicas have a cap, the limit is based on their usage with the cap,
	// which is better evidence than LiveSet.
	Limit memory.Bytes
	Found *v1alpha1.FoundRuntime // the runtime detected by agents; nil: not inspected, or replicas differ
}

// ObservedIn returns the data about running replicas in the status of a MemoryRecommendation.
func ObservedIn(containers []v1alpha1.ContainerRecommendation) map[string]Observed {
	out := map[string]Observed{}
	for i := range containers {
		c := &containers[i]
		if c.Evidence.LiveSet == nil && c.FoundRuntime == nil {
			continue
		}
		o := Observed{
			LiveSet: memory.FromOptional(c.Evidence.LiveSet), HeapCap: memory.FromOptional(c.Evidence.HeapCap),
			Found: c.FoundRuntime,
		}
		if c.Recommended != nil {
			o.Limit = memory.FromOptional(c.Recommended.Limit)
		}
		out[c.Container] = o
	}
	return out
}

// proven returns [runtimes.Facts.Live] and [runtimes.Facts.ProvenHeapCap] for one process. Both are 0 if unknown, or if
// all replicas have a cap and the limit is at least the recommended one.
func (c *ContainerPlan) proven(in Input, t target) (live, heap memory.Bytes) {
	seen := in.Observed[c.name]
	if seen.LiveSet == 0 || seen.HeapCap > 0 && seen.Limit > 0 && c.limit.cgroup >= seen.Limit {
		return 0, 0
	}
	heap = seen.HeapCap
	if in.Created {
		// A running pod's own cap is safe. Without this rule its state would become Stale with each change of the evidence.
		if own := heapCap(t.container, c.limit.cgroup, in.before.of(c.name)); heap == 0 || own > 0 && own < heap {
			heap = own
		}
	}
	parts := c.limit.division.parts() // LiveSet is the sum of all processes
	return (seen.LiveSet + parts - 1) / parts, heap
}

// HeapCap returns the heap cap of one process in the environment of a running pod's container; 0: none.
func HeapCap(pod *corev1.Pod, name string) memory.Bytes {
	c, _ := constraints.Find(pod, name)
	if c == nil {
		return 0
	}
	l := effectiveLimit(constraints.SizeOf(&c.Resources).Limit, constraints.WholeSize(pod).Limit, 0, division{})
	return heapCap(c, l.cgroup, readRecord(pod.Annotations[v1alpha1.InjectedAnnotation]).of(name))
}

// WrittenVariables returns the names of a container's variables that memfit wrote, in whole or in part.
func WrittenVariables(pod *corev1.Pod, name string) []string {
	r := readRecord(pod.Annotations[v1alpha1.InjectedAnnotation]).of(name)
	if r == nil || r.DryRun {
		return nil
	}
	return slices.Sorted(maps.Keys(r.Set))
}

// RequestBefore returns a container's memory request before and after memfit replaced it at creation. name "" is the
// whole pod. ok is false if memfit did not replace the request. Later resizes are not included.
func RequestBefore(pod *corev1.Pod, name string) (before, after memory.Bytes, ok bool) {
	r := readRecord(pod.Annotations[v1alpha1.InjectedAnnotation])
	if r == nil {
		return 0, 0, false
	}
	size := r.Pod
	if name != "" {
		c := r.of(name)
		if c == nil || c.DryRun {
			return 0, 0, false
		}
		size = c.Size
	}
	if size == nil || size.Request == "" {
		return 0, 0, false
	}
	return parseQuantity(size.WasRequest), parseQuantity(size.Request), true
}

// heapCap returns the heap cap in a container's env. A percentage is of the larger of the limits now and at admission,
// because the process may have started under either.
func heapCap(c *corev1.Container, limit memory.Bytes, rec *containerRecord) memory.Bytes {
	limit = max(limit, rec.atAdmission())
	return runtimes.HeapCapIn(func(name string) string {
		for _, e := range slices.Backward(c.Env) { // the last one counts
			if e.Name == name {
				return e.Value
			}
		}
		return ""
	}, limit)
}

// CapsHeap reports whether memfit can set a hard heap cap for the container's runtime.
func (c *ContainerPlan) CapsHeap() bool { return c.runtime.runtime.CapsHeap() }

// HeapCapTooSmall returns why a heap cap would be too small for the container's live heap; empty if it would not.
func (c *ContainerPlan) HeapCapTooSmall() string {
	for _, s := range c.skips {
		if s.belowLiveHeap {
			return s.text()
		}
	}
	return ""
}
