// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import "github.com/memfit/memfit/internal/memory"

// Frozen is a heap cap that a running process keeps while its limit is resized.
type Frozen struct {
	// Cap is the heap cap of all processes together; 0: unknown.
	Cap memory.Bytes
	// Overhead is the runtime's memory besides the heap, plus the owner's reserve.
	Overhead memory.Bytes
	// Literal: the cap is a number in the pod's environment, which a restart of the container does not change.
	Literal bool
}

// Frozen returns the heap cap at the start of a container, if it is or may be a share of the limit. It uses the larger
// of the limit at admission and the effective one, because the process may have started under either.
func (c *ContainerPlan) Frozen() Frozen {
	growth := c.Growth()
	if growth.HeapPercent == 0 {
		return Frozen{}
	}
	atAdmission := c.before.atAdmission() * c.before.parts()
	from := max(atAdmission, c.limit.effective*c.limit.by.parts())
	if c.capLiteral() && atAdmission > 0 {
		from = atAdmission
	}
	return Frozen{from.Percent(growth.HeapPercent), growth.Overhead.Plus(growth.Reserve), c.capLiteral()}
}
