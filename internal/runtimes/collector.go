// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
)

// MoreLimit is the increase of a limit for [Cost].
const MoreLimit = 64 * memory.MiB

// Cost is the cost of garbage collection under a limit, as fractions (0 to 1) of the process's CPU time.
type Cost struct {
	Collector float64 // the fraction used by the collector since the process started; 0: unknown
	// Saved is the fraction that a limit higher by [MoreLimit] would save; 0: none, or unknown. It is a lower bound,
	// because runtimes count work after a collection, such as sweeping, as the program's.
	Saved float64
}

func (c Cost) String() string {
	took := fmt.Sprintf("the collector took %.0f %% of its processor time", 100*c.Collector)
	if c.Saved < 0.005 { // displayed as 0 %
		return took
	}
	return fmt.Sprintf("%s, a limit higher by %s would save %.0f %% or more", took, MoreLimit, 100*c.Saved)
}

// worthSaving is the least fraction of CPU time to report.
const worthSaving = 0.03

// minBusyTime is the least CPU time of a process, to exclude its start.
const minBusyTime = 10 * time.Second

// collectorShare returns the collector's fraction of CPU time. known is false if the process ran too briefly, or its
// numbers are impossible.
func collectorShare(a amounts.Usage) (share float64, known bool) {
	took, busy := a.Details[amounts.CollectorTime], a.Details[amounts.BusyTime]
	if took < 0 || took > busy || time.Duration(busy) < minBusyTime {
		return 0, false
	}
	return float64(took) / float64(busy), true
}

// collectionsSaved returns the saved fraction of collections if the program can allocate more bytes between two of
// them, up to most. The work of a collection depends on live memory, so the total time is proportional to their number.
func collectionsSaved(between, more, most memory.Bytes) float64 {
	then := max(between, min(between.Plus(more), most), 1)
	return 1 - float64(between)/float64(then)
}
