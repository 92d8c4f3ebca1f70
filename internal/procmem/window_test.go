// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

import (
	"errors"
	"slices"
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
		switch last := len(runs) - 1; {
		case p[page] && last >= 0 && runs[last].End() == page:
			runs[last].Length += PageSize
		case p[page]:
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
	if w.Reads() != 2 {
		t.Errorf("%d pages were read, want 2: a page that is held is not read again, nor the one before it", w.Reads())
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

// reads is memory that notes how much is read together.
type reads struct {
	paged

	sizes []int
}

func (r *reads) ReadAt(b []byte, addr uint64) (int, error) {
	r.sizes = append(r.sizes, len(b)/PageSize)
	return r.paged.ReadAt(b, addr)
}

// TestWindowReadsAhead: page after page is read in ever larger pieces, which end where pages are not resident, the
// range ends or no more may be read. Who jumps gets one page.
func TestWindowReadsAhead(t *testing.T) {
	const size = 64
	m := &reads{paged: paged{}}
	for i := range uint64(size) {
		m.paged[(1+i)*PageSize] = i != 50
	}
	delete(m.paged, 51*PageSize)
	over := func(end uint64, limit int, pages ...uint64) []int {
		t.Helper()
		w, err := NewWindow(m, PageSize, end)
		if err != nil {
			t.Fatal(err)
		}
		w.Limit(limit)
		m.sizes = nil
		for _, page := range pages {
			at := page * PageSize
			if got, err := w.Word(at); errors.Is(err, ErrBudget) {
				break
			} else if m.paged[at] && (err != nil || got != at) {
				t.Errorf("page %d holds %#x, error %v", page, got, err)
			}
		}
		total := 0
		for _, n := range m.sizes {
			total += n
		}
		if total != w.Reads() {
			t.Errorf("%d pages were read, and %d counted", total, w.Reads())
		}
		return m.sizes
	}
	var all []uint64
	for i := range uint64(size) {
		all = append(all, 1+i)
	}
	const end = (size + 1) * PageSize
	for name, c := range map[string]struct{ got, want []int }{
		"all":             {over(end, 0, all...), []int{1, 2, 4, 8, 16, 16, 3, 1, 2, 4, 6}},
		"with jumps":      {over(end, 0, 1, 3, 5, 7, 8, 9, 20), []int{1, 1, 1, 1, 2, 1}},
		"back and forth":  {over(end, 0, 1, 2, 1, 2, 4, 3), []int{1, 2, 4}},
		"to a short end":  {over(5*PageSize+8, 0, 1, 2, 3, 4, 5), []int{1, 2, 2}},
		"within a budget": {over(end, 5, all...), []int{1, 2, 2}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: read in pieces of %d pages, want %d", name, c.got, c.want)
		}
	}
}

// TestWindowTakesWhatThereIs: of pages that are read ahead, some may be gone by now.
func TestWindowTakesWhatThereIs(t *testing.T) {
	m := shrinking{0x1000: true, 0x2000: true, 0x3000: true, 0x4000: true}
	w, err := NewWindow(m, 0x1000, 0x5000)
	if err != nil {
		t.Fatal(err)
	}
	delete(m, 0x3000)
	for _, at := range []uint64{0x1000, 0x2000, 0x2ff8, 0x4000} {
		if got, err := w.Word(at); err != nil || got != at {
			t.Errorf("%#x holds %#x, error %v", at, got, err)
		}
	}
	if got, err := w.Word(0x3000); !errors.Is(err, ErrAbsent) {
		t.Errorf("a page that is gone holds %#x, error %v", got, err)
	}
}

// shrinking is memory whose pages may have gone since: the kernel copies those before.
type shrinking paged

func (s shrinking) Resident(start, end uint64) ([]Run, error) { return paged(s).Resident(start, end) }

func (s shrinking) ReadAt(b []byte, addr uint64) (int, error) {
	n := 0
	for ; n < len(b) && s[addr+uint64(n)]; n += PageSize {
		if _, err := paged(s).ReadAt(b[n:n+PageSize], addr+uint64(n)); err != nil {
			return n, err
		}
	}
	if n < len(b) {
		return n, ErrAbsent
	}
	return n, nil
}

// TestNothingIsKept: what was read of a process is overwritten.
func TestNothingIsKept(t *testing.T) {
	m := paged{}
	for page := uint64(0x1000); page < 0x20000; page += PageSize {
		m[page] = true
	}
	w, err := NewWindow(m, 0x1000, 0x20000)
	if err != nil {
		t.Fatal(err)
	}
	var buffers [][]byte // all that it ever had
	for at := uint64(0x1000); at < 0x20000; at += PageSize {
		if _, err := w.Word(at); err != nil {
			t.Fatal(err)
		}
		for i := range w.pieces {
			buffers = append(buffers, w.pieces[i].bytes)
		}
	}
	w.Close()
	probe := NewProbe(m)
	if _, err := probe.Word(0x1ff8); err != nil {
		t.Fatal(err)
	}
	buffers = append(buffers, probe.buffer[:])
	for _, b := range buffers {
		if slices.ContainsFunc(b, func(one byte) bool { return one != 0 }) {
			t.Errorf("a buffer of %d bytes still holds what was read", len(b))
		}
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
