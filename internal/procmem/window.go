// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Window reads words of one range of a process, one page at a time, and only pages that were in memory when the range
// was asked about. It keeps no more of the process than one page, which [Window.Close] overwrites.
type Window struct {
	memory     Memory
	start, end uint64
	runs       []Run
	at         uint64 // address of the page that is held; 0 for none
	page       [PageSize]byte
	reads      int
	limit      int // reads that are allowed; 0 for any number
}

// NewWindow asks which pages between two addresses are in memory.
func NewWindow(m Memory, start, end uint64) (*Window, error) {
	w := &Window{memory: m, start: start, end: end}
	return w, w.Refresh()
}

// Refresh asks again which pages are in memory, and forgets what was read.
func (w *Window) Refresh() error {
	w.forget()
	runs, err := w.memory.Resident(w.start, w.end)
	w.runs = runs
	return err
}

// Close overwrites what was read of the process.
func (w *Window) Close() { w.forget() }

func (w *Window) forget() {
	w.at = 0
	clear(w.page[:])
}

// Runs are the ranges that are in memory.
func (w *Window) Runs() []Run { return w.runs }

// Limit sets how many pages may be read.
func (w *Window) Limit(pages int) { w.limit = pages }

// Reads is how many pages were read.
func (w *Window) Reads() int { return w.reads }

// Resident tells whether the page of an address is in memory.
func (w *Window) Resident(addr uint64) bool { return runOf(w.runs, addr) >= 0 }

// ResidentBytes is how many bytes between two addresses are in memory.
func (w *Window) ResidentBytes(start, end uint64) uint64 {
	return ResidentBytes(w.runs, start, end)
}

// Covers tells whether an address lies in the range of the window.
func (w *Window) Covers(addr uint64) bool { return w.start <= addr && addr < w.end }

// Word reads 8 bytes at an address that is a multiple of 8.
func (w *Window) Word(addr uint64) (uint64, error) {
	if addr%8 != 0 || addr < w.start || addr+8 > w.end || addr+8 < addr {
		return 0, fmt.Errorf("%w: %#x", ErrAbsent, addr)
	}
	page := addr &^ (PageSize - 1)
	if page != w.at || w.at == 0 {
		if err := w.load(page); err != nil {
			return 0, err
		}
	}
	return binary.LittleEndian.Uint64(w.page[addr-page:]), nil
}

// Fresh reads 8 bytes as they are now, also where the page was read before.
func (w *Window) Fresh(addr uint64) (uint64, error) {
	w.forget()
	return w.Word(addr)
}

func (w *Window) load(page uint64) error {
	w.at = 0
	if !w.Resident(page) {
		return fmt.Errorf("%w: the page of %#x is not in memory", ErrAbsent, page)
	}
	if w.limit > 0 && w.reads >= w.limit {
		return ErrBudget
	}
	w.reads++
	if n, err := w.memory.ReadAt(w.page[:], page); err != nil || n != PageSize {
		clear(w.page[:])
		if err == nil {
			err = ErrAbsent
		}
		return fmt.Errorf("reading the page of %#x: %w", page, err)
	}
	w.at = page
	return nil
}

// ResidentBytes is how many bytes of these runs lie between two addresses.
func ResidentBytes(runs []Run, start, end uint64) uint64 {
	var sum uint64
	i, _ := slices.BinarySearchFunc(runs, start, func(r Run, a uint64) int {
		if r.End() <= a {
			return -1
		}
		return 1
	})
	for ; i < len(runs) && runs[i].Start < end; i++ {
		if from, to := max(start, runs[i].Start), min(end, runs[i].End()); to > from {
			sum += to - from
		}
	}
	return sum
}

// runOf is the index of the run that an address lies in, or -1.
func runOf(runs []Run, addr uint64) int {
	i, found := slices.BinarySearchFunc(runs, addr, func(r Run, a uint64) int {
		switch {
		case r.End() <= a:
			return -1
		case r.Start > a:
			return 1
		}
		return 0
	})
	if !found {
		return -1
	}
	return i
}
