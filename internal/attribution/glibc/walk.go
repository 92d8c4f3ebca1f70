// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package glibc

import (
	"context"
	"slices"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/procmem"
)

// sums are the results of a walk in bytes, resident or not, unless the name includes it.
type sums struct {
	walked uint64 // bytes from the base of the heap to the end of the walk, without missed
	missed uint64 // bytes of inconsistent chunks
	inUse  uint64 // resident
	given  uint64 // allocated to the program, resident or not
	cached uint64 // in caches of threads, free only for their next malloc
	free   uint64 // free chunks, fast bins included (malloc_trim empties them), without the top

	whole, wholeResident uint64 // pages with only free chunks
	topResident          uint64 // whole resident pages of the top
	topReturnable        uint64 // the part that malloc_trim returns to the OS
	resident             uint64 // all of the heap
}

// add adds another heap's sums, without missed chunks, which concern one walk.
func (s *sums) add(o sums) {
	s.walked += o.walked
	s.inUse += o.inUse
	s.given += o.given
	s.cached += o.cached
	s.free += o.free
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

// walker walks the chunks of one heap, while threads of the process allocate and free.
type walker struct {
	ctx    context.Context
	window *procmem.Window
	probe  *procmem.Probe
	arena  *arena
	heap   heap
	caches *caches

	at, top, end uint64
	progress
	wanted bool // keep the ranges of free pages

	marks  []mark
	marked uint64 // how far apart they are, in bytes
}

// progress is the state of a walk.
type progress struct {
	sums

	span    span
	located []procmem.Run
}

// mark is an earlier state of a walk.
type mark struct {
	at uint64
	progress
}

// span is a range of neighboring free chunks, which malloc_trim treats as one.
type span struct {
	start, end uint64
}

const (
	stumbles = 512 // how often a walk may continue after an inconsistent header; attempts: at the same place
	// maxMarks bounds the marks of one heap, at least minMarkDistance bytes apart.
	maxMarks        = 512
	minMarkDistance = 64 << 10
)

// walk walks from the first chunk to the end of the heap of size bytes; the longest attempt counts.
//
// A header is inconsistent while a thread writes it, or if its chunk was merged with the previous one. So walk returns
// to an earlier mark, twice as far each time it ends at the same place, at last to the first chunk; only starting over
// missed half of a heap at times. A chunk that remains inconsistent belongs to a waiting thread, and is skipped.
func (w *walker) walk() (best sums, free []procmem.Run, size uint64) {
	size = w.heap.end - w.heap.base
	w.at = w.heap.first
	w.marked = max(minMarkDistance, size/maxMarks)
	w.marks = []mark{{at: w.at}}
	var last, again uint64
	back := 0
	for range stumbles {
		w.locate()
		done := w.walkOn()
		if w.reached() >= best.walked {
			best, free = w.found()
			size = max(w.end-w.heap.base, best.walked)
		}
		if done || w.ctx.Err() != nil || w.window.Refresh() != nil {
			break
		}
		stuck := w.at
		if back *= 2; stuck != last {
			last, back = stuck, 1
		}
		switch {
		case back < max(2*len(w.marks), 2<<attempts) && again < attempts*size:
			w.goBack(back)
			again += stuck - w.at
		case !w.leaveOut():
			return best, free, size
		}
	}
	return best, free, size
}

// reached returns how far the walk has come, without skipped chunks.
func (w *walker) reached() uint64 { return w.at - w.heap.base - w.missed }

// found returns the results so far.
func (w *walker) found() (sums, []procmem.Run) {
	now := w.progress
	w.located = slices.Clip(w.located) // later appends must not overwrite kept results
	w.flush()
	all, located := w.sums, w.located
	all.walked = w.reached()
	w.progress = now
	return all, located
}

// mark saves the state of the walk from time to time.
func (w *walker) mark() {
	if last := len(w.marks) - 1; w.at-w.marks[last].at >= w.marked && len(w.marks) < 2*maxMarks {
		w.marks = append(w.marks, mark{w.at, w.progress})
	}
}

// goBack restores the state from n marks ago, at most the first.
func (w *walker) goBack(marks int) {
	last := max(len(w.marks)-marks, 0)
	w.at, w.progress = w.marks[last].at, w.marks[last].progress
	w.located = slices.Clip(w.located)
	w.marks = w.marks[:last+1]
}

// leaveOut skips the inconsistent chunk at w.at if the next one is consistent.
func (w *walker) leaveOut() bool {
	size, err := w.window.Word(w.at + 8)
	length := size &^ allBits
	next := w.at + length
	if err != nil || !w.fits(size, next) {
		return false
	}
	if size, err = w.window.Word(next + 8); err != nil {
		return false
	}
	behind := next + size&^allBits
	if next == w.top && behind == w.end {
		w.leave(next)
		return true
	}
	if !w.fits(size, behind) {
		return false
	}
	after, err := w.window.Word(behind + 8)
	if err != nil {
		return false
	}
	if after&isPrevUsed == 0 {
		if before, err := w.window.Word(behind); err != nil || before != behind-next {
			return false
		}
	}
	w.leave(next)
	return true
}

func (w *walker) leave(next uint64) {
	w.flush()
	w.missed += next - w.at
	w.at = next
}

// fits reports whether a chunk may have this size at this place.
func (w *walker) fits(size, next uint64) bool {
	length := size &^ allBits
	return length >= minChunk && length%16 == 0 && next < w.end && next >= w.at && size&isMapped == 0
}

// freePages keeps a range of whole free pages if a map is requested.
func (w *walker) freePages(start, end uint64) {
	if w.wanted && start < end && len(w.located) < attribution.MaxFree {
		w.located = append(w.located, procmem.Run{Start: start, Length: end - start})
	}
}

// locate reads the current top of the arena and end of the heap.
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

// patience is the number of chunks between checks of the context, about 2 ms.
const patience = 1 << 16

// walkOn walks to the end and returns true, or stops at an inconsistent header with w.at before it.
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
		case !w.fits(size, next):
			return false
		}
		var after uint64
		if after, err = w.window.Word(next + 8); err != nil || !w.chunk(length, after&isPrevUsed != 0) {
			return false
		}
		w.at, size = next, after
		w.mark()
	}
	return false
}

// fence reports whether a heap that is not its arena's last ends here: its last 32 bytes are chunks of 16 and 0 bytes,
// or for the main arena, two of 16.
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
	from, to := procmem.AlignUp(start+headerSize, page), alignDown(end, page)
	w.freePages(from, to)
	w.topResident = w.window.ResidentBytes(from, to)
	// The main arena returns the end of the [heap], in whole pages; every version keeps the top of other arenas.
	if free := end - start; w.arena.main && free > minChunk+1 {
		cut := end - alignDown(free-minChunk-1, w.caches.trimUnit)
		w.topReturnable = w.window.ResidentBytes(max(from, procmem.AlignUp(cut, page)), to)
	}
	w.span = span{}
	w.at = end
}

// chunk counts the chunk at w.at; false: its header contradicts the next one.
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

// residentOf returns the resident bytes of the chunk at w.at: a program may not touch all of it.
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

// flush counts the whole pages of a span of free chunks. The first 48 bytes hold its header and links, and the end is
// excluded where it shares a page with another chunk.
func (w *walker) flush() {
	from, to := procmem.AlignUp(w.span.start+headerSize, page), alignDown(w.span.end, page)
	if w.span.end > 0 && from < to {
		w.whole += to - from
		w.freePages(from, to)
		w.wholeResident += w.window.ResidentBytes(from, to)
	}
	w.span = span{}
}
