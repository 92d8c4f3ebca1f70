// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package v8

import (
	"errors"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/attribution/words"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/test/budget"
	"github.com/memfit/memfit/test/fakeproc"
)

const (
	base    = 0x7f0000000000 // a multiple of 256 KiB
	headers = 0x550000000000 // where malloc puts headers that are apart
	anyHeap = 0x550000001000
)

// made is a page to write.
type made struct {
	at, size, flags, allocated, highWater uint64
	pooled                                bool
}

// write puts a page's header where the layout of an index has it, and makes the page resident.
func write(p *fakeproc.Process, index int, m made) {
	p.Map(m.at, m.size, fakeproc.RW, "")
	p.Touch(m.at, int(m.size/procmem.PageSize))
	end := m.at + m.size
	switch index {
	case 0:
		p.Put(m.at, m.size, m.flags, anyHeap, m.at+0x200, end, m.allocated, 0, m.highWater)
	case 1:
		p.Put(m.at, m.flags, m.at, m.size, anyHeap, m.at+0x200, end, m.allocated, 0, m.highWater)
	case 2:
		header := headers + (m.at-base)/pageSize*0x80
		p.Put(m.at, m.flags, header)
		self, size := m.at, m.size
		if m.pooled {
			self, size = 0, 0
		}
		p.Put(header, 1, self, size, m.allocated, 0, m.highWater, 0x40000, end, anyHeap, m.at+0x10, 1)
	}
}

// claim reads the pages of a heap as of a version that was measured.
func claim(t *testing.T, s *attribution.Snapshot) ([]attribution.Region, amounts.Usage, error) {
	reader := words.New(s, maxPages)
	defer reader.Close()
	return pagesOf(t.Context(), s, reader)
}

// TestUnknownVersion: pages of an unknown version, or that cannot be read, give no figures.
func TestUnknownVersion(t *testing.T) {
	p := fakeproc.New()
	write(p, 1, made{at: base, size: pageSize, allocated: 1000})
	regions, u, err := Reader{}.Claim(t.Context(), p.Snapshot())
	if err != nil || len(regions) != 1 || u.Coverage != 0 {
		t.Errorf("%d regions, %+v, %v", len(regions), u, err)
	}
}

func TestLayouts(t *testing.T) {
	for index, name := range []string{"V8 10.2 and 11.3", "V8 12.4", "V8 13.6 and 14.6"} {
		t.Run(name, func(t *testing.T) {
			p := fakeproc.New().Map(headers, 0x10000, fakeproc.RW, "[heap]")
			write(p, index, made{at: base, size: pageSize, allocated: 100 << 10, highWater: pageSize})
			write(p, index, made{at: base + 2*pageSize, size: pageSize, flags: fromSpace, allocated: pageSize / 2})
			write(p, index, made{at: base + 4*pageSize, size: pageSize, flags: toSpace, highWater: 64 << 10})
			write(p, index, made{at: base + 6*pageSize, size: 3 << 20, allocated: 3<<20 - 0x200, highWater: 8})
			released := made{at: base + 20*pageSize, size: pageSize, flags: freed, allocated: 1000}
			if index == 2 {
				released.flags, released.pooled = 0, true
			}
			write(p, index, released)
			regions, u, err := claim(t, p.Snapshot())
			if err != nil || len(regions) != 5 || u.Coverage != 1 {
				t.Fatalf("%d regions, %+v, %v", len(regions), u, err)
			}
			pool := int64(pageSize)
			if index == 0 { // this layout has no flag that is known
				pool = 0
			}
			if got := u.Details[amounts.PoolResident]; got != pool {
				t.Errorf("pool %d, want %d", got, pool)
			}
			if got := u.Details[Young]; got != 2*pageSize {
				t.Errorf("young generation %d", got)
			}
			old := u.Details[amounts.OldInUse]
			if index == 0 {
				old -= 1000
			}
			if want := int64(100<<10 + 3<<20 - 0x200); old != want {
				t.Errorf("allocated %d, want %d", old, want)
			}
			if u.FreeResident < memory.Bytes(pageSize) || u.InUse > 4*memory.MiB {
				t.Errorf("%+v", u)
			}
			p.NothingAbsent(t)
		})
	}
}

