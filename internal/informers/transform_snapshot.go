// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/memfit/memfit/api/v1alpha1"
)

// slimSnapshot keeps what a recommendation tells of a MemorySnapshot: what runs, and what fills the memory. The minute
// before a kill, which is most of it, is for people who ask for it.
func slimSnapshot(in any) (any, error) {
	s, ok := in.(*v1alpha1.MemorySnapshot)
	if !ok {
		return in, nil
	}
	s.ManagedFields, s.Annotations, s.Labels = nil, nil, nil
	kept := v1alpha1.MemorySnapshotStatus{NodeName: s.Status.NodeName, ObservedTime: s.Status.ObservedTime}
	for i := range s.Status.Containers {
		c := &s.Status.Containers[i]
		kept.Containers = append(kept.Containers, v1alpha1.ContainerSnapshot{
			Container: c.Container, High: c.High, Inspection: c.Inspection, Limit: c.Limit, Memory: c.Memory,
			Runtime: c.Runtime,
		})
	}
	s.Status = kept
	return s, nil
}

// SameSnapshot says whether two versions of a MemorySnapshot as kept here differ in nothing but numbers that move all
// the time: then nobody has to look at the workload again.
func SameSnapshot(before, after any) bool {
	a, ok := before.(*v1alpha1.MemorySnapshot)
	b, also := after.(*v1alpha1.MemorySnapshot)
	if !ok || !also || a.Status.NodeName != b.Status.NodeName || len(a.Status.Containers) != len(b.Status.Containers) {
		return false
	}
	for i := range a.Status.Containers {
		x, y := &a.Status.Containers[i], &b.Status.Containers[i]
		if x.Container != y.Container || x.Inspection != y.Inspection || !equality.Semantic.DeepEqual(x.High, y.High) ||
			!equality.Semantic.DeepEqual(x.Runtime, y.Runtime) {
			return false
		}
	}
	return true
}
