// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package glibc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/test/fakeproc"
)

// TestTrim: a free chunk of 10 pages behind one in use gives back the whole pages in it, the main arena's top all but
// its first page, and another arena's top nothing.
func TestTrim(t *testing.T) {
	for _, l := range layouts {
		for _, header := range heapHeaders {
			t.Run(fmt.Sprintf("bins at %d, header %#x", l.bins, header), func(t *testing.T) {
				m := newMalloc(l, header)
				m.mainHeap(0x20000, heap1+header, block{size: 0x290}, block{size: 0xa000, free: true}, block{size: 0x40})
				m.firstHeap(heap1, 0x20000, m.mains, block{size: 0x290}, block{size: 0xa000, free: true}, block{size: 0x40})
				r := look(t, m)
				u := r.Usages[0]
				if u.Coverage != 1 {
					t.Fatalf("coverage is %f", u.Coverage)
				}
				// 0x290 and 48 bytes into the first page; the end is in the eleventh.
				const inside = 9 * procmem.PageSize
				if got, want := u.Details[Free], int64(2*0xa000); got != want {
					t.Errorf("%d bytes are free, want %d", got, want)
				}
				// Of the top, only the page with its header is resident, and not whole.
				if want := memory.Bytes(2 * inside); u.Returnable != want || u.FreeResident != want {
					t.Errorf("returnable %s, free %s, want %s", u.Returnable, u.FreeResident, want)
				}
				if got, want := u.FreePartial, memory.Bytes(2*(0xa000-inside)); got != want {
					t.Errorf("%s are free on pages in use, want %s", got, want)
				}
				if u.Details[amounts.Arenas] != 2 {
					t.Errorf("%d arenas, want 2", u.Details[amounts.Arenas])
				}
				sumsUp(t, r)
			})
		}
	}
}

func sumsUp(t *testing.T, r attribution.Result) {
	t.Helper()
	var sum memory.Bytes
	for i, one := range r.Regions {
		sum += one.RSS
		if i > 0 && one.Start < r.Regions[i-1].End {
			t.Errorf("region %d overlaps the one before", i)
		}
	}
	if sum != r.RSS {
		t.Errorf("the regions have %s, the process %s", sum, r.RSS)
	}
}

// TestResidentTop: of a top whose pages were used, the main arena gives back all but 33 bytes, cut to pages; another
// one keeps it.
func TestResidentTop(t *testing.T) {
	m := newMalloc(layouts[0], 0x30)
	m.mainHeap(0x20000, heap1+0x30, block{size: 0x290})
	m.firstHeap(heap1, 0x20000, m.mains, block{size: 0x290})
	m.Touch(brk, 0x20)
	m.Touch(heap1, 0x20)
	u := look(t, m).Usages[0]
	const pages = procmem.PageSize
	if want := memory.Bytes(31 * pages); u.Returnable != want {
		t.Errorf("returnable %s, want the 31 pages behind the first of the main arena", u.Returnable)
	}
	if want := memory.Bytes(2 * 31 * pages); u.FreeResident != want {
		t.Errorf("free and resident %s, want %s", u.FreeResident, want)
	}
}

// TestTopWithinPage: what a top that ends inside a page gives back is counted in whole pages, no more of them than are
// free.
func TestTopWithinPage(t *testing.T) {
	m := newMalloc(layouts[0], 0x30)
	const size = 0x4300
	m.Map(brk, 0x5000, fakeproc.RW, "[heap]")
	at := m.chunks(brk, block{size: 0x290})
	m.top(at, brk+size)
	m.state(m.mains, at, m.mains, size)
	m.Touch(brk, 5)
	u := look(t, m).Usages[0]
	if want := memory.Bytes(3 * procmem.PageSize); u.Returnable != want || u.FreeResident != want {
		t.Errorf("returnable %s of %s free and resident, want the %s between the first page and the last",
			u.Returnable, u.FreeResident, want)
	}
}

