// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import (
	"encoding/binary"
	"fmt"
	"sort"
)

// Window reads words of one range of addresses, only from pages that were resident at its creation or [Window.Refresh].
// It caches two pieces, for walks that step back across a boundary. A piece is one page, and doubles for consecutive
// pages up to [readAhead]: a system call costs as much as copying a page. This halves the time for small chunks.
type Window struct {
	memory     Memory
	start, end uint64
	runs       []Run
	pieces     [2]piece
	newer      int    // index of the last used piece
	next       uint64 // end of the last read piece; 0: none
	pages      int    // of the last read piece
	reads      int
	limit      int // pages that may be read; 0: any number
}

// piece is a copy of some pages.
type piece struct {
	start, end uint64
	bytes      []byte
}

// readAhead bounds the pages of one read.
const readAhead = 16

func (p *piece) forget() {
	p.start, p.end = 0, 0
	clear(p.bytes)
}

// buffer returns space for a number of pages, mostly one.
func (p *piece) buffer(pages int) []byte {
	if need := pages * PageSize; need > len(p.bytes) {
		clear(p.bytes)
		if pages > 1 {
			need = readAhead * PageSize
		}
		p.bytes = make([]byte, need)
	}
	return p.bytes[:pages*PageSize]
}

// NewWindow returns a window of the resident pages between two addresses.
func NewWindow(m Memory, start, end uint64) (*Window, error) {
	w := &Window{memory: m, start: start, end: end}
	return w, w.Refresh()
}

// Move continues with another range of the same process. Reads are not reset.
func (w *Window) Move(start, end uint64) error {
	w.start, w.end = start, end
	return w.Refresh()
}

// Refresh updates which pages are resident, and drops the cache.
func (w *Window) Refresh() error {
	w.Close()
	runs, err := w.memory.Resident(w.start, w.end)
	w.runs = runs
	return err
}

// Close clears the cached memory of the process.
func (w *Window) Close() {
	w.next, w.pages = 0, 0
	for i := range w.pieces {
		w.pieces[i].forget()
	}
}

// Runs returns the resident ranges.
func (w *Window) Runs() []Run { return w.runs }

// Limit bounds the pages that may be read. Beyond, [Window.Word] returns [ErrBudget].
func (w *Window) Limit(pages int) { w.limit = pages }

// Reads returns the number of pages read.
func (w *Window) Reads() int { return w.reads }

// Resident reports whether the page of an address is in memory.
func (w *Window) Resident(addr uint64) bool { return runOf(w.runs, addr) >= 0 }

// ResidentBytes returns the resident bytes between two addresses.
func (w *Window) ResidentBytes(start, end uint64) uint64 { return ResidentBytes(w.runs, start, end) }

// Covers reports whether an address is in the range of the window.
func (w *Window) Covers(addr uint64) bool { return w.start <= addr && addr < w.end }

// Word reads 8 bytes at an address that is a multiple of 8.
func (w *Window) Word(addr uint64) (uint64, error) {
	if addr%8 != 0 || addr < w.start || addr+8 > w.end || addr+8 < addr {
		return 0, fmt.Errorf("%w: %#x", ErrAbsent, addr)
	}
	p := &w.pieces[w.newer]
	if addr < p.start || addr >= p.end {
		w.newer ^= 1
		p = &w.pieces[w.newer]
	}
	if addr < p.start || addr >= p.end {
		if err := w.load(p, addr&^(PageSize-1)); err != nil {
			return 0, err
		}
	}
	return binary.LittleEndian.Uint64(p.bytes[addr-p.start:]), nil
}

// load reads a page into a piece, with following pages that are probably read next.
func (w *Window) load(p *piece, page uint64) error {
	p.start, p.end = 0, 0
	i := runOf(w.runs, page)
	if i < 0 {
		return fmt.Errorf("%w: the page of %#x is not resident", ErrAbsent, page)
	}
	w.pages *= 2
	if page != w.next {
		w.pages = 1
	}
	available := (min(w.runs[i].End(), w.end+PageSize-1) - page) / PageSize
	w.pages = int(min(uint64(w.pages), readAhead, available)) //nolint:gosec // at most readAhead
	if w.limit > 0 {
		if w.pages = min(w.pages, w.limit-w.reads); w.pages <= 0 {
			return ErrBudget
		}
	}
	w.reads += w.pages
	into := p.buffer(w.pages)
	n, err := w.memory.ReadAt(into, page)
	whole := n / PageSize
	if whole == 0 {
		clear(into)
		if err == nil {
			err = ErrAbsent
		}
		return fmt.Errorf("reading the page of %#x: %w", page, err)
	}
	p.start, p.end = page, page+uint64(whole)*PageSize //nolint:gosec // a count
	w.next = p.end
	return nil
}

// ResidentBytes returns how many bytes of runs are between two addresses.
func ResidentBytes(runs []Run, start, end uint64) uint64 {
	var sum uint64
	i := sort.Search(len(runs), func(i int) bool { return runs[i].End() > start })
	for ; i < len(runs) && runs[i].Start < end; i++ {
		if from, to := max(start, runs[i].Start), min(end, runs[i].End()); to > from {
			sum += to - from
		}
	}
	return sum
}

// runOf returns the index of the run that contains an address, or -1.
func runOf(runs []Run, addr uint64) int {
	i := sort.Search(len(runs), func(i int) bool { return runs[i].End() > addr })
	if i == len(runs) || runs[i].Start > addr {
		return -1
	}
	return i
}

// Probe reads a few words at any address of a process, only from resident pages. It clears its buffer after each read.
type Probe struct {
	memory Memory
	buffer [PageSize]byte
}

// NewProbe returns a probe of a process.
func NewProbe(m Memory) *Probe { return &Probe{memory: m} }

// Words reads len(into) words, at most a page, at an address that is a multiple of 8.
func (p *Probe) Words(addr uint64, into []uint64) error {
	length := uint64(len(into)) * 8
	if addr%8 != 0 || length == 0 || length > PageSize || addr+length < addr {
		return fmt.Errorf("%w: %d words at %#x", ErrAbsent, len(into), addr)
	}
	first := addr &^ (PageSize - 1)
	last := (addr + length - 1) &^ (PageSize - 1)
	runs, err := p.memory.Resident(first, last+PageSize)
	if err != nil {
		return err
	}
	if ResidentBytes(runs, addr, addr+length) != length {
		return fmt.Errorf("%w: %d words at %#x are not resident", ErrAbsent, len(into), addr)
	}
	b := p.buffer[:length]
	defer clear(b)
	if _, err := p.memory.ReadAt(b, addr); err != nil {
		return err
	}
	for i := range into {
		into[i] = le.Uint64(b[8*i:])
	}
	return nil
}

// Word reads one word.
func (p *Probe) Word(addr uint64) (uint64, error) {
	var one [1]uint64
	err := p.Words(addr, one[:])
	return one[0], err
}
