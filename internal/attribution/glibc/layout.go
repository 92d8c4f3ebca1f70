// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package glibc

import (
	"cmp"
	"slices"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/procmem"
)

// heapMax is HEAP_MAX_SIZE in bytes. All heaps begin at multiples of it, except that of the main arena. Heaps of other
// sizes (glibc.malloc.hugetlb=2 with glibc 2.35 to 2.41) are reserved huge pages, which RSS does not include; they are
// not inspected.
const heapMax = 64 << 20

// Offsets in struct malloc_state (malloc.c of each tag from 2.26 to 2.43), relative to its bins.
const (
	topAt       = -16
	binmapAt    = 2032
	nextAt      = 2048
	attachedAt  = 2064 // attached_threads
	systemAt    = 2072 // system_mem
	maxSystemAt = 2080 // max_system_mem
	stateEnd    = 2088
)

const (
	binCount   = 127
	fastBins   = 10 // classes of 32, 48 ... 176 bytes
	headerSize = 48 // sizeof(struct malloc_chunk)
	minChunk   = 32
	maxTcached = 1040 // the largest chunk that threads cache by default
	page       = procmem.PageSize
)

// layout has the offsets in struct malloc_state that differ between versions.
type layout struct {
	bins uint64 // offset of the bins
	fast uint64 // offset of the fast bins; 0: none
}

// layouts are tried in this order; only one is consistent with an arena.
var layouts = []layout{
	{bins: 112, fast: 16}, // 2.27 to 2.42
	{bins: 24},            // 2.43, which has no fast bins
	{bins: 104, fast: 8},  // 2.26
}

// heapHeaders has the sizes of struct heap_info: up to 2.34, and from 2.35. In the first heap of an arena, the arena
// follows this struct.
var heapHeaders = []uint64{0x20, 0x30}

// arena is a consistent struct malloc_state.
type arena struct {
	addr   uint64
	layout layout
	top    uint64
	next   uint64
	system uint64 // bytes obtained from the kernel
	fast   [fastBins]uint64
	heaps  []heap
	main   bool
}

// heap is a range of an arena, from start to end. Its chunks begin at first. arena.system counts its bytes from base,
// which differs from start only in static programs.
type heap struct {
	start, base, first, end uint64
}

// attempts bounds the reads of data that threads may change meanwhile.
const attempts = 3

// readArena reads the arena at an address. It returns false if the memory is not a consistent arena.
func readArena(probe *procmem.Probe, s *attribution.Snapshot, addr uint64) (arena, bool) {
	if addr%8 != 0 {
		return arena{}, false
	}
	var words [(112 + stateEnd) / 8]uint64
	for range attempts {
		for _, l := range layouts {
			state := words[:(l.bins+stateEnd)/8]
			if probe.Words(addr, state) != nil {
				continue
			}
			if a, ok := l.parse(s, addr, state); ok {
				return a, true
			}
		}
	}
	return arena{}, false
}

// parse reads an arena and checks its invariants: consistent sizes, and bins that are empty or point into memory. Two
// bins may be inconsistent, because a thread may be moving a chunk between them.
func (l layout) parse(s *attribution.Snapshot, addr uint64, words []uint64) (arena, bool) {
	at := func(offset int) uint64 { return words[int(l.bins)/8+offset/8] } //nolint:gosec // the offset of the bins is at most 112
	a := arena{addr: addr, layout: l, top: at(topAt), next: at(nextAt), system: at(systemAt)}
	const maxThreads = 4 << 20 // Linux has no more
	switch {
	case a.system == 0 || a.system%8 != 0 || a.system > at(maxSystemAt): // static programs: not whole pages
		return arena{}, false
	case at(attachedAt) >= maxThreads:
		return arena{}, false
	case !mapped(s, a.next) || !mapped(s, a.top) || a.top%16 != 0:
		return arena{}, false
	}
	const maxMoving = 2
	moving := 0
	for i := range binCount {
		self := addr + l.bins + uint64(16*i) - 16
		forward, back := at(16*i), at(16*i+8)
		empty := forward == self && back == self
		full := forward != self && back != self && forward%16 == 0 && back%16 == 0 &&
			mapped(s, forward) && mapped(s, back)
		if !empty && !full {
			moving++
		}
	}
	if moving > maxMoving {
		return arena{}, false
	}
	if l.fast != 0 {
		copy(a.fast[:], words[l.fast/8:])
	}
	return a, true
}

// mapped reports whether an address may be a chunk. After the mappings were read, heaps may have grown into
// reserved memory, and [heap], which the main arena uses, past its end.
func mapped(s *attribution.Snapshot, addr uint64) bool {
	m := s.MappingOf(addr)
	if m == nil {
		i, _ := slices.BinarySearchFunc(s.Mappings, addr, func(m procmem.Mapping, a uint64) int {
			return cmp.Compare(m.Start, a)
		})
		return i > 0 && s.Mappings[i-1].Path == "[heap]" && addr-s.Mappings[i-1].End < heapMax
	}
	return !m.Has(procmem.Shared)
}

func writable(s *attribution.Snapshot, addr uint64) bool {
	m := s.MappingOf(addr)
	return m != nil && m.Has(procmem.Readable|procmem.Writable) && !m.Has(procmem.Shared)
}
