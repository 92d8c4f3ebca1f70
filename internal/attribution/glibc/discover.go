// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package glibc

import (
	"cmp"
	"context"
	"slices"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/procmem"
)

// Bounds of the search. A process has 8 arenas for each processor by default, and 65,536 heaps are 4 TiB.
const (
	maxHeaps  = 1 << 16
	maxArenas = 1 << 12
	maxData   = 64 << 20 // bytes of variables that are searched for the main arena
	maxTries  = 1 << 13  // failed attempts to read an arena
	maxMains  = 8        // main arenas; a process has one for each glibc that it loads
)

// finder finds the arenas of a process.
type finder struct {
	s      *attribution.Snapshot
	probe  *procmem.Probe
	heaps  map[uint64]heapInfo
	arenas []arena
	tries  int // failed attempts left
}

// heapInfo is struct heap_info.
type heapInfo struct {
	arena, prev, size uint64
}

// find returns the arenas of a process, including the main arena, with their heaps.
func find(ctx context.Context, s *attribution.Snapshot, probe *procmem.Probe) ([]arena, error) {
	f := finder{s: s, probe: probe, heaps: map[uint64]heapInfo{}, tries: maxTries}
	if err := f.findHeaps(ctx); err != nil {
		return nil, err
	}
	f.firstArenas()
	f.ring()
	if !slices.ContainsFunc(f.arenas, func(a arena) bool { return a.main }) {
		if err := f.findMain(ctx); err != nil {
			return nil, err
		}
	}
	f.assignHeaps()
	return f.arenas, nil
}

