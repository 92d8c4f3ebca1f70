// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package glibc

import (
	"context"
	"slices"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/procmem"
)

// sums has the results of a walk in bytes, resident or not, unless the name or comment of a field restricts it.
type sums struct {
	walked    uint64 // bytes from the base of the heap to the end of the walk, without missed
	missed    uint64 // bytes of skipped inconsistent chunks
	inUse     uint64 // resident
	allocated uint64 // allocated to the program, resident or not
	cached    uint64 // in thread caches: free only for the next malloc of their thread
	free      uint64 // free chunks without the top, including fast bins (malloc_trim empties them)

	whole, wholeResident uint64 // whole pages inside free chunks
	topResident          uint64 // whole resident pages of the top
	topReturnable        uint64 // the part of topResident that malloc_trim returns
	resident             uint64 // of the whole heap
}

// add adds the sums of another heap, except missed, which is used only during a walk.
func (s *sums) add(o sums) {
	s.walked += o.walked
	s.inUse += o.inUse
	s.allocated += o.allocated
	s.cached += o.cached
	s.free += o.free
	s.whole += o.whole
	s.wholeResident += o.wholeResident
	s.topResident += o.topResident
	s.topReturnable += o.topReturnable
	s.resident += o.resident
}

// Flags in the word that holds a chunk's size.
const (
	isPrevUsed = 1 // the previous chunk is in use
	isMapped   = 2 // the chunk has its own mapping
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

	at, top, end uint64 // the current chunk, the top of the arena, the end of the heap
	progress
	keepFree bool // return the ranges of free pages

	marks     []mark
	markEvery uint64 // bytes between marks
}

// progress is the state of a walk.
type progress struct {
	sums

	span      span
	freePages []procmem.Run
}

// mark is the state of a walk at an earlier chunk.
type mark struct {
	at uint64
	progress
}

// span is a range of neighboring free chunks, which malloc_trim treats as one.
type span struct {
	start, end uint64
}

const (
	maxResumes = 512 // how often a walk may resume after an inconsistent header
	// maxMarks bounds the marks of one heap. They are at least minMarkDistance bytes apart.
	maxMarks        = 512
	minMarkDistance = 64 << 10
)

