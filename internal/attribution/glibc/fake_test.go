// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package glibc

import (
	"testing"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/test/fakeproc"
)

// Where a synthetic process has its C library, its [heap] and its heaps.
const (
	libc  = 0x7f0000000000
	brk   = 0x550000000000
	heap1 = 0x7f1000000000 // a multiple of 64 MiB
)

// malloc builds the memory of a process that uses glibc.
type malloc struct {
	*fakeproc.Process
	layout layout
	header uint64
	mains  uint64 // address of the main arena
	key    uint64
	mangle bool
}

func newMalloc(l layout, header uint64) *malloc {
	m := &malloc{
		Process: fakeproc.New(), layout: l, header: header, mains: libc + 0x1c0, key: 0xfeedfacecafe1235, mangle: true,
	}
	m.Map(libc-0x10000, 0x10000, fakeproc.RX, "/lib/libc.so.6")
	m.Map(libc, 0x4000, fakeproc.RW, "/lib/libc.so.6")
	return m
}

// state writes an arena with empty bins.
func (m *malloc) state(addr, top, next, system uint64) {
	bins := addr + m.layout.bins
	m.Put(bins-16, top, 0)
	for i := range uint64(binCount) {
		self := bins + 16*i - 16
		m.Put(bins+16*i, self, self)
	}
	m.Put(bins+binmapAt, 0, 0, next, 0, 1, system, system)
}

// block is one chunk: its size, and whether it is free.
type block struct {
	size uint64
	free bool
	// fast and cached are links of chunks that are in a fast bin or in the cache of a thread.
	fast, cached bool
}

// chunks writes chunks one after another and returns where the last ends. What lies inside a free chunk is resident.
func (m *malloc) chunks(at uint64, blocks ...block) uint64 {
	previous := uint64(isPrevUsed)
	for i, b := range blocks {
		m.Put(at+8, b.size|previous)
		m.Touch(at, int(b.size/procmem.PageSize)+1)
		link := uint64(0)
		if m.mangle {
			link = (at + 16) >> 12
		}
		switch {
		case b.fast:
			m.Put(at+16, link, 0)
		case b.cached:
			m.Put(at+16, link, m.key)
		case !b.free && b.size >= 32 && i > 0:
			m.Put(at+16, 0x5ec4e75ec4e7, 0x5ec4e75ec4e7) // what a program keeps
		}
		previous = isPrevUsed
		if b.free {
			m.Put(at+b.size, b.size)
			previous = 0
		}
		at += b.size
	}
	m.Put(at+8, previous)
	return at
}

// top writes the top chunk, which reaches to an address.
func (m *malloc) top(at, end uint64) {
	m.Put(at+8, (end-at)|isPrevUsed)
}

// mainHeap writes a [heap] of these chunks, and the main arena.
func (m *malloc) mainHeap(size, next uint64, blocks ...block) {
	m.Map(brk, size, fakeproc.RW, "[heap]")
	at := m.chunks(brk, blocks...)
	m.top(at, brk+size)
	m.state(m.mains, at, next, size)
}

// firstHeap writes the first heap of another arena.
func (m *malloc) firstHeap(at, size, next uint64, blocks ...block) {
	m.Map(at, size, fakeproc.RW, "")
	m.Map(at+size, heapMax-size, 0, "")
	arena := at + m.header
	m.Put(at, arena, 0, size, size)
	first := procmem.AlignUp(arena+m.layout.bins+stateEnd, 16)
	end := m.chunks(first, blocks...)
	m.top(end, at+size)
	m.state(arena, end, next, size)
}

// cache is the chunk of a thread's cache with one entry.
func (m *malloc) cache(at, entry uint64) {
	m.Put(at+16+128, entry)
}

func look(t *testing.T, m *malloc) attribution.Result {
	t.Helper()
	r, err := attribution.Attribute(t.Context(), m.Snapshot(), []attribution.Reader{Reader{}})
	if err != nil {
		t.Fatal(err)
	}
	m.NothingAbsent(t)
	return r
}
