// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// MoreLimit is how much higher a limit is for [Cost].
const MoreLimit = 64 * memory.MiB

// Cost is what a limit costs in garbage collection, as shares of the processor time of the process.
type Cost struct {
	// Collector is what collections took since the process started; 0: not known.
	Collector float64
	// Saved is what they would not have taken with a limit higher by [MoreLimit]; 0: nothing, or not known. Fewer
	// collections save more than that: runtimes count the work that comes after a collection, such as sweeping, as the
	// program's.
	Saved float64
}

func (c Cost) String() string {
	took := fmt.Sprintf("the collector took %.0f %% of its processor time", 100*c.Collector)
	if c.Saved < 0.005 { // it would read 0 %
		return took
	}
	return fmt.Sprintf("%s, %s more limit would save %.0f %% or more", took, MoreLimit, 100*c.Saved)
}

// worthSaving is the share of the processor time from which on the cost of a limit that is not needed is mentioned.
const worthSaving = 0.03

// busyLeast is how long a program must have run: less is its start rather than its work.
const busyLeast = 10 * time.Second

// Collector is what the garbage collector of a process did since the process started.
type Collector struct {
	// Took is its processor time, and Busy that of the process.
	Took, Busy time.Duration
	// Between is how much the program allocates from one collection to the next, on average.
	Between memory.Bytes
}

// Cost returns what the collector costs, and what is saved where the program may allocate more between two collections,
// but no more than most. The work of a collection depends on what is alive, not on what was allocated: the time of
// all collections is in proportion to their number.
func (c Collector) Cost(more, most memory.Bytes) Cost {
	took := float64(c.Took) / float64(c.Busy)
	between := max(c.Between, min(c.Between.Plus(more), most), 1)
	return Cost{Collector: took, Saved: took * (1 - float64(c.Between)/float64(between))}
}
