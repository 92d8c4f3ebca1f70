// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import (
	"errors"
	"testing"
)

// paged is memory of which some pages are resident; every word holds its own address.
type paged map[uint64]bool

func (p paged) ReadAt(b []byte, addr uint64) (int, error) {
	for i := 0; i+8 <= len(b); i += 8 {
		at := addr + uint64(i)
		if !p[at&^(PageSize-1)] {
			return i, errors.New("a page that is not resident was read")
		}
		le.PutUint64(b[i:], at)
	}
	return len(b), nil
}

func (p paged) Resident(start, end uint64) ([]Run, error) {
	var runs []Run
	for page := start &^ (PageSize - 1); page < end; page += PageSize {
		if p[page] {
			runs = append(runs, Run{Start: page, Length: PageSize})
		}
	}
	return runs, nil
}

func TestWindow(t *testing.T) {
	m := paged{0x1000: true, 0x3000: true}
	w, err := NewWindow(m, 0x1000, 0x5000)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []uint64{0x1000, 0x1ff8, 0x3000, 0x1008} {
		if got, err := w.Word(at); err != nil || got != at {
			t.Errorf("%#x holds %#x, error %v", at, got, err)
		}
	}
	for _, at := range []uint64{0x2000, 0x4ff8, 0x5000, 0xff8, 0x1004, ^uint64(7)} {
		if _, err := w.Word(at); !errors.Is(err, ErrAbsent) {
			t.Errorf("%#x: error %v", at, err)
		}
	}
	if w.Reads() != 3 {
		t.Errorf("%d pages were read, want 3: two words of one page are one read", w.Reads())
	}
	m[0x2000] = true
	if _, err := w.Word(0x2000); err == nil {
		t.Error("a page that came since is read without asking")
	}
	if err := w.Refresh(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Word(0x2000); err != nil {
		t.Error(err)
	}
	w.Limit(w.Reads())
	if _, err := w.Word(0x3000); !errors.Is(err, ErrBudget) {
		t.Errorf("beyond the limit: error %v", err)
	}
}

// TestNothingIsKept: what was read of a process is overwritten.
func TestNothingIsKept(t *testing.T) {
	m := paged{0x1000: true}
	w, err := NewWindow(m, 0x1000, 0x2000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Word(0x1000); err != nil {
		t.Fatal(err)
	}
	w.Close()
	probe := NewProbe(m)
	if _, err := probe.Word(0x1ff8); err != nil {
		t.Fatal(err)
	}
	if w.page != [PageSize]byte{} || probe.buffer != [PageSize]byte{} {
		t.Error("a buffer still holds what was read")
	}
}

func TestProbe(t *testing.T) {
	probe := NewProbe(paged{0x1000: true, 0x2000: true})
	var words [4]uint64
	if err := probe.Words(0x1ff0, words[:]); err != nil || words != [4]uint64{0x1ff0, 0x1ff8, 0x2000, 0x2008} {
		t.Errorf("%#x, error %v", words, err)
	}
	for _, at := range []uint64{0x2ff0, 0xff8, 0x1001, ^uint64(15)} {
		if err := probe.Words(at, words[:]); !errors.Is(err, ErrAbsent) {
			t.Errorf("%#x: error %v", at, err)
		}
	}
}

func TestResidentBytes(t *testing.T) {
	runs := []Run{{0x1000, 0x2000}, {0x5000, 0x1000}}
	for _, c := range []struct{ start, end, want uint64 }{
		{0, 0x10000, 0x3000}, {0x1800, 0x2000, 0x800}, {0x2800, 0x5800, 0x1000}, {0x3000, 0x5000, 0}, {0x6000, 0x7000, 0},
		{0x2000, 0x1000, 0},
	} {
		if got := ResidentBytes(runs, c.start, c.end); got != c.want {
			t.Errorf("%#x to %#x: %#x, want %#x", c.start, c.end, got, c.want)
		}
	}
}
