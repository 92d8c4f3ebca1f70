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
	// Cap of the managed heap, of all processes together; 0: none is known.
	Cap memory.Bytes
	// Overhead is what the runtime needs besides, and what the owner keeps back for others.
	Overhead memory.Bytes
	// Literal: the cap is a number in the pod's environment, which a restart of the container does not change.
	Literal bool
}

// Frozen returns the heap cap that a container of a running pod was started with, as far as it is or may be a share of
// the limit. The share is taken from the larger of the limit at admission and the effective one, because it is unknown
// under which of them the process started.
func (c *ContainerPlan) Frozen() Frozen {
	growth := c.Growth()
	if growth.HeapPercent == 0 {
		return Frozen{}
	}
	atAdmission := c.before.atAdmission() * c.before.parts()
	literal := slices.ContainsFunc(c.set, func(s setting) bool {
		return s.knob.Name == c.runtime.runtime.Heap && s.follows() == runtimes.Literal
	})
	from := max(atAdmission, c.limit.effective*memory.Bytes(max(c.facts.Processes, 1)))
	if literal && atAdmission > 0 {
		from = atAdmission
	}
	return Frozen{Cap: from.Percent(growth.HeapPercent), Overhead: growth.Overhead.Plus(growth.Reserve), Literal: literal}
}
