// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
)

// liveHeap is the heap data of one container from all replicas.
type liveHeap struct {
	set         history.LiveSet
	provisional bool         // the set is from less than six hours of data
	heapCap     memory.Bytes // the lowest cap of the replicas; 0: not every replica has a cap
}

// readHeapCaps reads the heap cap of each instance once, because the environment of a pod never changes.
func (st *State) readHeapCaps(pods []*corev1.Pod) {
	for _, pod := range pods {
		for c := range constraints.Containers(&pod.Spec) {
			if in := st.instanceIn(pod, c.Name); in != nil && !in.capKnown {
				in.heapCap, in.capKnown = inject.HeapCap(pod, c.Name), true
			}
		}
	}
}

// liveHeaps merges the current data of instances with the stored live sets, by container. Only instances without a heap
// cap change a live set, because a cap bounds what an instance can show. If all replicas have a cap, the stored live
// set remains.
func (st *State) liveHeaps(now time.Time) map[string]liveHeap {
	all := make(map[string]liveHeap, len(st.LiveSets))
	for name, set := range st.LiveSets {
		all[name] = liveHeap{set: set}
	}
	settled, recent, uncapped := map[string]memory.Bytes{}, map[string]memory.Bytes{}, map[string]bool{}
	for key, in := range st.instances {
		low, sixHours := in.lows.Low()
		if low == 0 || !in.capKnown {
			continue
		}
		switch name := key.container; {
		case in.heapCap > 0:
			a := all[name]
			if a.heapCap == 0 || in.heapCap < a.heapCap {
				a.heapCap = in.heapCap
			}
			all[name] = a
		case sixHours:
			uncapped[name], settled[name] = true, max(settled[name], low)
		default:
			uncapped[name], recent[name] = true, max(recent[name], low)
		}
	}
	for name := range uncapped {
		a := all[name]
		a.heapCap = 0
		if a.set = a.set.With(settled[name], now); a.set.Bytes == 0 {
			a.set, a.provisional = a.set.With(recent[name], now), true
		}
		all[name] = a
	}
	return all
}

// observedOf returns the data about running replicas for [inject.MakePlan]. The webhook reads equal data in the
// recommendation.
func observedOf(
	all map[string]liveHeap, recommended map[string]memory.Size, found map[string]*v1alpha1.FoundRuntime,
) map[string]inject.Observed {
	out := make(map[string]inject.Observed, len(all)+len(found))
	for name, f := range found {
		out[name] = inject.Observed{Found: f}
	}
	for name, a := range all {
		if a.set.Bytes > 0 {
			out[name] = inject.Observed{
				LiveSet: a.set.Bytes, HeapCap: a.heapCap, Found: found[name], Limit: recommended[name].Limit,
			}
		}
	}
	return out
}

// publish writes the heap data into e.
func (a liveHeap) publish(e *v1alpha1.Evidence) {
	e.HeapCap, e.LiveSet = format.Exact(a.heapCap), format.Exact(a.set.Bytes)
	if a.set.Bytes > 0 {
		e.LiveSetSeen = &metav1.Time{Time: a.set.Seen}
	}
}

// keptLiveSets returns the live sets to store, without provisional ones.
func keptLiveSets(all map[string]liveHeap) map[string]history.LiveSet {
	out := make(map[string]history.LiveSet, len(all))
	for name, a := range all {
		if a.set.Bytes > 0 && !a.provisional {
			out[name] = a.set
		}
	}
	return out
}
