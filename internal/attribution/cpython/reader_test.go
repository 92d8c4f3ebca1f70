// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cpython

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

const base = 0x7f0000000000

// put writes the header of a pool, and makes the pool resident.
func put(p *fakeproc.Process, at, size, count, class uint64) {
	block := blockUnit * (class + 1)
	p.Touch(at, int(size/procmem.PageSize))
	p.Put(at, count, 0, at, at, class<<32|3, (size-block)<<32|headerSize+block)
}

func TestPools(t *testing.T) {
	for _, size := range poolSizes {
		p := fakeproc.New().Map(base, 1<<20, fakeproc.RW, "").Map(base+4<<20, 1<<20, fakeproc.RW, "")
		put(p, base, size, 10, 3)
		put(p, base+size, size, 0, 7)
		put(p, base+2*size, size, 2, 31)
		p.Touch(base+3*size, 1) // never used
		p.Put(base+4<<20, 0x20, 0x101000, 3)
		regions, u, err := Reader{}.Claim(t.Context(), p.Snapshot())
		if err != nil || len(regions) != 1 || regions[0].Start != base || regions[0].End != base+3*size {
			t.Fatalf("%v, %v", regions, err)
		}
		used := memory.Bytes(10*64 + 2*512)
		if u.InUse != used || u.FreeResident != memory.Bytes(size) || u.FreePartial != memory.Bytes(2*size)-used ||
			u.Coverage != 1 {
			t.Errorf("%+v", u)
		}
		p.NothingAbsent(t)
	}
}

func TestWhatIsNoPool(t *testing.T) {
	for name, change := range map[string]func(p *fakeproc.Process){
		"a class that is none":       func(p *fakeproc.Process) { p.Put(base+32, 40<<32) },
		"a last block elsewhere":     func(p *fakeproc.Process) { p.Put(base+40, 0x1000<<32|0x70) },
		"more blocks than fit":       func(p *fakeproc.Process) { p.Put(base, 10000) },
		"a next block in between":    func(p *fakeproc.Process) { p.Put(base+40, (16<<10-64)<<32|0x71) },
		"a next block behind":        func(p *fakeproc.Process) { p.Put(base+40, (16<<10-64)<<32|0x5000) },
		"a next block in the header": func(p *fakeproc.Process) { p.Put(base+40, (16<<10-64)<<32|0x10) },
	} {
		p := fakeproc.New().Map(base, 1<<20, fakeproc.RW, "")
		put(p, base, 16<<10, 10, 3)
		change(p)
		if _, u, err := (Reader{}).Claim(t.Context(), p.Snapshot()); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
}

// TestBudgetIsTold: pools that may not be read any more lower the coverage.
func TestBudgetIsTold(t *testing.T) {
	p := fakeproc.New().Map(base, 1<<20, fakeproc.RW, "")
	for i := range uint64(64) {
		put(p, base+i*16<<10, 16<<10, 10, 3)
	}
	_, u, err := claim(t.Context(), p.Snapshot(), 16)
	if err != nil || u.Coverage != 0.25 {
		t.Errorf("coverage %f, %v", u.Coverage, err)
	}
}

// poolsBudget: one page is read for each pool.
var poolsBudget = budget.Budget{Bytes: 256 << 10, PerByte: 16, CPU: time.Second}

// FuzzPools reads arbitrary memory where pools are searched.
func FuzzPools(f *testing.F) {
	p := fakeproc.New()
	put(p, base, 16<<10, 10, 3)
	header := make([]byte, headerSize)
	if _, err := p.ReadAt(header, base); err != nil {
		f.Fatal(err)
	}
	f.Add(header)
	f.Add(append(append([]byte(nil), header...), header...))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := fakeproc.New().Map(base, 1<<20, fakeproc.RW, "")
		for i := uint64(0); len(data) > 0 && i < 64; i++ {
			n := min(len(data), headerSize)
			p.Write(base+i*16<<10, data[:n])
			data = data[n:]
		}
		s := p.Snapshot()
		var u amounts.Usage
		var err error
		budget.Check(t, poolsBudget, len(data), func() { _, u, err = Reader{}.Claim(t.Context(), s) })
		p.NothingAbsent(t)
		if err == nil && (u.InUse+u.FreeResident+u.FreePartial > s.Mappings[0].RSS || u.Coverage < 0 || u.Coverage > 1) {
			t.Errorf("%+v of %s", u, s.Mappings[0].RSS)
		}
	})
}