// TestArenasBesideTwo: what arenas hold without use, and what lies outside of the two that hold the most.
func TestArenasBesideTwo(t *testing.T) {
	const heap2 = heap1 + 1<<26
	m := newMalloc(layouts[0], 0x30)
	m.mainHeap(0x20000, heap1+0x30, block{size: 0x290}, block{size: 0x8000})
	m.firstHeap(heap1, 0x20000, heap2+0x30, block{size: 0x290}, block{size: 0x1000})
	m.firstHeap(heap2, 0x40000, m.mains, block{size: 0x290})
	m.Touch(brk, 0x20)
	m.Touch(heap1, 2)
	m.Touch(heap2, 0x40)
	u := look(t, m).Usages[0]
	const pages = procmem.PageSize
	if got := u.Details[amounts.ArenasBeyondTwo]; got != 2*pages || u.Details[amounts.Arenas] != 3 {
		t.Errorf("%d bytes beyond two of %d arenas, want two pages beyond two of 3", got, u.Details[amounts.Arenas])
	}
	resident := int64(0x20+2+0x40) * pages
	if got := u.Details[amounts.Retained]; got != resident-int64(u.InUse) || got < resident-0x10000 {
		t.Errorf("%d bytes are retained of %d, of which %d are in use", got, resident, u.InUse)
	}
	// The third arena's top begins in its first page, and 128 KiB and a page stay.
	if got, want := u.Details[amounts.TopsBeyondThreshold], int64(0x3f-0x21)*pages; got != want {
		t.Errorf("%d bytes are beyond the threshold, want %d", got, want)
	}
}

// TestFastBinsAndCaches: malloc_trim empties fast bins, so that they join with what is free beside them; what threads
// cache stays, and what a program keeps is neither.
func TestFastBinsAndCaches(t *testing.T) {
	m := newMalloc(layouts[0], 0x30)
	const fast = 0x60
	blocks := []block{{size: 0x290}, {size: fast, cached: true}, {size: 0x3000, free: true}}
	for range 2 * procmem.PageSize / fast {
		blocks = append(blocks, block{size: fast, fast: true})
	}
	blocks = append(blocks, block{size: fast}, block{size: fast, cached: true})
	m.mainHeap(0x20000, m.mains, blocks...)
	m.cache(brk, brk+0x290+16)
	m.Put(m.mains+m.layout.fast+8*(fast/16-2), brk+0x290) // some chunk is in that bin
	u := look(t, m).Usages[0]
	if got, want := u.Details[Free], int64(0x3000+fast*(2*procmem.PageSize/fast)); got != want {
		t.Errorf("%d bytes are free with those in fast bins, want %d", got, want)
	}
	if got := u.Details[Cached]; got != 2*fast {
		t.Errorf("%d bytes in caches, want %d", got, 2*fast)
	}
	if got := u.Details[Allocated]; got != 0x290+fast {
		t.Errorf("%d bytes are allocated, want %d", got, 0x290+fast)
	}
	if want := memory.Bytes(4 * procmem.PageSize); u.Returnable != want {
		t.Errorf("returnable %s, want %s: the free chunk and the fast ones behind it are one", u.Returnable, want)
	}
}

// TestFreePagesThatAreGone: what is not resident any more is not given back a second time.
func TestFreePagesThatAreGone(t *testing.T) {
	m := newMalloc(layouts[0], 0x30)
	m.mainHeap(0x20000, m.mains, block{size: 0x290}, block{size: 0xa000, free: true}, block{size: 0x40})
	m.Drop(brk+0x1000, 9)
	if u := look(t, m).Usages[0]; u.Returnable != 0 || u.Coverage != 1 {
		t.Errorf("returnable %s with coverage %f, want 0 and 1", u.Returnable, u.Coverage)
	}
}

// TestMappedBlocks: a block of its own mapping, and two that became neighbors.
func TestMappedBlocks(t *testing.T) {
	m := newMalloc(layouts[0], 0x30)
	m.mainHeap(0x20000, m.mains, block{size: 0x290})
	const at = 0x7e0000000000
	m.Map(at, 0x43000, fakeproc.RW, "")
	m.Put(at, 0, 0x21000|isMapped)
	m.Put(at+0x21000, 0, 0x21ff0|isMapped) // 2.43 does not count the first word
	r := look(t, m)
	if got := r.ByKind()[attribution.GlibcMmap]; got != 2*procmem.PageSize {
		t.Errorf("%s are resident in blocks, want two pages", got)
	}
	i := slices.IndexFunc(r.Regions, func(r attribution.Region) bool { return r.Kind == attribution.GlibcMmap })
	if i < 0 || r.Regions[i].Start != at || r.Regions[i].End != at+0x43000 {
		t.Errorf("region %d of %+v is not both blocks", i, r.Regions)
	}
}

