// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package amounts defines what the readers of internal/attribution measure in a heap. From these amounts,
// internal/runtimes computes what each lever, such as malloc_trim, would save.
package amounts

import (
	"math"

	"github.com/memfit/memfit/internal/memory"
)

// Usage is the result of one reader. All amounts are resident bytes.
type Usage struct {
	// Reader is the name of the reader. attribution.Attribute sets it.
	Reader string
	// InUse is memory in use by the program, including garbage.
	InUse memory.Bytes
	// FreeResident is free memory in whole pages that are resident.
	FreeResident memory.Bytes
	// Returnable is the part of FreeResident that the allocator's own function, such as malloc_trim, would return.
	Returnable memory.Bytes
	// FreePartial is free memory on pages that are partly in use: fragmentation. No lever returns it.
	FreePartial memory.Bytes
	// Coverage, from 0 to 1, is the share of the heap's headers that were readable and consistent.
	Coverage float64
	// Details has further amounts and counts, by the names in this package and in the package of the reader.
	Details map[string]int64
}

const (
	// MinCoverage is the lowest coverage at which amounts are reported (errors: docs/evidence/attribution.md).
	MinCoverage = 0.95
	// exactCoverage is the lowest coverage at which a saving is predicted as one number, not as a range: the unread part
	// is at most 2 %, the error of a prediction.
	exactCoverage = 0.98
)

// Understood reports whether coverage suffices to report the amounts.
func (u *Usage) Understood() bool { return u.Coverage >= MinCoverage }

// Bytes returns a detail that is an amount; 0 if it is unknown.
func (u *Usage) Bytes(detail string) memory.Bytes { return memory.Bytes(max(u.Details[detail], 0)) }

// Resident returns the resident memory that the reader could interpret.
func (u *Usage) Resident() memory.Bytes { return u.InUse.Plus(u.FreeResident).Plus(u.FreePartial) }

// Unread estimates the resident memory that the reader could not interpret, all of which may be free. It is 0 if
// coverage is at least exactCoverage.
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

// Names of details for levers. Amounts are bytes, unless noted. A missing detail is unknown.
const (
	// glibc.
	Arenas              = "arenas"    // count, including the main arena
	Retained            = "retained"  // resident in arenas and not in use
	ArenasBeyondTwo     = "beyondTwo" // resident in all arenas except the two largest
	TopsBeyondThreshold = "topBeyond" // resident at the tops of arenas, beyond what a trim threshold of 128 KiB leaves
	// V8.
	OldInUse      = "oldInUse"      // allocated in the old generation, resident or not
	YoungResident = "youngResident" // of the young generation, including its reserve
	PoolResident  = "poolResident"  // of freed pages that V8 keeps but does not count
	// Go: the runtime's own counters.
	HeapIdle    = "heapIdle"    // neither in use nor returned to the kernel
	Objects     = "objects"     // allocated and not swept, as of the last collection
	MappedReady = "mappedReady" // mapped and not released by the runtime; GOMEMLIMIT limits it
	Allocated   = "allocated"   // since the program started; Go 1.21 and later
	Collections = "collections" // count since the program started; Go 1.21 and later
	// CollectorTime and BusyTime are processor time in nanoseconds since the process started: of garbage collection, and
	// of the whole process. Known in Go 1.21 and later until the last collection, and in HotSpot with G1, Serial and
	// Parallel.
	CollectorTime = "collectorTime"
	BusyTime      = "busyTime"
	// Live is the live heap after the last collection: in Go 1.20 and later, and in HotSpot with Serial if the last
	// collection was a full one for lack of space.
	Live = "live"
	// HotSpot: effective values of flags, by their own names. Percentages of RAM are in hundredths of a percent.
	MaxHeapSize            = "MaxHeapSize"
	MinHeapSize            = "MinHeapSize"
	MaxHeapFreeRatio       = "MaxHeapFreeRatio"       // percent
	TrimNativeHeapInterval = "TrimNativeHeapInterval" // milliseconds
	MaxRAMPercentage       = "MaxRAMPercentage"
	MinRAMPercentage       = "MinRAMPercentage"
	// HeapFollowsMemory is 1 if the JVM computed MaxHeapSize as a share of its visible memory, 0 if a flag sets it.
	HeapFollowsMemory = "MaxHeapSizeByMemory"
	// HotSpot with Serial at its maximum heap: counters since the start, to predict collections with a larger heap.
	YoungCollections = "youngCollections" // count
	FullCollections  = "fullCollections"  // count
	YoungTime        = "youngTime"        // wall time in ticks: only its ratio to FullTime is used
	FullTime         = "fullTime"
	Eden             = "eden" // capacity of the space for new objects
	Old              = "old"  // capacity of the old generation
)
