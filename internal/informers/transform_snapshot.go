// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/memfit/memfit/api/v1alpha1"
)

// slimSnapshot keeps what a recommendation reports: runtime, memory parts, and the last OOM kill and stall without
// their time series.
func slimSnapshot(s *v1alpha1.MemorySnapshot) {
	s.ManagedFields, s.Annotations, s.Labels = nil, nil, nil
	kept := v1alpha1.MemorySnapshotStatus{
		NodeName: s.Status.NodeName, ObservedTime: s.Status.ObservedTime, Alarm: s.Status.Alarm,
	}
	for i := range s.Status.Containers {
		c := &s.Status.Containers[i]
		kept.Containers = append(kept.Containers, v1alpha1.ContainerSnapshot{
			Container: c.Container, High: c.High, Inspection: c.Inspection, Limit: c.Limit, Memory: c.Memory,
			Runtime: c.Runtime, LastKill: slimKill(c.LastKill), LastStall: slimStall(c.LastStall),
		})
	}
	s.Status = kept
}

// slimKill returns a copy with the fields of an OOM kill that the ledger stores.
func slimKill(k *v1alpha1.KillSnapshot) *v1alpha1.KillSnapshot {
	if k == nil {
		return nil
	}
	kept := *k
	kept.Series, kept.Memory = nil, slimParts(k.Memory)
	kept.Processes = slices.Clone(k.Processes[:min(len(k.Processes), 1)])
	return &kept
}

// slimStall returns a copy with the fields of a stall that the ledger stores.
func slimStall(s *v1alpha1.StallSnapshot) *v1alpha1.StallSnapshot {
	if s == nil {
		return nil
	}
	kept := *s
	kept.Series, kept.Memory = nil, slimParts(s.Memory)
	return &kept
}

// slimParts returns a copy with the largest memory parts, so that the others can be freed.
func slimParts(m *v1alpha1.MemoryParts) *v1alpha1.MemoryParts {
	if m == nil {
		return nil
	}
	parts := slices.Clone(m.Parts[:min(len(m.Parts), partsKept)])
	return &v1alpha1.MemoryParts{Parts: parts, Resident: m.Resident, Time: m.Time}
}

// partsKept is the number of memory parts that a report of an OOM kill or stall names.
const partsKept = 3

// SameSnapshot reports whether two versions differ only in volatile numbers, which require no reconcile.
func SameSnapshot(a, b *v1alpha1.MemorySnapshot) bool {
	if a.Status.NodeName != b.Status.NodeName || len(a.Status.Containers) != len(b.Status.Containers) {
		return false
	}
	for i := range a.Status.Containers {
		x, y := &a.Status.Containers[i], &b.Status.Containers[i]
		if x.Container != y.Container || x.Inspection != y.Inspection || !equality.Semantic.DeepEqual(x.High, y.High) ||
			!equality.Semantic.DeepEqual(x.Runtime, y.Runtime) || !equality.Semantic.DeepEqual(x.LastKill, y.LastKill) ||
			!equality.Semantic.DeepEqual(x.LastStall, y.LastStall) {
			return false
		}
	}
	return true
}
