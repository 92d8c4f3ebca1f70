// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"testing"

	"github.com/memfit/memfit/api/v1alpha1"
)

// TestSlimSnapshot: of the last kill and the last stall as much is kept as becomes a sentence, and news of either is
// news.
func TestSlimSnapshot(t *testing.T) {
	of := func(change func(*v1alpha1.ContainerSnapshot)) *v1alpha1.MemorySnapshot {
		filled := &v1alpha1.MemoryParts{Parts: make([]v1alpha1.MemoryPart, 9), Savings: make([]v1alpha1.PredictedSaving, 3)}
		c := v1alpha1.ContainerSnapshot{
			Container: "app",
			LastKill: &v1alpha1.KillSnapshot{MinuteBefore: v1alpha1.MinuteBefore{
				GrowthMilliseconds: 12000, Series: make([]v1alpha1.UsagePoint, 60), Memory: filled,
			}},
			LastStall: &v1alpha1.StallSnapshot{MinuteBefore: v1alpha1.MinuteBefore{
				GrowthMilliseconds: 9000, Series: make([]v1alpha1.UsagePoint, 60), Memory: filled,
			}},
		}
		change(&c)
		s := &v1alpha1.MemorySnapshot{}
		s.Status.Containers = []v1alpha1.ContainerSnapshot{c}
		slimSnapshot(s)
		return s
	}
	same := func(*v1alpha1.ContainerSnapshot) {}
	got := of(same).Status.Containers[0]
	for what, ok := range map[string]bool{
		"series of the kill":   len(got.LastKill.Series) == 0,
		"series of the stall":  len(got.LastStall.Series) == 0,
		"parts of the kill":    len(got.LastKill.Memory.Parts) == partsKept && got.LastKill.Memory.Savings == nil,
		"parts of the stall":   len(got.LastStall.Memory.Parts) == partsKept && got.LastStall.Memory.Savings == nil,
		"growth of the kill":   got.LastKill.GrowthMilliseconds == 12000,
		"growth of the stall":  got.LastStall.GrowthMilliseconds == 9000,
		"the same is the same": SameSnapshot(of(same), of(same)),
		"another kill is news": !SameSnapshot(of(same), of(func(c *v1alpha1.ContainerSnapshot) { c.LastKill.Kind = "x" })),
		"a stall is news":      !SameSnapshot(of(func(c *v1alpha1.ContainerSnapshot) { c.LastStall = nil }), of(same)),
	} {
		if !ok {
			t.Errorf("%s: %+v", what, got)
		}
	}
}
