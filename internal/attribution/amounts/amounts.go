// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package amounts is what readers of heaps find in a process, and under which names: the readers of
// internal/attribution measure it, and the levers of internal/runtimes compute from it what gives memory back.
package amounts

import (
	"math"

	"github.com/memfit/memfit/internal/memory"
)

// Usage is what one reader found in its regions. All amounts are resident bytes.
type Usage struct {
	// Reader is its name, filled by attribution.Attribute.
	Reader string
	// InUse is what it has given to the program, garbage that was not collected yet included.
	InUse memory.Bytes
	// FreeResident is free memory in whole pages that are resident.
	FreeResident memory.Bytes
	// Returnable is the part of FreeResident that the allocator's own way of giving back (malloc_trim) would give back.
	Returnable memory.Bytes
	// FreePartial is free memory on pages that also hold something in use: fragmentation, which no lever gives back.
	FreePartial memory.Bytes
	// Coverage is the share of the reader's headers that could be read and made sense, between 0 and 1.
	Coverage float64
	// Details are further amounts and counts: those named in this package, and others that the reader's package has.
	Details map[string]int64
}

const (
	// MinCoverage is what a reader must have understood of its headers for its amounts to be reported: with less, all but
	// Coverage are dropped. It is the figure at which the errors of the research's tables were measured.
	MinCoverage = 0.95
	// exactCoverage is from which coverage on a gain is reported as one number: what was not read is then at most as much
	// as a prediction may err by, 2 %.
	exactCoverage = 0.98
)

// Understood reports whether the reader understood enough of its headers for its amounts to be reported.
func (u *Usage) Understood() bool { return u.Coverage >= MinCoverage }

// Bytes is a detail that is an amount.
func (u *Usage) Bytes(detail string) memory.Bytes { return memory.Bytes(max(u.Details[detail], 0)) }

// Resident is all that the reader knows of in RAM.
func (u *Usage) Resident() memory.Bytes { return u.InUse.Plus(u.FreeResident).Plus(u.FreePartial) }

// Unread is how much of its heap the reader made no sense of, where that is more than a prediction may err by: it may
// all be free. It is estimated: coverage is of addresses, and what is resident may be spread otherwise.
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
