// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package glibc

import (
	"context"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/procmem"
)

// sums are what a walk found. They are bytes, resident or not, unless the name says so.
type sums struct {
	walked uint64 // bytes from the base of the heap to where the walk ended
	inUse  uint64 // resident
	given  uint64 // to the program, resident or not
	cached uint64 // in caches of threads: free for their next malloc, in use for everybody else
	fast   uint64 // in fast bins, which malloc_trim empties
	free   uint64 // free chunks, those of fast bins included, without the top
	top    uint64

	whole         uint64 // pages that only free chunks lie on
	wholeResident uint64
	topResident   uint64 // whole resident pages of the top
	topReturnable uint64 // the part of them that malloc_trim gives back

	resident uint64 // all of the heap
}

func (s *sums) add(o sums) {
	s.walked += o.walked
	s.inUse += o.inUse
	s.given += o.given
	s.cached += o.cached
	s.fast += o.fast
	s.free += o.free
	s.top += o.top
	s.whole += o.whole
	s.wholeResident += o.wholeResident
	s.topResident += o.topResident
	s.topReturnable += o.topReturnable
	s.resident += o.resident
}

// Bits of the word that holds a chunk's size.
const (
	isPrevUsed = 1
	isMapped   = 2
	allBits    = 7
)

// walker goes over the chunks of one heap, while threads of the process allocate and free.
type walker struct {
	ctx    context.Context
	window *procmem.Window
	probe  *procmem.Probe
	arena  *arena
	heap   heap
	caches *caches

	at, top, end uint64
	span         span
	sums
	wanted  bool          // keep where free pages lie
	located []procmem.Run // in this walk
}

// span is a range of neighboring free chunks, which malloc_trim sees as one.
type span struct {
	start, end uint64
}

// stumbles are how often a walk may go on where a header made no sense, because a thread was just changing it.
const stumbles = 16

// walk goes from the first chunk to the end of the heap, and again from the first where it did not come there; the
// longest walk counts. size is how many bytes there were to walk.
func (w *walker) walk() (best sums, free []procmem.Run, size uint64) {
	size = w.heap.end - w.heap.base
	for range 1 + attempts {
		w.sums, w.span, w.at, w.located = sums{}, span{}, w.heap.first, nil
		w.locate()
		done := w.chunks()
		w.flush()
		w.walked = w.at - w.heap.base
		if w.walked >= best.walked {
			best, free, size = w.sums, w.located, max(w.end-w.heap.base, w.walked)
		}
		if done || w.ctx.Err() != nil || w.window.Refresh() != nil {
			break
		}
	}
	return best, free, size
}

// freePages keeps a range of whole free pages, where somebody wants to know them.
func (w *walker) freePages(start, end uint64) {
	if w.wanted && start < end && len(w.located) < attribution.MostFree {
		w.located = append(w.located, procmem.Run{Start: start, Length: end - start})
	}
}

// locate reads where the arena's top is and where the heap ends by now.
func (w *walker) locate() {
	w.end, w.top = w.heap.end, w.arena.top
	if top, err := w.probe.Word(w.arena.addr + w.arena.layout.bins - 16); err == nil {
		w.top = top
	}
	if w.arena.main {
		size, err := w.probe.Word(w.top + 8)
		if end := w.top + size&^allBits; err == nil && w.window.Covers(w.top) && w.window.Covers(end-1) {
			w.end = end
		}
		return
	}
	if size, err := w.probe.Word(w.heap.start + 16); err == nil && size%page == 0 && size > 0 && size <= heapMax {
		w.end = w.heap.start + size
	}
}

// chunks walks on from w.at and tells whether it came to the end.
func (w *walker) chunks() bool {
	for left := stumbles; left > 0; left-- {
		if w.walkOn() {
			return true
		}
		if w.ctx.Err() != nil || w.window.Refresh() != nil {
			return false
		}
		w.locate()
	}
	return false
}

// patience is how many chunks are walked before the context is asked, about 2 ms.
const patience = 1 << 16

// walkOn walks until the end, which is true, or until a header makes no sense, and leaves w.at before that.
func (w *walker) walkOn() bool {
	size, err := w.window.Word(w.at + 8)
	for steps := 1; err == nil; steps++ {
		if steps%patience == 0 && w.ctx.Err() != nil {
			return false
		}
		length := size &^ allBits
		next := w.at + length
		switch {
		case w.at == w.top && next == w.end:
			w.count(next)
			return true
		case w.fence(size):
			w.at = w.end
			return true
		case length < minChunk || length%16 != 0 || next >= w.end || next < w.at || size&isMapped != 0:
			return false
		}
		var after uint64
		if after, err = w.window.Word(next + 8); err != nil || !w.chunk(length, after&isPrevUsed != 0) {
			return false
		}
		w.at, size = next, after
	}
	return false
}

// fence tells whether a heap that is not its arena's last ends here: its last 32 bytes are chunks of 16 and of no
// bytes, or for the main arena, two of 16.
func (w *walker) fence(size uint64) bool {
	switch left := w.end - w.at; size &^ allBits {
	case 0:
		return left == 16
	case 16:
		return left == 32 || left == 16
	}
	return false
}

// count counts the top. Fast chunks right before it become part of it when malloc_trim empties their bins.
func (w *walker) count(end uint64) {
	start := w.at
	if w.span.end == start {
		start = w.span.start
	}
	w.sums.top = end - w.at
	from, to := alignUp(start+headerSize, page), alignDown(end, page)
	w.freePages(from, to)
	w.topResident = w.window.ResidentBytes(from, to)
	// The main arena gives the end of the [heap] back; what is at the top of another is kept by every version. Where
	// the end is not that of a page, the kernel takes whole pages all the same.
	if free := end - start; w.arena.main && free > minChunk+1 {
		cut := end - alignDown(free-minChunk-1, w.caches.trimUnit)
		w.topReturnable = w.window.ResidentBytes(max(from, alignUp(cut, page)), to)
	}
	w.span = span{}
	w.at = end
}

// chunk counts the chunk at w.at; false says that its header and the next one contradict each other.
func (w *walker) chunk(length uint64, used bool) bool {
	if !used {
		before, err := w.window.Word(w.at + length)
		if err != nil || before != length {
			return false
		}
		w.freed(length)
		return true
	}
	switch w.kept(length) {
	case inFastBin:
		w.fast += length
		w.freed(length)
		return true
	case inCache:
		w.cached += length
	default:
		w.given += length
		w.inUse += w.residentOf(length)
	}
	w.flush()
	return true
}

// residentOf is how much of the chunk at w.at is in memory: a program need not touch all that it asks for.
func (w *walker) residentOf(length uint64) uint64 {
	const large = 2 * page // smaller ones share their pages with others
	if length < large {
		return length
	}
	return w.window.ResidentBytes(w.at, w.at+length)
}

func (w *walker) freed(length uint64) {
	w.free += length
	if w.span.end != w.at {
		w.flush()
		w.span.start = w.at
	}
	w.span.end = w.at + length
}

// flush counts the whole pages of a span of free chunks. The first 48 bytes hold its header and links, also the last
// chunk's end is left out where it is on a page with another.
func (w *walker) flush() {
	from, to := alignUp(w.span.start+headerSize, page), alignDown(w.span.end, page)
	if w.span.end > 0 && from < to {
		w.whole += to - from
		w.freePages(from, to)
		w.wholeResident += w.window.ResidentBytes(from, to)
	}
	w.span = span{}
}
