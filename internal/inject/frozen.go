// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/runtimes"
)

// Frozen is a heap cap that a running process keeps while its limit is resized.
type Frozen struct {
	// Cap is the heap cap of all processes together; 0: unknown.
	Cap memory.Bytes
	// Overhead is the runtime's memory besides the heap, plus the owner's reserve.
	Overhead memory.Bytes
	// Literal: the cap is a number in the pod's environment, which a restart of the container does not change.
	Literal bool
	// For is the container's limit that a literal cap was derived from; 0: unknown.
	For memory.Bytes
	// Hard: the process ends at its cap. Otherwise it collects without end.
	Hard bool
}

// Frozen returns the heap cap at the start of a container, if it is or may be a share of the limit. It uses the larger
// of the limit at admission and the effective one, because the process may have started under either.
func (c *ContainerPlan) Frozen() Frozen {
	growth := c.Growth()
	if growth.HeapPercent == 0 {
		return Frozen{}
	}
	f := Frozen{
		Overhead: growth.Overhead.Plus(growth.Reserve), Hard: len(c.runtime.runtime.FullHeap.Exits) > 0,
	}
	atAdmission := c.before.atAdmission() * c.before.parts()
	f.Literal = slices.ContainsFunc(c.set, func(s setting) bool {
		return s.knob.Name == c.runtime.runtime.Heap && s.follows() == runtimes.Literal
	})
	now := c.limit.effective * memory.Bytes(max(c.facts.Processes, 1))
	from := max(atAdmission, now)
	if f.Literal && atAdmission > 0 {
		from = atAdmission
		f.For = atAdmission.Plus(c.limit.cgroup.Minus(now)) // with volumes and the reserve
	}
	f.Cap = from.Percent(growth.HeapPercent)
	return f
}
