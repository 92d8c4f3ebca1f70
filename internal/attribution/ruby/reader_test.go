// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"errors"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/test/budget"
	"github.com/memfit/memfit/test/fakeproc"
)

const (
	base  = 0x7f0000000000
	infos = 0x550000000000
)

// put writes a page and the structure that it points at; word is the address of the first slot in that structure.
func put(p *fakeproc.Process, index, size, slot, free, word uint64) {
	at, info := base+index*size, infos+index*0x100
	total := (size - 0x40) / slot
	p.Touch(at, int(size/procmem.PageSize))
	p.Put(at, info)
	p.Put(info, slot|total<<16|free<<32)
	p.Put(info+8*word, at+0x10)
}

func TestPages(t *testing.T) {
	for _, c := range []struct{ size, slot, word uint64 }{{16 << 10, 40, 3}, {64 << 10, 160, 4}} {
		p := fakeproc.New().Map(base, 1<<20, fakeproc.RW, "").Map(infos, 0x10000, fakeproc.RW, "[heap]")
		p.Map(base+64<<20, transientSize, fakeproc.RW, "")
		p.Touch(base+64<<20, 10)
		total := (c.size - 0x40) / c.slot
		put(p, 0, c.size, c.slot, 10, c.word)
		put(p, 1, c.size, c.slot, total, c.word)
		put(p, 2, c.size, c.slot, 0, c.word)
		regions, u, err := Reader{}.Claim(t.Context(), p.Snapshot())
		if err != nil || len(regions) != 4 || regions[3].Kind != Transient {
			t.Fatalf("%v, %v", regions, err)
		}
		used := memory.Bytes((2*total - 10) * c.slot)
		if u.InUse != used || u.FreeResident != memory.Bytes(c.size) || u.Coverage != 1 ||
			u.FreePartial != memory.Bytes(2*c.size)-used || u.Details[FreeSlots] != int64(total+10) {
			t.Errorf("%+v", u)
		}
		p.NothingAbsent(t)
	}
}

// TestHighAddresses: with 48 bits of addresses, as on arm64, the kernel maps programs at 0xaaaa........ and memory at
// 0xffff.........
func TestHighAddresses(t *testing.T) {
	const at, info, size, slot = 0xffff80000000, 0xaaaac0000000, 64 << 10, 160
	p := fakeproc.New().Map(at, 1<<20, fakeproc.RW, "").Map(info, 0x10000, fakeproc.RW, "[heap]")
	p.Touch(at, size/procmem.PageSize)
	p.Put(at, info)
	p.Put(info, slot|(size-0x40)/slot<<16|10<<32)
	p.Put(info+4*8, at+0x10)
	regions, u, err := Reader{}.Claim(t.Context(), p.Snapshot())
	if err != nil || len(regions) != 1 || u.Coverage != 1 || u.Details[FreeSlots] != 10 {
		t.Errorf("%d regions, %+v, %v", len(regions), u, err)
	}
}

// TestCoverage: a block of another allocator between pages is not a page that was not understood.
func TestCoverage(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *fakeproc.Process)
		want   float64
	}{
		"a block of text":        {func(p *fakeproc.Process) { p.Put(base+3*16<<10, 0x7878787878787878) }, 1},
		"a thread's values":      {func(p *fakeproc.Process) { p.Put(base+3*16<<10, infos) }, 1},
		"a page that changes":    {func(p *fakeproc.Process) { put(p, 3, 16<<10, 40, 500, 3) }, 0.75},
		"a structure not to see": {func(p *fakeproc.Process) { p.Put(base+3*16<<10, infos+0x8000) }, 0.75},
	} {
		p := fakeproc.New().Map(base, 1<<20, fakeproc.RW, "").Map(infos, 0x10000, fakeproc.RW, "[heap]")
		for i := range uint64(3) {
			put(p, i, 16<<10, 40, 10, 3)
		}
		c.change(p)
		if _, u, err := (Reader{}).Claim(t.Context(), p.Snapshot()); err != nil || u.Coverage != c.want {
			t.Errorf("%s: coverage %.2f, want %.2f, %v", name, u.Coverage, c.want, err)
		}
		p.NothingAbsent(t)
	}
}

func TestWhatIsNoPage(t *testing.T) {
	for name, change := range map[string]func(p *fakeproc.Process){
		"more free slots than it has":   func(p *fakeproc.Process) { p.Put(infos, 40|408<<16|500<<32) },
		"more slots than fit":           func(p *fakeproc.Process) { p.Put(infos, 40|1000<<16) },
		"fewer slots than a page holds": func(p *fakeproc.Process) { p.Put(infos, 40|10<<16) },
		"slots that are too small":      func(p *fakeproc.Process) { p.Put(infos, 8|2040<<16) },
		"the slots of another page":     func(p *fakeproc.Process) { p.Put(infos+24, base+1<<20) },
		"a structure that is not there": func(p *fakeproc.Process) { p.Put(base, infos+0x8000) },
		"no pointer":                    func(p *fakeproc.Process) { p.Put(base, 12345) },
	} {
		p := fakeproc.New().Map(base, 1<<20, fakeproc.RW, "").Map(infos, 0x10000, fakeproc.RW, "[heap]")
		put(p, 0, 16<<10, 40, 10, 3)
		change(p)
		if _, u, err := (Reader{}).Claim(t.Context(), p.Snapshot()); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
		p.NothingAbsent(t)
	}
}

// pagesBudget: two pages are read for each page of the heap.
var pagesBudget = budget.Budget{Bytes: 2 << 20, PerByte: 64, CPU: time.Second}

// FuzzPages reads arbitrary memory where pages and their structures are searched.
func FuzzPages(f *testing.F) {
	const places, placeSize, count = 2, 1024, 16
	p := fakeproc.New()
	for i := range uint64(count) {
		put(p, i, 16<<10, 40, 10*i, 3)
	}
	var seed []byte
	for i := range uint64(count) {
		b := make([]byte, 8)
		if _, err := p.ReadAt(b, base+i*16<<10); err != nil {
			f.Fatal(err)
		}
		seed = append(seed, b...)
	}
	seed = append(seed, make([]byte, placeSize-len(seed))...)
	structures := make([]byte, placeSize)
	if _, err := p.ReadAt(structures, infos); err != nil {
		f.Fatal(err)
	}
	f.Add(append(seed, structures...))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = append(data, make([]byte, max(0, places*placeSize-len(data)))...)
		p := fakeproc.New().Map(base, 1<<20, fakeproc.RW, "").Map(infos, 0x1000, fakeproc.RW, "[heap]")
		for i := range uint64(count) {
			p.Write(base+i*16<<10, data[8*i:8*i+8])
		}
		p.Write(infos, data[placeSize:places*placeSize])
		s := p.Snapshot()
		var u amounts.Usage
		var err error
		budget.Check(t, pagesBudget, len(data), func() { _, u, err = Reader{}.Claim(t.Context(), s) })
		p.NothingAbsent(t)
		if err == nil && (u.InUse+u.FreeResident+u.FreePartial > s.Mappings[1].RSS || u.Coverage < 0 || u.Coverage > 1) {
			t.Errorf("%+v of %s", u, s.Mappings[1].RSS)
		}
	})
}