// findHeaps reads the header of a heap at each multiple of 64 MiB in anonymous memory.
func (f *finder) findHeaps(ctx context.Context) error {
	for i := range f.s.Mappings {
		m := &f.s.Mappings[i]
		if !mayHaveHeap(m) || procmem.AlignUp(m.Start, heapMax) >= m.End {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		runs, err := f.s.Memory.Resident(m.Start, m.End)
		if err != nil {
			return err
		}
		for _, run := range runs {
			for at := procmem.AlignUp(run.Start, heapMax); at < run.End() && len(f.heaps) < maxHeaps; at += heapMax {
				f.tryHeap(at)
			}
		}
	}
	return nil
}

// mayHaveHeap reports whether a mapping may have a heap or a large block.
func mayHaveHeap(m *procmem.Mapping) bool {
	return m.Anonymous() && m.Has(procmem.Readable|procmem.Writable) && m.RSS > 0 && m.Path != "[stack]"
}

// tryHeap stores the header at an address if it is consistent.
func (f *finder) tryHeap(at uint64) {
	var w [4]uint64 // struct heap_info: ar_ptr, prev, size, mprotect_size
	if f.probe.Words(at, w[:]) != nil {
		return
	}
	h := heapInfo{arena: w[0], prev: w[1], size: w[2]}
	offset := h.arena & (heapMax - 1)
	protected := w[3]
	linked := slices.Contains(heapHeaders, offset) && h.prev%heapMax == 0 && (h.prev != 0 || h.arena == at+offset)
	sized := h.size > 0 && h.size <= protected && protected <= heapMax && h.size%page == 0 && protected%page == 0
	if linked && sized && f.covered(at, at+h.size) {
		f.heaps[at] = h
	}
}

// covered reports whether a range is memory that the process can write, in one or more mappings without a gap.
func (f *finder) covered(start, end uint64) bool {
	for start < end {
		if !writable(f.s, start) {
			return false
		}
		start = f.s.MappingOf(start).End
	}
	return true
}

// firstArenas reads the arenas that are in their first heap: all except the main arena.
func (f *finder) firstArenas() {
	for at, h := range f.heaps {
		if h.prev == 0 && h.arena-at < heapMax && len(f.arenas) < maxArenas {
			f.add(h.arena)
		}
	}
}

// add adds the arena at an address, and reports whether there is one.
func (f *finder) add(addr uint64) bool {
	if f.tries == 0 {
		return false
	}
	a, ok := readArena(f.probe, f.s, addr)
	if !ok {
		f.tries--
		return false
	}
	_, inHeap := f.heaps[addr&^uint64(heapMax-1)]
	a.main = !inHeap || !slices.Contains(heapHeaders, addr%heapMax)
	f.arenas = append(f.arenas, a)
	return true
}

// ring follows the links between arenas, and so finds main arenas. It drops arenas that are not in a ring with one.
func (f *finder) ring() {
	known := map[uint64]bool{}
	for _, a := range f.arenas {
		known[a.addr] = true
	}
	for i := 0; i < len(f.arenas) && len(f.arenas) < maxArenas; i++ {
		if next := f.arenas[i].next; !known[next] {
			known[next] = true
			f.add(next)
		}
	}
	ring, mains, next := map[uint64]bool{}, 0, map[uint64]uint64{}
	for _, a := range f.arenas {
		next[a.addr] = a.next
	}
	for _, a := range f.arenas {
		if a.main && !ring[a.addr] && mains < maxMains {
			mains++
			follow(a.addr, next, ring)
		}
	}
	f.arenas = slices.DeleteFunc(f.arenas, func(a arena) bool { return !ring[a.addr] })
}

// follow adds to ring the arenas from first along next, if these lead back to first.
func follow(first uint64, next map[uint64]uint64, ring map[uint64]bool) {
	members := []uint64{first}
	for at := next[first]; at != first; at = next[at] {
		if _, ok := next[at]; !ok || len(members) > len(next) {
			return
		}
		members = append(members, at)
	}
	for _, m := range members {
		ring[m] = true
	}
}

// findMain searches the variables of mapped files for the main arena of a process with one arena, whose next is itself.
func (f *finder) findMain(ctx context.Context) error {
	left := uint64(maxData)
	for i := range f.s.Mappings {
		m := &f.s.Mappings[i]
		if !f.variables(i) || m.RSS == 0 || m.Size() > left {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		left -= m.Size()
		if f.searchMain(m) {
			return nil
		}
	}
	return nil
}

// variables reports whether mapping i has variables of a file: it is a writable part of the file, or follows one.
func (f *finder) variables(i int) bool {
	m := &f.s.Mappings[i]
	if !m.Has(procmem.Readable|procmem.Writable) || m.Has(procmem.Shared) {
		return false
	}
	if m.Inode != 0 {
		return true
	}
	return i > 0 && m.Path == "" && f.s.Mappings[i-1].Inode != 0 && f.s.Mappings[i-1].End == m.Start
}

func (f *finder) searchMain(m *procmem.Mapping) bool {
	w, err := procmem.NewWindow(f.s.Memory, m.Start, m.End)
	if err != nil {
		return false
	}
	defer w.Close()
	for _, run := range w.Runs() {
		for at := run.Start; at < run.End(); at += 8 {
			value, err := w.Word(at)
			if err != nil {
				at = (at | (page - 1)) - 7 // the next page
				continue
			}
			for _, l := range layouts {
				if value == at-l.bins-nextAt && f.add(value) {
					return true
				}
			}
		}
	}
	return false
}

// assignHeaps assigns heaps to the arenas that their headers name, and the [heap] to the main arena.
func (f *finder) assignHeaps() {
	index := map[uint64]int{}
	for i := range f.arenas {
		index[f.arenas[i].addr] = i
	}
	for at, h := range f.heaps {
		i, ok := index[h.arena]
		if !ok || f.arenas[i].main {
			continue
		}
		a := &f.arenas[i]
		first := at + h.arena&(heapMax-1) // after the header, which is as long in all heaps
		if at == h.arena&^uint64(heapMax-1) {
			first = procmem.AlignUp(a.addr+a.layout.bins+stateEnd, 16)
		}
		a.heaps = append(a.heaps, heap{start: at, base: at, first: first, end: at + h.size})
	}
	for i := range f.arenas {
		a := &f.arenas[i]
		if a.main {
			f.mainHeap(a)
		}
		slices.SortFunc(a.heaps, func(x, y heap) int { return cmp.Compare(x.start, y.start) })
	}
}

// mainHeap sets the heap of the main arena, which ends with the top.
func (f *finder) mainHeap(a *arena) {
	m := f.s.MappingOf(a.top)
	if m == nil {
		return
	}
	start, end := extent(f.s, m)
	h := heap{start: start, base: start, first: start, end: end}
	size, err := f.probe.Word(a.top + 8)
	if err != nil {
		return
	}
	h.end = a.top + size&^7
	if h.end < a.top || h.end > end {
		h.end = end
	}
	// A static program uses some of the [heap] before malloc.
	if base := h.end - a.system; m.Path == "[heap]" && base > start && base < a.top {
		h.base, h.first = base, procmem.AlignUp(base, 16)
	}
	a.heaps = []heap{h}
}

// extent returns the range of similar adjacent mappings around m: madvise for huge pages splits a heap into several.
func extent(s *attribution.Snapshot, m *procmem.Mapping) (start, end uint64) {
	start, end = m.Start, m.End
	for before := s.MappingOf(start - 1); before != nil && alike(before, m); before = s.MappingOf(start - 1) {
		start = before.Start
	}
	for after := s.MappingOf(end); after != nil && alike(after, m); after = s.MappingOf(end) {
		end = after.End
	}
	return start, end
}

func alike(a, b *procmem.Mapping) bool {
	return a.Path == b.Path && a.Perms == b.Perms && a.Inode == 0 && b.Inode == 0
}

func alignDown(addr, unit uint64) uint64 { return addr &^ (unit - 1) }