// walk walks from the first chunk to the end of the heap. It returns the results of the attempt that came furthest, and
// the size of the heap in bytes.
//
// A header is inconsistent while a thread writes it, or if its chunk was merged with the previous one. walk then
// returns to an earlier mark. Each time it stops at the same chunk, it goes back twice as many marks, at last to the
// first chunk; with only complete restarts, it missed half of a heap at times. A chunk that remains inconsistent
// belongs to a waiting thread, and is skipped.
func (w *walker) walk() (best sums, free []procmem.Run, size uint64) {
	size = w.heap.end - w.heap.base
	w.at = w.heap.first
	w.markEvery = max(minMarkDistance, size/maxMarks)
	w.marks = []mark{{at: w.at}}
	var last, again uint64 // the chunk of the last stop; bytes that were walked again
	back := 0              // marks to go back
	for range maxResumes {
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
		back *= 2
		if stuck != last {
			last, back = stuck, 1
		}
		switch {
		case back < max(2*len(w.marks), 2<<attempts) && again < attempts*size:
			w.goBack(back)
			again += stuck - w.at
		case !w.skipChunk():
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
	w.freePages = slices.Clip(w.freePages) // later appends must not overwrite kept results
	w.flush()
	all, freePages := w.sums, w.freePages
	all.walked = w.reached()
	w.progress = now
	return all, freePages
}

// mark saves the state of the walk every markEvery bytes.
func (w *walker) mark() {
	if last := len(w.marks) - 1; w.at-w.marks[last].at >= w.markEvery && len(w.marks) < 2*maxMarks {
		w.marks = append(w.marks, mark{w.at, w.progress})
	}
}

// goBack restores the state that many marks ago, at most at the first mark.
func (w *walker) goBack(marks int) {
	last := max(len(w.marks)-marks, 0)
	w.at, w.progress = w.marks[last].at, w.marks[last].progress
	w.freePages = slices.Clip(w.freePages)
	w.marks = w.marks[:last+1]
}

// skipChunk skips the inconsistent chunk at w.at if the next chunk is consistent.
func (w *walker) skipChunk() bool {
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
		w.skipTo(next)
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
	w.skipTo(next)
	return true
}

func (w *walker) skipTo(next uint64) {
	w.flush()
	w.missed += next - w.at
	w.at = next
}

// fits reports whether a chunk may have this size at this place.
func (w *walker) fits(size, next uint64) bool {
	length := size &^ allBits
	return length >= minChunk && length%16 == 0 && next < w.end && next >= w.at && size&isMapped == 0
}

// keepRange stores a range of whole free pages if the caller wants it.
func (w *walker) keepRange(start, end uint64) {
	if w.keepFree && start < end && len(w.freePages) < attribution.MaxFree {
		w.freePages = append(w.freePages, procmem.Run{Start: start, Length: end - start})
	}
}

// locate reads the current top of the arena, and the end of the heap.
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

// checkEvery is the number of chunks (about 2 ms) between checks of the context.
const checkEvery = 1 << 16

// walkOn walks to the end and returns true, or stops before an inconsistent chunk and returns false.
func (w *walker) walkOn() bool {
	size, err := w.window.Word(w.at + 8)
	for steps := 1; err == nil; steps++ {
		if steps%checkEvery == 0 && w.ctx.Err() != nil {
			return false
		}
		length := size &^ allBits
		next := w.at + length
		switch {
		case w.at == w.top && next == w.end:
			w.countTop(next)
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

// fence reports whether a heap that is not the last of its arena ends at w.at, with chunks of 16 and 0 bytes, or for
// the main arena two of 16.
func (w *walker) fence(size uint64) bool {
	switch left := w.end - w.at; size &^ allBits {
	case 0:
		return left == 16
	case 16:
		return left == 32 || left == 16
	}
	return false
}

// countTop counts the top. malloc_trim empties fast bins and merges their chunks directly before the top with it.
func (w *walker) countTop(end uint64) {
	start := w.at
	if w.span.end == start {
		start = w.span.start
	}
	from, to := procmem.AlignUp(start+headerSize, page), alignDown(end, page)
	w.keepRange(from, to)
	w.topResident = w.window.ResidentBytes(from, to)
	// malloc_trim shortens the [heap] of the main arena, in whole pages. It keeps the tops of other arenas.
	if free := end - start; w.arena.main && free > minChunk+1 {
		cut := end - alignDown(free-minChunk-1, w.caches.trimUnit)
		w.topReturnable = w.window.ResidentBytes(max(from, procmem.AlignUp(cut, page)), to)
	}
	w.span = span{}
	w.at = end
}

// chunk counts the chunk at w.at. It returns false if the next header contradicts the size of the chunk.
func (w *walker) chunk(length uint64, used bool) bool {
	if !used {
		before, err := w.window.Word(w.at + length)
		if err != nil || before != length {
			return false
		}
		w.freed(length)
		return true
	}
	switch w.placeOf(length) {
	case inFastBin:
		w.freed(length)
		return true
	case inCache:
		w.cached += length
	default:
		w.allocated += length
		w.inUse += w.residentOf(length)
	}
	w.flush()
	return true
}

// residentOf returns the resident bytes of the chunk at w.at, which the program may not have touched completely.
func (w *walker) residentOf(length uint64) uint64 {
	const large = 2 * page // smaller chunks share their pages with others
	if length < large {
		return length
	}
	return w.window.ResidentBytes(w.at, w.at+length)
}

// freed adds the free chunk at w.at to the span.
func (w *walker) freed(length uint64) {
	w.free += length
	if w.span.end != w.at {
		w.flush()
		w.span.start = w.at
	}
	w.span.end = w.at + length
}

// flush ends the span of free chunks and counts its whole pages. The first 48 bytes are a header and links. Pages that
// the span shares with other chunks do not count.
func (w *walker) flush() {
	from, to := procmem.AlignUp(w.span.start+headerSize, page), alignDown(w.span.end, page)
	if w.span.end > 0 && from < to {
		w.whole += to - from
		w.keepRange(from, to)
		w.wholeResident += w.window.ResidentBytes(from, to)
	}
	w.span = span{}
}
