// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package amounts

// Names of details for levers. Amounts are bytes, unless noted; absent: unknown.
const (
	// glibc.
	Arenas    = "arenas"    // count, the main one included
	Retained  = "retained"  // resident in arenas and not in use
	BeyondTwo = "beyondTwo" // resident in all arenas but the two that hold the most
	TopBeyond = "topBeyond" // resident at all tops, beyond what a trim threshold of 128 KiB leaves there
	// V8.
	OldInUse      = "oldInUse"      // allocated in pages that are not of new objects, resident or not
	YoungResident = "youngResident" // of pages of new objects, and those reserved for them
	PoolResident  = "poolResident"  // of pages that V8 keeps for later and does not count
	// Go: the runtime's own counters. The last two are since the program started, in Go 1.21 and later.
	HeapIdle    = "heapIdle"    // neither in use nor given back to the kernel
	Objects     = "objects"     // allocated and not swept, as of the last collection
	MappedReady = "mappedReady" // memory held and not released by the runtime, which GOMEMLIMIT limits
	Allocated   = "allocated"
	Collections = "collections" // count
	// CollectorTime and BusyTime are the processor time of the collector and of the process since it started, in
	// nanoseconds: of Go 1.21 and later until the last collection, and of HotSpot except Shenandoah and ZGC.
	CollectorTime = "collectorTime"
	BusyTime      = "busyTime"
	// Live is the live heap of the last collection: of Go 1.20 and later, and of HotSpot with Serial after a full
	// collection for lack of space, unless a young one came later.
	Live = "live"
	// HotSpot: the effective values of flags, under their own names. Percentages of RAM are in hundredths.
	MaxHeapSize            = "MaxHeapSize"
	MinHeapSize            = "MinHeapSize"
	MaxHeapFreeRatio       = "MaxHeapFreeRatio"       // percent
	TrimNativeHeapInterval = "TrimNativeHeapInterval" // milliseconds
	MaxRAMPercentage       = "MaxRAMPercentage"
	MinRAMPercentage       = "MinRAMPercentage"
	// HeapByMemory is 1 if the JVM computed MaxHeapSize as a share of its visible memory, 0 if a flag sets it.
	HeapByMemory = "MaxHeapSizeByMemory"
	// HotSpot with Serial at its maximum heap: counters since the start, to compute how often it would collect with a
	// larger heap.
	YoungCollections = "youngCollections" // count
	FullCollections  = "fullCollections"  // count
	YoungTime        = "youngTime"        // by the clock, in ticks: only its proportion to FullTime is used
	FullTime         = "fullTime"
	Eden             = "eden" // that new objects fill until a collection
	Old              = "old"  // of the old generation
)
