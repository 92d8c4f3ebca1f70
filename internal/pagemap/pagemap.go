// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package pagemap draws maps of the memory of a process: which blocks are in use, free but resident, or absent. The
// size of a map is bounded: equal consecutive blocks are one run, and regions that are large or fragmented have larger
// blocks. A map also has the exact amounts of each region.
//
// It performs no I/O. The agent draws a map from the results of internal/attribution and stores it in a MemorySnapshot;
// `kubectl memfit map` renders it.
package pagemap

import (
	"cmp"
	"slices"

	"github.com/memfit/memfit/internal/memory"
)

// State is the state of a block, written as this letter.
type State byte

// The states of a block.
const (
	InUse  State = 'L' // all its resident memory is in use
	Mixed  State = 'M' // some of it is in use, and some is free
	Free   State = 'F' // all of it is free
	Absent State = 'A' // it has no resident memory
)

// Span is a range of addresses, from Start to before End.
type Span struct{ Start, End uint64 }

// Region is the input of a map. Spans are in ascending order and do not overlap.
type Region struct {
	Part    string // the name of a part of the container's memory
	Process int32  // the number of the process
	Span
	// Resident has the resident pages, Free those of them that are free.
	Resident, Free []Span
}

// Map is a drawing of regions of bounded size.
type Map struct {
	// Regions are in descending order of resident memory.
	Regions []DrawnRegion
	// Rest is the resident memory of regions that are not drawn.
	Rest memory.Bytes
}

// DrawnRegion is one region of a map.
type DrawnRegion struct {
	Part    string
	Process int32
	// Size is the size of the address range, Block of one block. The last block may be smaller.
	Size, Block memory.Bytes
	// Resident and Free are exact.
	Resident, Free memory.Bytes
	Runs           []Run
}

// Run is a number of consecutive blocks with the same state.
type Run struct {
	State  State
	Blocks int
}

const (
	// Page is the smallest block.
	Page       = memory.Bytes(4096)
	maxRegions = 48 // with the most resident memory; a process has some 20, or some hundred similar ones
	// maxText bounds the text of all runs. With some 200 bytes of numbers for each region, a map is below 32 KiB.
	maxText   = 20 << 10
	maxBlocks = 16384 // of one region: about a screen
)

// Draw draws a map, the smallest region first. Each region may use an equal share of the text that is left.
func Draw(regions []Region) Map {
	regions = slices.DeleteFunc(joined(regions), func(r Region) bool { return amount(r.Resident) == 0 })
	slices.SortStableFunc(regions, func(a, b Region) int { return cmp.Compare(amount(b.Resident), amount(a.Resident)) })
	var m Map
	for i := maxRegions; i < len(regions); i++ {
		m.Rest = m.Rest.Plus(amount(regions[i].Resident))
	}
	regions = regions[:min(len(regions), maxRegions)]
	m.Regions = make([]DrawnRegion, len(regions))
	left := maxText
	for n, i := range bySize(regions) {
		m.Regions[i] = draw(&regions[i], left/(len(regions)-n))
		left -= len(Text(m.Regions[i].Runs))
	}
	return m
}

// joined merges adjacent regions of the same part and process, because the kernel splits mappings.
func joined(regions []Region) []Region {
	var out []Region
	for _, r := range regions {
		if n := len(out) - 1; n >= 0 && out[n].End == r.Start && out[n].Part == r.Part && out[n].Process == r.Process {
			out[n].End = r.End
			out[n].Resident = append(slices.Clip(out[n].Resident), r.Resident...)
			out[n].Free = append(slices.Clip(out[n].Free), r.Free...)
			continue
		}
		out = append(out, r)
	}
	return out
}

// bySize returns the indices of regions, the smallest first.
func bySize(regions []Region) (order []int) {
	for i := range regions {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(regions[a].size(), regions[b].size()) })
	return order
}