// TestHighAddresses: with 48 bits of addresses, as on arm64, the kernel maps programs at 0xaaaa........ and memory at
// 0xffff.........
func TestHighAddresses(t *testing.T) {
	const at, header = 0xffff80000000, 0xaaaac0000000
	p := fakeproc.New().Map(header, 0x10000, fakeproc.RW, "[heap]").Map(at, pageSize, fakeproc.RW, "")
	p.Touch(at, pageSize/procmem.PageSize)
	p.Put(at, 0, header)
	p.Put(header, 1, at, pageSize, 100<<10, 0, pageSize, 0x40000, at+pageSize, header+0x1000, at+0x10, 1)
	regions, u, err := claim(t, p.Snapshot())
	if err != nil || len(regions) != 1 || u.Coverage != 1 || u.Details[amounts.OldInUse] != 100<<10 {
		t.Errorf("%d regions, %+v, %v", len(regions), u, err)
	}
}

// TestWhatIsNoPage: a mapping of the size of a page that makes no sense lowers the coverage.
func TestWhatIsNoPage(t *testing.T) {
	p := fakeproc.New().Map(base, pageSize, fakeproc.RW, "")
	p.Touch(base, pageSize/procmem.PageSize)
	if _, _, err := claim(t, p.Snapshot()); !errors.Is(err, ErrNone) {
		t.Errorf("%v, want %v", err, ErrNone)
	}
	write(p, 1, made{at: base + 2*pageSize, size: pageSize, allocated: 1000})
	_, u, err := claim(t, p.Snapshot())
	if err != nil || u.Coverage != 0.5 {
		t.Errorf("coverage %f, %v", u.Coverage, err)
	}
}

// TestAPageThatReachesTooFar: a header that claims more than is mapped is not a page's, and one that goes on in the
// next mapping is counted once.
func TestAPageThatReachesTooFar(t *testing.T) {
	p := fakeproc.New()
	write(p, 1, made{at: base, size: pageSize, allocated: 1})
	p.Put(base+16, 8<<20)
	p.Put(base+40, base+8<<20)
	if _, _, err := claim(t, p.Snapshot()); !errors.Is(err, ErrNone) {
		t.Errorf("%v, want %v", err, ErrNone)
	}
	p = fakeproc.New()
	write(p, 1, made{at: base, size: pageSize, allocated: 1})
	write(p, 1, made{at: base + pageSize, size: pageSize, allocated: 1})
	p.Put(base+16, 2*pageSize)
	p.Put(base+40, base+2*pageSize)
	regions, u, err := claim(t, p.Snapshot())
	if err != nil || len(regions) != 1 || regions[0].End != base+2*pageSize {
		t.Errorf("%d regions, %+v, %v", len(regions), u, err)
	}
}

// pagesBudget: at most two pages are read for each place where one may begin.
var pagesBudget = budget.Budget{Bytes: 2 << 20, PerByte: 64, CPU: time.Second}

// FuzzPages reads arbitrary memory where pages and their headers are searched.
func FuzzPages(f *testing.F) {
	const places, placeSize = 4, 512
	seed := make([]byte, 0, (places+1)*placeSize)
	for index := range layouts {
		p := fakeproc.New()
		for i := range uint64(places) {
			write(p, index, made{at: base + i*pageSize, size: pageSize, allocated: 1000, highWater: 2000, flags: 8 << i})
		}
		p.Touch(headers, 1)
		seed = seed[:0]
		for i := range uint64(places + 1) {
			b := make([]byte, placeSize)
			at := base + i*pageSize
			if i == places {
				at = headers
			}
			if _, err := p.ReadAt(b, at); err != nil {
				f.Fatal(err)
			}
			seed = append(seed, b...)
		}
		f.Add(append([]byte(nil), seed...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = data[:min(len(data), (places+1)*placeSize)]
		p := fakeproc.New().Map(base, places*pageSize, fakeproc.RW, "").Map(headers, 0x1000, fakeproc.RW, "[heap]")
		p.Touch(base, 40)
		for i := 0; i*placeSize < len(data); i++ {
			at := uint64(base + i*pageSize)
			if i == places {
				at = headers
			}
			p.Write(at, data[i*placeSize:min(len(data), (i+1)*placeSize)])
		}
		s := p.Snapshot()
		var regions []attribution.Region
		var u amounts.Usage
		var err error
		budget.Check(t, pagesBudget, len(data), func() { regions, u, err = claim(t, s) })
		if err != nil && !errors.Is(err, ErrNone) {
			t.Fatal(err)
		}
		p.NothingAbsent(t)
		if u.InUse+u.FreeResident+u.FreePartial > s.Mappings[1].RSS+s.Mappings[0].RSS || u.Coverage < 0 || u.Coverage > 1 {
			t.Errorf("%+v of %s", u, s.Mappings[1].RSS)
		}
		for i, r := range regions {
			if r.Start < base || r.End > base+places*pageSize || i > 0 && r.Start < regions[i-1].End {
				t.Errorf("region %x-%x", r.Start, r.End)
			}
		}
	})
}
