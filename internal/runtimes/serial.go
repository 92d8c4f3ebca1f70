// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"math"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
)

// heapFull: a heap that uses this fraction of its maximum counts as full. It would probably use a larger maximum.
const heapFull = 0.75

// heapCost returns the collection cost of a JVM's heap size, and for Serial the saving with a larger heap. The
// Gain frees no memory; it only has a Cost.
func heapCost(p Process, a amounts.Usage) (Gain, bool) {
	share, _ := collectorShare(a)
	cost := Cost{Collector: share}
	if share < worthSaving {
		return noGain()
	}
	cost.Saved = cost.Collector * serialOf(a).saved(heapGrowth(a, p.Limit))
	onlyYoung := a.Details[amounts.YoungCollections] > 0 && a.Details[amounts.FullCollections] == 0
	full := float64(a.Resident()) >= heapFull*float64(a.Bytes(amounts.MaxHeapSize))
	if cost.Saved == 0 && (onlyYoung || !full) { // without a known saving, only a full heap may use a larger limit
		return noGain()
	}
	g, ok := exactGain(0, "%s", cost)
	g.Cost = cost
	return g, ok
}

// heapGrowth returns the factor by which a limit higher by [MoreLimit] enlarges the heap; 1: unknown, or the heap is
// not a share of the limit.
func heapGrowth(a amounts.Usage, limit memory.Bytes) float64 {
	heap := float64(a.Bytes(amounts.MaxHeapSize))
	now, then := heapShare(a, limit), heapShare(a, limit.Plus(MoreLimit))
	const rounded = 2 * float64(memory.MiB) // the JVM rounds the heap up to its alignment
	if limit == 0 || a.Details[amounts.HeapFollowsMemory] != 1 || now <= 0 ||
		math.Abs(now-heap) > max(rounded, 0.02*heap) {
		return 1
	}
	return then / now
}

// heapShare returns the maximum heap that HotSpot derives from a limit, in bytes (set_heap_size in
// runtime/arguments.cpp). The RAM percentages are in hundredths of a percent.
func heapShare(a amounts.Usage, limit memory.Bytes) float64 {
	const least = 125 * memory.MiB
	small := float64(limit) * float64(a.Details[amounts.MinRAMPercentage]) / 10000
	if small < float64(least) {
		return small
	}
	return max(float64(limit)*float64(a.Details[amounts.MaxRAMPercentage])/10000, float64(least))
}

// serial has the generations of a JVM with the Serial collector, and its collections so far. The time of young
// collections is proportional to allocations, so a larger eden saves nothing. A full collection runs when the old
// generation is full; with a larger heap it takes as long, but runs less often.
type serial struct {
	eden, old           float64 // the generations' maximum bytes
	live                float64 // bytes in use after a full collection; 0: unknown
	young, full         float64 // the number of collections
	youngTime, fullTime float64 // their total times
}

func serialOf(a amounts.Usage) serial {
	of := func(name string) float64 { return float64(max(a.Details[name], 0)) }
	return serial{
		eden: of(amounts.Eden), old: of(amounts.Old), live: of(amounts.Live),
		young: of(amounts.YoungCollections), youngTime: of(amounts.YoungTime),
		full: of(amounts.FullCollections), fullTime: of(amounts.FullTime),
	}
}

// saved returns the least fraction of collection time that is saved if the generations grow by this factor.
func (s serial) saved(growth float64) float64 {
	if growth <= 1 || s.live == 0 || s.full == 0 || s.young+s.full < minCollections || s.eden == 0 || s.fullTime == 0 {
		return 0
	}
	// Between two full collections, the fraction moved of the bytes allocated in eden fills the old generation.
	inEden, oldFree := s.eden*s.young/s.full, s.old-s.live
	if oldFree > inEden {
		return 0 // full collections have other causes than a full old generation
	}
	moved := 1.0
	if oldFree > 0 {
		moved = oldFree / inEden
	}
	// A cycle is the bytes allocated from one full collection to the next: they fill the old generation, and then eden.
	largerFree := s.old*growth - s.live
	cycle, longerCycle := s.eden+oldFree/moved, s.eden*growth+largerFree/moved
	if cycle <= 0 || longerCycle <= cycle {
		return 0
	}
	perByte := 0.0 // the time of young collections per allocated byte
	if s.young > 0 {
		perByte = s.youngTime / (s.young * s.eden)
	}
	cost := s.full * cycle / longerCycle * (s.fullTime/s.full + max(largerFree, 0)/moved*perByte)
	return max(0, 1-cost/(s.youngTime+s.fullTime))
}