// draw draws a region with the smallest blocks whose runs fit into most bytes of text.
func draw(r *Region, most int) DrawnRegion {
	resident := within(r.Resident, r.Span)
	free := common(within(r.Free, r.Span), resident)
	d := DrawnRegion{
		Part: r.Part, Process: r.Process, Size: r.size(), Block: Page,
		Resident: amount(resident), Free: amount(free),
	}
	for d.Size/d.Block > maxBlocks {
		d.Block *= 2
	}
	for {
		d.Runs = runs(r.Span, d.Block, resident, free)
		if len(d.Runs) <= 1 || len(Text(d.Runs)) <= most {
			return d
		}
		d.Block *= 2
	}
}

// runs returns the states of the blocks of a range.
func runs(all Span, block memory.Bytes, resident, free []Span) []Run {
	var out []Run
	for at := all.Start; at < all.End; at += uint64(block) { //nolint:gosec // a block has a size
		one := Span{at, min(at+uint64(block), all.End)} //nolint:gosec // a block has a size
		resident, free = dropBefore(resident, at), dropBefore(free, at)
		state := stateOf(covered(resident, one), covered(free, one))
		if n := len(out) - 1; n >= 0 && out[n].State == state {
			out[n].Blocks++
			continue
		}
		out = append(out, Run{state, 1})
	}
	return out
}

func stateOf(resident, free memory.Bytes) State {
	switch {
	case resident == 0:
		return Absent
	case free == 0:
		return InUse
	case free == resident:
		return Free
	}
	return Mixed
}

// Coarser merges pairs of blocks until no more than most remain. It returns the new runs and size of a block.
func Coarser(runs []Run, block memory.Bytes, most int) ([]Run, memory.Bytes) {
	for count(runs) > max(most, 1) {
		runs, block = halved(runs), block*2
	}
	return runs, block
}

func count(runs []Run) (n int) {
	for _, r := range runs {
		n += r.Blocks
	}
	return n
}

// halved merges each pair of blocks.
func halved(runs []Run) []Run {
	var out []Run
	add := func(state State, blocks int) {
		if n := len(out) - 1; n >= 0 && out[n].State == state {
			out[n].Blocks += blocks
		} else if blocks > 0 {
			out = append(out, Run{state, blocks})
		}
	}
	odd := State(0) // a block that waits for its neighbor
	for _, r := range runs {
		if odd != 0 && r.Blocks > 0 {
			add(both(odd, r.State), 1)
			r.Blocks, odd = r.Blocks-1, 0
		}
		add(r.State, r.Blocks/2)
		if r.Blocks%2 == 1 {
			odd = r.State
		}
	}
	if odd != 0 {
		add(odd, 1)
	}
	return out
}

// both returns the state of two merged blocks. Absent memory does not count.
func both(a, b State) State {
	switch {
	case a == b, b == Absent:
		return a
	case a == Absent:
		return b
	}
	return Mixed
}

// amount returns the total size of spans in bytes.
func amount(spans []Span) (sum memory.Bytes) {
	for _, s := range spans {
		sum = sum.Plus(s.size())
	}
	return sum
}

func (s Span) size() memory.Bytes {
	if s.End <= s.Start {
		return 0
	}
	return memory.Bytes(s.End - s.Start) //nolint:gosec // addresses of a process are below 2^57
}

func (s Span) and(t Span) Span { return Span{max(s.Start, t.Start), min(s.End, t.End)} }

// within cuts spans to a range, and drops overlaps with earlier ones.
func within(spans []Span, all Span) []Span {
	var out []Span
	reached := all.Start
	for _, s := range spans {
		if s = s.and(Span{reached, all.End}); s.size() > 0 {
			out, reached = append(out, s), s.End
		}
	}
	return out
}

// common returns the intersection of a and b.
func common(a, b []Span) []Span {
	var out []Span
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if both := a[i].and(b[j]); both.size() > 0 {
			out = append(out, both)
		}
		if a[i].End <= b[j].End {
			i++
		} else {
			j++
		}
	}
	return out
}

// dropBefore drops the spans that end before an address.
func dropBefore(spans []Span, at uint64) []Span {
	for len(spans) > 0 && spans[0].End <= at {
		spans = spans[1:]
	}
	return spans
}

// covered returns how many bytes of one the spans cover.
func covered(spans []Span, one Span) (sum memory.Bytes) {
	for _, s := range spans {
		if s.Start >= one.End {
			break
		}
		sum = sum.Plus(s.and(one).size())
	}
	return sum
}
