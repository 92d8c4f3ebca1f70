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
	// MinCoverage is the least coverage at which amounts are reported: below, all but Coverage are dropped. The measured
	// errors are for this coverage.
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
// may all be free. It is an estimate, because coverage is of addresses, and resident memory may be distributed
// differently.
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
