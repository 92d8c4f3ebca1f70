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

// Observed is what running replicas of a container showed: of their heap, and of what they run.
type Observed struct {
	// LiveSet is the upper bound of the live heap: the lowest RSS between collections of replicas that ran without a heap
	// cap. A cap without a margin above it would stop a process that runs today, so none is set. 0: unknown.
	LiveSet memory.Bytes
	// HeapCap is the least heap cap that replicas run with; 0 while one of them runs without. A cap as large is safe
	// regardless of LiveSet.
	HeapCap memory.Bytes
	// Limit is the limit recommended for them, 0: none. A recommendation for replicas that all have a cap follows from
	// their low points below it, which are better evidence than what they held before they had one.
	Limit memory.Bytes
	// Found is what the agents saw replicas run; nil: they were not inspected, or differ.
	Found *v1alpha1.FoundRuntime
}

// ObservedIn is what the status of a MemoryRecommendation has about running replicas; nil when it has nothing.
func ObservedIn(containers []v1alpha1.ContainerRecommendation) map[string]Observed {
	var out map[string]Observed
	for i := range containers {
		c := &containers[i]
		if c.Evidence.LiveSet == nil && c.FoundRuntime == nil {
			continue
		}
		if out == nil {
			out = make(map[string]Observed, len(containers))
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

// proven returns what prevents a heap cap under the limit, and a cap that needs no proof.
func (c *ContainerPlan) proven(in Input, t target) (live, heap memory.Bytes) {
	seen := in.Observed[c.name]
	if seen.LiveSet == 0 || seen.HeapCap > 0 && seen.Limit > 0 && c.limit.cgroup >= seen.Limit {
		return 0, 0
	}
	heap = seen.HeapCap
	if in.Created {
		// It runs with the cap it has, whatever others showed since. Else it would be called stale whenever the evidence
		// moves.
		if own := heapCap(t.container, c.limit.cgroup, in.before.of(c.name)); heap == 0 || own > 0 && own < heap {
			heap = own
		}
	}
	parts := divided(t.policy.Tuning).parts() // what was seen is of all processes together
	return (seen.LiveSet + parts - 1) / parts, heap
}

// HeapCap is the heap cap that a process of a container of a running pod was started with, by memfit or the user; 0:
// none that shows in its environment.
func HeapCap(pod *corev1.Pod, name string) memory.Bytes {
	c := container(pod, name)
	if c == nil {
		return 0
	}
	return heapCap(
		c, effectiveLimit(constraints.SizeOf(&c.Resources).Limit, constraints.WholeSize(pod).Limit, 0, division{}).cgroup,
		readRecord(pod.Annotations[v1alpha1.InjectedAnnotation]).of(name),
	)
}

// Wrote are the variables of a container of a pod that hold a text of memfit, in whole or in part.
func Wrote(pod *corev1.Pod, name string) []string {
	r := readRecord(pod.Annotations[v1alpha1.InjectedAnnotation]).of(name)
	if r == nil || r.DryRun {
		return nil
	}
	return slices.Sorted(maps.Keys(r.Set))
}

// RequestBefore is the memory request that a container had before memfit gave it another one when its pod was created,
// and the one that it got; with "", that of the pod as a whole. ok: memfit gave one. Both may have changed since.
func RequestBefore(pod *corev1.Pod, name string) (before, given memory.Bytes, ok bool) {
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
	return parse(size.WasRequest), parse(size.Request), true
}

// heapCap takes a share of the larger of the limit now and the one at admission, because it is unknown under which of
// them the process started.
func heapCap(c *corev1.Container, limit memory.Bytes, rec *containerRecord) memory.Bytes {
	limit = max(limit, rec.atAdmission())
	return runtimes.HeapCapIn(func(name string) string {
		for i := range c.Env {
			if e := &c.Env[len(c.Env)-1-i]; e.Name == name { // the last one counts
				return e.Value
			}
		}
		return ""
	}, limit)
}

// CapsHeap reports whether the container runs something that memfit can set a hard heap cap for.
func (c *ContainerPlan) CapsHeap() bool { return c.runtime.runtime.CapsHeap() }

// NoRoom is why the heap cap is left out for what is alive in the container; empty when it is not.
func (c *ContainerPlan) NoRoom() string {
	for _, s := range c.skips {
		if s.tight {
			return s.text()
		}
	}
	return ""
}