// TestNoNumberBelowCoverage: where headers make no sense, amounts are not reported.
func TestNoNumberBelowCoverage(t *testing.T) {
	m := newMalloc(layouts[0], 0x30)
	m.mainHeap(0x20000, m.mains, block{size: 0x290}, block{size: 0x4000, free: true}, block{size: 0x40})
	m.Put(brk+0x290+0x4000, 0x1230) // not the size of the chunk before
	u := look(t, m).Usages[0]
	if u.Coverage >= amounts.MinCoverage || u.Returnable != 0 || u.InUse != 0 || len(u.Details) > 0 {
		t.Errorf("coverage %f and %+v: an amount is told of a heap that was not understood", u.Coverage, u)
	}
}

// TestWalkGoesOnAfterARace: a chunk is split while its header is read; the second look makes sense.
func TestWalkGoesOnAfterARace(t *testing.T) {
	m := newMalloc(layouts[0], 0x30)
	m.mainHeap(0x20000, m.mains, block{size: 0x290}, block{size: 0x4000, free: true}, block{size: 0x40})
	const broken = brk + 0x290 + 0x4000
	m.Put(broken, 0x1230)
	reads := 0
	m.BeforeRead = func(addr uint64) {
		if addr == broken&^(procmem.PageSize-1) {
			if reads++; reads > 2 {
				m.Put(broken, 0x4000)
			}
		}
	}
	if u := look(t, m).Usages[0]; u.Coverage != 1 || u.Details[Free] != 0x4000 {
		t.Errorf("coverage %f, free %d", u.Coverage, u.Details[Free])
	}
}

// TestWalkGoesBackWhereItsPlaceIsGone: two chunks become one just when the walk is at the second of them, at ten places
// of a heap, so that a walk that begins anew at each of them never comes to the end.
func TestWalkGoesBackWhereItsPlaceIsGone(t *testing.T) {
	const size, count, places = 0x3000, 100, 10
	blocks := []block{{size: 0x290}}
	for range count {
		blocks = append(blocks, block{size: size})
	}
	m := newMalloc(layouts[0], 0x30)
	m.mainHeap(0x20000+size*count, m.mains, blocks...)
	at := func(i uint64) uint64 { return brk + 0x290 + i*size }
	joined := map[uint64]bool{}
	m.BeforeRead = func(addr uint64) {
		i := (addr - brk) / size // of the chunk whose header is on this page
		if addr != at(i)&^(procmem.PageSize-1) || i%places != 0 || i == 0 || i >= count || joined[i] {
			return
		}
		joined[i] = true
		m.Put(at(i-2)+8, 2*size|isPrevUsed)
		m.Put(at(i-1), 0x5a5a5a5a5a5a5a5a, 0x5a5a5a5a5a5a5a5a)
		m.Put(at(i), 2*size, size)
	}
	u := look(t, m).Usages[0]
	if want := int64(2 * size * (count/places - 1)); u.Coverage != 1 || u.Details[Free] != want {
		t.Errorf("coverage %f, %d bytes are free, want %d", u.Coverage, u.Details[Free], want)
	}
}

// TestAChunkThatIsBeingFreedIsLeftOut: its thread does not come on, and the walk does. What is left out is missing from
// the coverage, and from nothing else.
func TestAChunkThatIsBeingFreedIsLeftOut(t *testing.T) {
	m := newMalloc(layouts[0], 0x30)
	const size = 0x40000
	m.mainHeap(
		size, m.mains, block{size: 0x290}, block{size: 0x4000, free: true}, block{size: 0x40}, block{size: 0x400, free: true},
		block{size: 0x40}, block{size: 0x4000, free: true}, block{size: 0x40},
	)
	m.Put(brk+0x290+0x4000+0x40+0x400, 0x1230) // the size is written last
	u := look(t, m).Usages[0]
	if want := 1 - float64(0x400)/size; u.Coverage != want || u.Details[Free] != 2*0x4000 {
		t.Errorf("coverage %f, want %f; %d bytes are free, want %d", u.Coverage, want, u.Details[Free], 2*0x4000)
	}
}

