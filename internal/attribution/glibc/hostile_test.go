// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package glibc

import (
	"testing"
	"time"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/test/budget"
	"github.com/memfit/memfit/test/fakeproc"
)

// hostileBudget is what a process may cost that does its worst: its mappings are the input, 136 bytes each.
var hostileBudget = budget.Budget{Bytes: 16 << 20, PerByte: 16, CPU: 10 * time.Second}

// TestHostileProcesses: with any content of memory, a scan ends, and regions add up.
func TestHostileProcesses(t *testing.T) {
	for name, build := range map[string]func() *malloc{
		"as many mappings as Linux allows, each like a mapped block": manyBlocks,
		"thousands of heaps whose arenas are none":                   manyHeaps,
		"thousands of arenas outside of heaps":                       manyMains,
		"variables that look like main arenas all over":              manyVariables,
		"chunks of the smallest size, and a top that is never met":   smallChunks,
	} {
		t.Run(name, func(t *testing.T) {
			m := build()
			s := m.Snapshot()
			var r attribution.Result
			var err error
			budget.Check(t, hostileBudget, 136*len(s.Mappings), func() {
				r, err = attribution.Attribute(t.Context(), s, []attribution.Reader{Reader{}})
			})
			if err != nil {
				t.Fatal(err)
			}
			m.NothingAbsent(t)
			sumsUp(t, r)
			for _, u := range r.Usages {
				checkUsage(t, u, r.RSS)
			}
		})
	}
}

func manyBlocks() *malloc {
	m := newMalloc(layouts[0], 0x30)
	m.mainHeap(0x4000, m.mains, block{size: 0x290})
	for i := range uint64(65_000) {
		at := 0x7000_0000_0000 + i*0x3000
		m.Map(at, 0x2000, fakeproc.RW, "")
		m.Put(at, 0, 0x2000|isMapped)
	}
	return m
}

// manyHeaps have headers that are right, and arenas that are right but for one word, so that each is read to its end.
func manyHeaps() *malloc {
	m := newMalloc(layouts[0], 0x30)
	m.mainHeap(0x4000, heap1+0x30, block{size: 0x290})
	for i := range uint64(3000) {
		at := heap1 + i*heapMax
		m.firstHeap(at, 0x2000, m.mains)
		m.Put(at+0x30+m.layout.bins+systemAt, 0x2001)
	}
	return m
}

// manyMains form a ring that comes back only to its second member.
func manyMains() *malloc {
	m := newMalloc(layouts[0], 0x30)
	const state = 0x1000
	m.Map(0x7100_0000_0000, 5000*state, fakeproc.RW, "/lib/data.so")
	m.Map(brk, 0x4000, fakeproc.RW, "[heap]")
	m.Touch(brk, 1)
	for i := range uint64(5000) {
		next := 0x7100_0000_0000 + (i+1)*state
		if i == 4999 {
			next = 0x7100_0000_0000 + state
		}
		m.state(0x7100_0000_0000+i*state, brk, next, 0x4000)
	}
	m.firstHeap(heap1, 0x4000, 0x7100_0000_0000, block{size: 0x290})
	return m
}

func manyVariables() *malloc {
	m := newMalloc(layouts[0], 0x30)
	const size = 2 << 20
	m.Map(0x7100_0000_0000, size, fakeproc.RW, "/lib/data.so")
	for at := uint64(0x7100_0000_0000); at < 0x7100_0000_0000+size; at += 8 {
		m.Put(at, at-layouts[0].bins-nextAt)
	}
	return m
}

func smallChunks() *malloc {
	m := newMalloc(layouts[0], 0x30)
	const size = 4 << 20
	m.mainHeap(size, m.mains, block{size: 0x290})
	for at := uint64(brk); at < brk+size; at += 32 {
		m.Put(at+8, 32|isPrevUsed)
	}
	m.state(m.mains, brk+size-16, m.mains, size)
	m.Touch(brk, size/procmem.PageSize)
	return m
}
