// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pagemap

import (
	"cmp"
	"slices"

	"github.com/memfit/memfit/internal/memory"
)

// State is what a block holds. It is written as this letter.
type State byte

// The states of a block.
const (
	// InUse: what is resident of the block is in use.
	InUse State = 'L'
	// Mixed: some of what is resident is in use, and some is free.
	Mixed State = 'M'
	// Free: all that is resident of the block is free: its owner could give it back.
	Free State = 'F'
	// Absent: nothing of the block is resident.
	Absent State = 'A'
)

// Span is a range of addresses, from Start to before End.
type Span struct{ Start, End uint64 }

// Region is what a map is drawn from. Spans are in ascending order and do not overlap.
type Region struct {
	// Part is the name of the part of the container's memory that it belongs to, Process the number of its process.
	Part    string
	Process int32
	Span
	// Resident are its pages in memory, Free those whole pages of them that hold nothing.
	Resident, Free []Span
}

// Map is a bounded picture of regions.
type Map struct {
	// Regions have the most resident memory first.
	Regions []Drawn
	// Rest is the resident memory of the regions that are not drawn.
	Rest memory.Bytes
}

// Drawn is one region of a map.
type Drawn struct {
	Part    string
	Process int32
	// Size is the whole of its addresses, Block what one block represents; the last block may represent less.
	Size, Block memory.Bytes
	// Resident and Free are exact.
	Resident, Free memory.Bytes
	Runs           []Run
}

// Run is a number of equal blocks in a row.
type Run struct {
	State  State
	Blocks int
}

const (
	// Page is the smallest block.
	Page = memory.Bytes(4096)
	// maxRegions are drawn: those with the most resident memory. A process has some 20 regions that matter, or some
	// hundred equal ones, of which more show nothing new.
	maxRegions = 48
	// maxText is what the runs of all regions together take as text at most. With maxRegions times some 200 bytes for
	// the numbers beside them, a map stays below 32 KiB of the 1.5 MiB that an object may have.
	maxText = 20 << 10
	// maxBlocks is how fine a region is drawn at most: what a screen shows.
	maxBlocks = 16384
)

// Draw makes a map. Small regions are drawn first, each with its share of the bytes, and what they leave goes to the
// larger ones.
func Draw(regions []Region) Map {
	regions = slices.DeleteFunc(joined(regions), func(r Region) bool { return amount(r.Resident) == 0 })
	slices.SortStableFunc(regions, func(a, b Region) int { return cmp.Compare(amount(b.Resident), amount(a.Resident)) })
	var m Map
	for i := maxRegions; i < len(regions); i++ {
		m.Rest = m.Rest.Plus(amount(regions[i].Resident))
	}
	regions = regions[:min(len(regions), maxRegions)]
	m.Regions = make([]Drawn, len(regions))
	left := maxText
	for n, i := range bySize(regions) {
		m.Regions[i] = draw(&regions[i], left/(len(regions)-n))
		left -= len(Text(m.Regions[i].Runs))
	}
	return m
}

// joined puts neighbors of one part into one region: the kernel splits mappings for reasons of its own.
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

// bySize are the indices of regions, the smallest first.
func bySize(regions []Region) []int {
	order := make([]int, len(regions))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(regions[a].End-regions[a].Start, regions[b].End-regions[b].Start)
	})
	return order
}

// draw takes the smallest blocks whose runs fit into so many bytes of text.
func draw(r *Region, most int) Drawn {
	resident := within(r.Resident, r.Span)
	free := common(within(r.Free, r.Span), resident)
	d := Drawn{
		Part: r.Part, Process: r.Process, Size: memory.Bytes(r.End - r.Start), Block: Page, //nolint:gosec // below 2^57
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

// runs colors the blocks of a range.
func runs(all Span, block memory.Bytes, resident, free []Span) []Run {
	var out []Run
	for at := all.Start; at < all.End; at += uint64(block) { //nolint:gosec // a block has a size
		one := Span{at, min(at+uint64(block), all.End)} //nolint:gosec // a block has a size
		resident, free = from(resident, at), from(free, at)
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

// Coarser draws the same region in at most so many blocks, each some power of two of those before.
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

// halved puts two blocks into one each.
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

// both is the state of a block of two.
func both(a, b State) State {
	switch {
	case a == b, b == Absent:
		return a
	case a == Absent:
		return b
	}
	return Mixed
}
