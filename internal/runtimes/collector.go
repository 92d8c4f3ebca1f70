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

// Cost is the garbage collection cost of a limit, as shares of the process's processor time.
type Cost struct {
	Collector float64 // the share of collections since the process started; 0: unknown
	// Saved is the share saved with a limit higher by [MoreLimit]; 0: none, or unknown. It is a lower bound: runtimes
	// count work after a collection, such as sweeping, as the program's.
	Saved float64
}

func (c Cost) String() string {
	took := fmt.Sprintf("the collector took %.0f %% of its processor time", 100*c.Collector)
	if c.Saved < 0.005 { // displayed as 0 %
		return took
	}
	return fmt.Sprintf("%s, a limit higher by %s would save %.0f %% or more", took, MoreLimit, 100*c.Saved)
}

// worthSaving is the least share of processor time to mention.
const worthSaving = 0.03

// minBusyTime is the least processor time of a program, to exclude its start.
const minBusyTime = 10 * time.Second

// collectorShare returns the collector's share of processor time; false: the process ran too briefly, or forged it.
func collectorShare(a amounts.Usage) (share float64, known bool) {
	took, busy := a.Details[amounts.CollectorTime], a.Details[amounts.BusyTime]
	if took < 0 || took > busy || time.Duration(busy) < minBusyTime {
		return 0, false
	}
	return float64(took) / float64(busy), true
}

// fewer returns the saved share of collections if the program may allocate more between two of them, up to most. The
// work of a collection depends on live memory, so the total time is proportional to their number.
func fewer(between, more, most memory.Bytes) float64 {
	then := max(between, min(between.Plus(more), most), 1)
	return 1 - float64(between)/float64(then)
}
