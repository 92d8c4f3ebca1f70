// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package amounts defines the amounts that readers of heaps measure in a process (internal/attribution), from which the
// levers of internal/runtimes compute savings.
package amounts

import (
	"math"

	"github.com/memfit/memfit/internal/memory"
)

// Usage is the result of one reader. All amounts are resident bytes.
type Usage struct {
	// Reader is its name, set by attribution.Attribute.
	Reader string
	// InUse is memory in use by the program, including garbage.
	InUse memory.Bytes
	// FreeResident is free memory in whole pages that are resident.
	FreeResident memory.Bytes
	// Returnable is the part of FreeResident that the allocator's own function (malloc_trim) would return.
	Returnable memory.Bytes
	// FreePartial is free memory on pages that also hold something in use: fragmentation, which no lever returns.
	FreePartial memory.Bytes
	// Coverage is the share of the reader's headers that were readable and consistent, between 0 and 1.
	Coverage float64
	// Details are further amounts and counts: those named in this package, and others that the reader's package has.
	Details map[string]int64
}

const (
	// MinCoverage is the least coverage at which amounts are reported, for which the errors were measured.
	MinCoverage = 0.95
	// exactCoverage is the least coverage at which a gain is reported as one number: the unread part is then within a
	// prediction's error of 2 %.
	exactCoverage = 0.98
)

// Understood reports whether coverage suffices to report the amounts.
func (u *Usage) Understood() bool { return u.Coverage >= MinCoverage }

// Bytes returns a detail that is an amount.
func (u *Usage) Bytes(detail string) memory.Bytes { return memory.Bytes(max(u.Details[detail], 0)) }

// Resident returns the resident memory known to the reader.
func (u *Usage) Resident() memory.Bytes { return u.InUse.Plus(u.FreeResident).Plus(u.FreePartial) }

// Unread returns the part of the heap that the reader could not interpret, where that exceeds a prediction's error: it
// may all be free. It is an estimate, as coverage counts addresses.
func (u *Usage) Unread() memory.Bytes {
	if u.Coverage >= exactCoverage {
		return 0
	}
	return memory.Bytes(math.Round(float64(u.Resident()) * (1 - u.Coverage) / u.Coverage))
}

// The names of readers.
const (
	Glibc   = "glibc"
	HotSpot = "hotspot"
	V8      = "v8"
	Go      = "go"
	CPython = "cpython"
	Ruby    = "ruby"
)

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
	// HotSpot with Serial at its maximum heap: counters since the start, to predict collections with a larger heap.
	YoungCollections = "youngCollections" // count
	FullCollections  = "fullCollections"  // count
	YoungTime        = "youngTime"        // by the clock, in ticks: only its proportion to FullTime is used
	FullTime         = "fullTime"
	Eden             = "eden" // that new objects fill until a collection
	Old              = "old"  // of the old generation
)
