// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package glibc

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/test/budget"
	"github.com/memfit/memfit/test/fakeproc"
)

// A page that is fuzzed costs its reads: the heaps that it may pretend to have are walked within their mappings.
var walkBudget = budget.Budget{Bytes: 4 << 20, PerByte: 64, CPU: time.Second}

// FuzzWalk reads arbitrary memory where an arena, a heap and blocks are searched. For any input, reading ends, no page
// is read that is not resident, amounts fit into the memory that there is, and regions add up.
func FuzzWalk(f *testing.F) {
	for _, l := range layouts {
		m := newMalloc(l, 0x30)
		m.mainHeap(0x4000, heap1+0x30, block{size: 0x290}, block{size: 0x1800, free: true}, block{size: 0x40})
		m.firstHeap(heap1, 0x4000, m.mains, block{size: 0x290}, block{size: 0x1800, free: true}, block{size: 0x40})
		var seed []byte
		for _, at := range fuzzed {
			b := make([]byte, fuzzedSize)
			for page := uint64(0); page < fuzzedSize; page += procmem.PageSize {
				_, _ = m.ReadAt(b[page:page+procmem.PageSize], at+page) // what is not there stays zero
			}
			seed = append(seed, b...)
		}
		f.Add(seed)
		// A heap that begins in itself, and chunks of the smallest size all over it.
		binary.LittleEndian.PutUint64(seed[2*fuzzedSize+8:], heap1)
		for i := fuzzedSize + 0x290; i+16 < 2*fuzzedSize; i += 32 {
			binary.LittleEndian.PutUint64(seed[i+8:], 33)
		}
		f.Add(append([]byte(nil), seed...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > len(fuzzed)*fuzzedSize {
			data = data[:len(fuzzed)*fuzzedSize]
		}
		p := fakeproc.New().Map(libc-0x1000, 0x1000, fakeproc.RX, "/lib/libc.so.6")
		p.Map(libc, fuzzedSize, fakeproc.RW, "/lib/libc.so.6")
		p.Map(brk, fuzzedSize, fakeproc.RW, "[heap]").Map(heap1, fuzzedSize, fakeproc.RW, "")
		p.Map(heap1+fuzzedSize, heapMax-fuzzedSize, 0, "")
		for i, at := range fuzzed {
			if low := i * fuzzedSize; low < len(data) {
				p.Write(at, data[low:min(len(data), low+fuzzedSize)])
			}
		}
		s := p.Snapshot()
		var r attribution.Result
		var err error
		budget.Check(t, walkBudget, len(data), func() {
			r, err = attribution.Attribute(t.Context(), s, []attribution.Reader{Reader{}})
		})
		if err != nil {
			t.Fatal(err)
		}
		p.NothingAbsent(t)
		sumsUp(t, r)
		for _, u := range r.Usages {
			checkUsage(t, u, r.RSS)
		}
	})
}

// fuzzed are the places whose contents a fuzzer chooses, and fuzzedSize is how many bytes of each.
var fuzzed = []uint64{libc, brk, heap1}

const fuzzedSize = 0x4000

func checkUsage(t *testing.T, u amounts.Usage, rss memory.Bytes) {
	t.Helper()
	if u.Coverage < 0 || u.Coverage > 1 {
		t.Errorf("coverage %f", u.Coverage)
	}
	if u.Returnable > u.FreeResident || u.FreeResident > rss || u.InUse < 0 || u.FreePartial < 0 {
		t.Errorf("amounts that cannot be: %+v of %s", u, rss)
	}
	if u.Coverage < amounts.MinCoverage && (u.Returnable != 0 || u.InUse != 0 || u.FreeResident != 0) {
		t.Errorf("amounts with a coverage of %f", u.Coverage)
	}
}
