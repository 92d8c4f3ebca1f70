// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
)

// TestSavedBySerial: a larger heap saves full collections, and no young ones.
func TestSavedBySerial(t *testing.T) {
	for name, tc := range map[string]struct {
		of     serial
		growth float64
		saved  float64
	}{
		// 10 of 20 are alive, and 10 young collections of 10 fill the rest: of 40, 15 of 20 do, which take twice as long
		"the old generation is filled": {serial{10, 20, 10, 100, 10, 50, 150}, 2, 1 - 10*110.0/320*(15+15)/200},
		"what is alive is not known":   {serial{10, 20, 0, 100, 10, 0, 150}, 2, 0},
		// 25 are alive where 20 fit: each collection is a full one, with 5 between two of them, then with 35
		"it does not hold all":      {serial{10, 20, 25, 0, 100, 0, 150}, 2, 1 - 5.0/35},
		"young collections only":    {serial{10, 20, 10, 100, 0, 150, 0}, 2, 0},
		"the program asks for them": {serial{10, 2000, 10, 100, 10, 50, 150}, 2, 0},
		"the heap stays as it is":   {serial{10, 20, 10, 100, 10, 50, 150}, 1, 0},
		"few collections":           {serial{10, 20, 10, 10, 1, 50, 150}, 2, 0},
		"nothing is free":           {serial{10, 20, 30, 0, 100, 0, 150}, 2, 0},
		"nothing is known":          {serial{}, 2, 0},
		"as large as numbers can be": {
			serial{math.MaxInt64, math.MaxInt64, math.MaxInt64, 1, 1 << 62, 1, math.MaxInt64}, 2, 0.5,
		},
		"as much young as can be":      {serial{1, math.MaxInt64, 0, math.MaxInt64, 1, math.MaxInt64, 1}, 2, 0},
		"more alive than there can be": {serial{1, 1, math.MaxInt64, 100, 100, 1, 1}, 2, 0},
	} {
		if got := tc.of.saved(tc.growth); math.Abs(got-tc.saved) > 1e-3 {
			t.Errorf("%s: %g, want %g", name, got, tc.saved)
		}
	}
}

// TestHeapGrowth: a heap grows with the limit where the JVM computes it from the limit, by the shares that it has, and
// not between 250Mi and 500Mi with its own.
func TestHeapGrowth(t *testing.T) {
	const mib = memory.MiB
	for name, tc := range map[string]struct {
		limit, heap  memory.Bytes
		least, share int64 // percent
		fixed        bool
		want         float64
	}{
		"half, of a small limit":    {128 * mib, 64 * mib, 50, 25, false, 1.5},
		"rounded up by the JVM":     {107 * mib, 66 * mib, 60, 60, false, 171.0 / 107},
		"a quarter":                 {512 * mib, 128 * mib, 50, 25, false, 1.125},
		"125Mi at least":            {300 * mib, 125 * mib, 50, 25, false, 1},
		"the same share of any":     {200 * mib, 120 * mib, 60, 60, false, 1.32},
		"-Xmx":                      {128 * mib, 64 * mib, 50, 25, true, 1},
		"a limit that it never saw": {128 * mib, 2048 * mib, 50, 25, false, 1},
		"no limit":                  {0, 64 * mib, 50, 25, false, 1},
		"percentages were not read": {128 * mib, 64 * mib, 0, 0, false, 1},
		"a limit as high as can be": {memory.Max, memory.Max / 2, 50, 50, false, 1},
		"a heap that was not read":  {128 * mib, 0, 50, 25, false, 1},
	} {
		a := amounts.Usage{Details: map[string]int64{
			amounts.MaxHeapSize: int64(tc.heap), amounts.HeapFollowsMemory: 1,
			amounts.MinRAMPercentage: 100 * tc.least, amounts.MaxRAMPercentage: 100 * tc.share,
		}}
		if tc.fixed {
			a.Details[amounts.HeapFollowsMemory] = 0
		}
		if got := heapGrowth(a, tc.limit); math.Abs(got-tc.want) > 1e-3 {
			t.Errorf("%s: %g, want %g", name, got, tc.want)
		}
	}
}

// TestHeapCostOfSerial: what is saved is a part of what the collector took.
func TestHeapCostOfSerial(t *testing.T) {
	const mib = int64(memory.MiB)
	a := amounts.Usage{Details: map[string]int64{
		amounts.CollectorTime: int64(40 * time.Second), amounts.BusyTime: int64(100 * time.Second),
		amounts.YoungCollections: 100, amounts.FullCollections: 10, amounts.YoungTime: 50, amounts.FullTime: 150,
		amounts.Eden: 10 * mib, amounts.Old: 20 * mib, amounts.Live: 10 * mib, amounts.MaxHeapSize: 32 * mib,
		amounts.HeapFollowsMemory: 1, amounts.MinRAMPercentage: 5000, amounts.MaxRAMPercentage: 2500,
	}}
	g, ok := heapCost(Process{Limit: 64 * memory.MiB}, a)
	const want = "the collector took 40 % of its processor time, a limit higher by 64Mi would save 19 % or more"
	if !ok || g.Why != want || math.Abs(g.Cost.Saved-0.4*(1-10*110.0/320*(15+15)/200)) > 1e-3 {
		t.Errorf("%+v, %v; want %s", g, ok, want)
	}
}

// TestNothingToSave: of a heap that is not full, or whose larger one saves nothing, no larger one is advised.
func TestNothingToSave(t *testing.T) {
	for name, tc := range map[string]struct {
		inUse   memory.Bytes
		details map[string]int64
		advised bool
	}{
		"a full heap":   {inUse: 90 * memory.MiB, advised: true},
		"a third of it": {inUse: 33 * memory.MiB},
		"what it saves is not known": {
			inUse: 90 * memory.MiB, advised: true,
			details: map[string]int64{amounts.YoungCollections: 100, amounts.FullCollections: 50},
		},
		"young collections only": {inUse: 90 * memory.MiB, details: map[string]int64{amounts.YoungCollections: 100}},
	} {
		a := amounts.Usage{InUse: tc.inUse, Details: map[string]int64{
			amounts.CollectorTime: int64(40 * time.Second), amounts.BusyTime: int64(100 * time.Second),
			amounts.MaxHeapSize: int64(100 * memory.MiB),
		}}
		maps.Copy(a.Details, tc.details)
		if g, ok := heapCost(Process{Limit: 200 * memory.MiB}, a); ok != tc.advised {
			t.Errorf("%s: %+v, advised: %v", name, g, ok)
		}
	}
}
