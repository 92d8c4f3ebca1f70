// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/internal/attribution/amounts"
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

// collectorShare is what the collector took of the processor time of a process; false: the process ran for too short,
// or holds sums that cannot be. It could write them itself.
func collectorShare(a amounts.Usage) (share float64, known bool) {
	took, busy := a.Details[amounts.CollectorTime], a.Details[amounts.BusyTime]
	if took < 0 || took > busy || time.Duration(busy) < busyLeast {
		return 0, false
	}
	return float64(took) / float64(busy), true
}

// fewer is the part of collections that is saved where a program that allocates so much between two of them may
// allocate more, but no more than most. The work of a collection depends on what is alive, not on what was allocated:
// the time of all collections is in proportion to their number.
func fewer(between, more, most memory.Bytes) float64 {
	then := max(between, min(between.Plus(more), most), 1)
	return 1 - float64(between)/float64(then)
}