// TestRings: arenas whose ring does not close, or that only point at themselves from inside a heap, are not arenas.
func TestRings(t *testing.T) {
	for name, next := range map[string]uint64{
		"never comes back":  heap1 + 0x30,
		"ends in nothing":   0x1230,
		"ends in zeroes":    brk,
		"main is elsewhere": libc + 0x2000,
	} {
		t.Run(name, func(t *testing.T) {
			m := newMalloc(layouts[0], 0x30)
			m.Map(brk, 0x20000, fakeproc.RW, "[heap]")
			m.Touch(brk, 2)
			m.firstHeap(heap1, 0x20000, next, block{size: 0x290})
			r := look(t, m)
			if len(r.Usages) > 0 || len(r.Failed) != 1 || !errors.Is(r.Failed[0].Err, ErrNone) {
				t.Errorf("usages %+v, failed %v", r.Usages, r.Failed)
			}
			sumsUp(t, r)
		})
	}
}

// TestNotGlibc: other allocators use [heap] too.
func TestNotGlibc(t *testing.T) {
	p := fakeproc.New().Map(libc, 0x1000, fakeproc.RX, "/lib/libc.so.6").Map(brk, 0x10000, fakeproc.RW, "[heap]")
	p.Touch(brk, 16)
	r, err := attribution.Attribute(t.Context(), p.Snapshot(), []attribution.Reader{Reader{}})
	if err != nil || len(r.Usages) > 0 {
		t.Fatalf("usages %v, error %v", r.Usages, err)
	}
	if got := r.ByKind()[attribution.BrkHeap]; got != 16*procmem.PageSize {
		t.Errorf("%s of brk.heap, want 16 pages", got)
	}
}

// TestContextEnds: a walk that takes too long ends with its context.
func TestContextEnds(t *testing.T) {
	m := newMalloc(layouts[0], 0x30)
	m.mainHeap(0x20000, m.mains, block{size: 0x290})
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if _, _, err := (Reader{}).Claim(ctx, m.Snapshot()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
}

// TestNothingButNumbers: what a program keeps in its chunks and calls its mappings is in no result and in no error.
func TestNothingButNumbers(t *testing.T) {
	const secret = "hunter2-hunter2-hunter2-hunter2!"
	for _, broken := range []bool{false, true} {
		m := newMalloc(layouts[0], 0x30)
		m.mainHeap(
			0x20000, heap1+0x30, block{size: 0x290}, block{size: 0x4000}, block{size: 0x4000, free: true}, block{size: 0x40},
		)
		m.firstHeap(heap1, 0x20000, m.mains, block{size: 0x290}, block{size: 0x4000}, block{size: 0x40})
		for _, at := range []uint64{brk + 0x290 + 16, brk + 0x1000, heap1 + 0x2000} {
			m.Write(at, []byte(strings.Repeat(secret, 8)))
		}
		if broken {
			m.Write(brk+0x290+0x8000, []byte(secret)) // where a header should be
		}
		m.Map(0x7d0000000000, 0x1000, fakeproc.RW, "[anon:"+secret+"]")
		m.Touch(0x7d0000000000, 1)
		s := m.Snapshot()
		r, err := attribution.Attribute(t.Context(), s, []attribution.Reader{Reader{}})
		text := fmt.Sprintf("%+v %v %v", r, err, r.Failed)
		if strings.Contains(text, "hunter2") || strings.Contains(text, "104 117 110 116 101") {
			t.Errorf("a secret of the process is told: %s", text)
		}
		word := fmt.Sprint(uint64(0x32726574_6e75682d)) // "-hunter2"
		if strings.Contains(text, word) {
			t.Errorf("a word of the process is told: %s", text)
		}
	}
}
