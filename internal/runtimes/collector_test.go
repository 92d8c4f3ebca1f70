// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"math"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
)

// TestFewerCollections: with twice as much between two collections they take half of the time, and what is not
// allocated between two of them saves nothing.
func TestFewerCollections(t *testing.T) {
	const mib = memory.MiB
	for name, tc := range map[string]struct {
		between, more, most memory.Bytes
		saved               float64
	}{
		"twice as much":                 {20 * mib, 20 * mib, memory.Max, 0.5},
		"four times":                    {20 * mib, 60 * mib, memory.Max, 0.75},
		"no more than the runtime uses": {20 * mib, 60 * mib, 40 * mib, 0.5},
		"the runtime uses no more":      {20 * mib, 60 * mib, 20 * mib, 0},
		"the runtime would use less":    {20 * mib, 60 * mib, 10 * mib, 0},
		"more than there can be":        {20 * mib, memory.Max, memory.Max, 1},
		"nothing is allocated":          {0, 0, 0, 1},
	} {
		if got := collectionsSaved(tc.between, tc.more, tc.most); math.Abs(got-tc.saved) > 1e-6 {
			t.Errorf("%s: %g, want %g", name, got, tc.saved)
		}
	}
}

// TestPacedByGOGC: what GOGC lets a program allocate between two collections, whatever its limit.
func TestPacedByGOGC(t *testing.T) {
	for text, want := range map[string]memory.Bytes{
		"": 60 * memory.MiB, "50": 30 * memory.MiB, "off": memory.Max, "-1": memory.Max, "0": 0, "much": 60 * memory.MiB,
	} {
		if got := goPaced(text, 60*memory.MiB); got != want {
			t.Errorf("GOGC=%s: %s, want %s", text, got, want)
		}
	}
}

// TestGoSumsThatCannotBeAreNoCost: a program holds its sums itself, and a broken or hostile one any numbers.
func TestGoSumsThatCannotBeAreNoCost(t *testing.T) {
	for _, tc := range []struct {
		took, busy time.Duration
		known      bool
	}{
		{40 * time.Second, 100 * time.Second, true}, {100 * time.Second, 100 * time.Second, true},
		{101 * time.Second, 100 * time.Second, false}, {-time.Second, 100 * time.Second, false},
		{40 * time.Second, -100 * time.Second, false}, {math.MaxInt64, minBusyTime, false},
	} {
		cost := goCost(Process{Limit: 100 * memory.MiB}, amounts.Usage{Details: map[string]int64{
			amounts.CollectorTime: int64(tc.took), amounts.BusyTime: int64(tc.busy), amounts.Collections: 100,
			amounts.Allocated: int64(100 * 10 * memory.MiB),
		}}, 100*memory.MiB, memory.Max)
		if (cost != Cost{}) != tc.known || cost.Collector < 0 || cost.Collector > 1 {
			t.Errorf("collections took %s of %s: %s", tc.took, tc.busy, cost)
		}
	}
}
