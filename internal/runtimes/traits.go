// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import "github.com/memfit/memfit/internal/memory"

// Growth says what a runtime does with the memory it is given, which is what a sizing rule needs to tell demand from habit.
type Growth struct {
	// FollowsLimit is true when the managed heap grows towards a cap that is derived from the limit: the peak is then no demand.
	FollowsLimit bool
	// HeapPercent is the share of the limit that the heap may take, in percent; 0 when there is no such cap.
	HeapPercent int32
	// Overhead is what the runtime needs besides the heap: code, stacks, buffers. 0: not known.
	Overhead memory.Bytes
	// Name is the runtime as people call it: "Node.js".
	Name string
}
