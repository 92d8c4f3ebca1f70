// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package golang

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/test/budget"
	"github.com/memfit/memfit/test/fakeproc"
)

const (
	program  = 0x400000
	rwData   = 0x600000
	arena    = 0xc000000000
	heapSize = 32 << 20
)

// goProgram is a process with a heap of 32 MiB, of which the kernel advises about huge pages for a part.
func goProgram() *fakeproc.Process {
	p := fakeproc.New().Map(program, 0x1000, fakeproc.RX, "/app").Map(rwData, 0x2000, fakeproc.RW, "/app")
	p.Map(rwData+0x2000, 0x2000, fakeproc.RW, "") // zeroed ones
	p.Map(arena, heapSize/2, fakeproc.RW, "").Map(arena+heapSize/2, heapSize/2, fakeproc.RW, "")
	p.Map(arena+heapSize, arenaSize-heapSize, 0, "").Map(0x7f0000000000, 0x10000, fakeproc.RW, "")
	p.Touch(rwData, 4)
	p.Touch(arena, heapSize/procmem.PageSize)
	return p
}

// theCounters are those of a heap of 32 MiB: 8 in use, 2 released, 20 idle.
var theCounters = []uint64{8 << 20, 2 << 20, 20 << 20, 900 << 20, 895 << 20, 29 << 20}

func TestCounters(t *testing.T) {
	for name, at := range map[string]uint64{
		"in variables": rwData + 0x100, "across two pages": rwData + 0x2000 - 16, "in zeroed ones": rwData + 0x3000,
	} {
		t.Run(name, func(t *testing.T) {
			p := goProgram()
			p.Put(at, theCounters...)
			regions, u, err := Reader{}.Claim(t.Context(), p.Snapshot())
			if err != nil {
				t.Fatal(err)
			}
			if u.InUse != 5*memory.MiB || u.FreePartial != 3*memory.MiB || u.FreeResident != 20*memory.MiB ||
				u.Returnable != u.FreeResident || u.Coverage != 1 {
				t.Errorf("%+v", u)
			}
			var heap uint64
			for _, r := range regions {
				heap += r.End - r.Start
			}
			if heap != heapSize {
				t.Errorf("heap %d", heap)
			}
			p.NothingAbsent(t)
		})
	}
}

// detected reads every process.
type detected struct{ Reader }

func (detected) Detect(*attribution.Snapshot) bool { return true }

// TestTheRestOfAProgram: without a C library, anonymous memory besides the heap is the runtime's. With one it may be
// malloc's.
func TestTheRestOfAProgram(t *testing.T) {
	for library, want := range map[string]memory.Bytes{"": 3 * procmem.PageSize, "/lib/libc.so.6": 0} {
		p := goProgram()
		if library != "" {
			p.Map(0x7e0000000000, 0x1000, fakeproc.RX, library)
		}
		p.Touch(0x7f0000000000, 3)
		p.Put(rwData+0x100, theCounters...)
		r, err := attribution.Attribute(t.Context(), p.Snapshot(), []attribution.Reader{detected{}})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.ByKind()[attribution.GoMeta]; got != want || r.Unexplained != 3*procmem.PageSize-want {
			t.Errorf("with %q: %s of the runtime, %s unexplained, want %s", library, got, r.Unexplained, want)
		}
	}
}

// TestLive: what the last collection found alive precedes the counters, also where a page begins between them, and is
// reported only if it is plausible.
func TestLive(t *testing.T) {
	for name, tc := range map[string]struct {
		at, marked, live uint64
		want             int64
	}{
		"in one page":             {rwData + 0x100, 3 << 20, 4 << 20, 3 << 20},
		"across two pages":        {rwData + 0x1000 + 48, 3 << 20, 4 << 20, 3 << 20},
		"no collection yet":       {rwData + 0x100, 0, 4 << 20, 0},
		"more than is alive":      {rwData + 0x100, 5 << 20, 4 << 20, 0},
		"more alive than in use":  {rwData + 0x100, 3 << 20, 10 << 20, 0},
		"where variables begin":   {rwData, 0, 0, 0},
		"another layout, garbage": {rwData + 0x100, 1 << 60, 1 << 62, 0},
	} {
		p := goProgram()
		p.Put(tc.at, theCounters...)
		if tc.at > rwData {
			p.Put(tc.at-8*markedBefore, tc.marked)
			p.Put(tc.at-8*liveBefore, tc.live)
		}
		_, u, err := Reader{}.Claim(t.Context(), p.Snapshot())
		if err != nil || u.Details[amounts.Live] != tc.want {
			t.Errorf("%s: live %d, %v, want %d", name, u.Details[amounts.Live], err, tc.want)
		}
	}
}

// theTimes are 12 collections on 2 processors, which took 5 s of 20, and the words before them.
var theTimes = []uint64{
	12 | 2<<32, 2, 0, 0, 0, 0, 0, 0, 0, 0,
	1e9, 3e9, 0.5e9, 0.5e9, 5e9, 0, 0, 0, 10e9, 5e9, 20e9,
}

// TestCollectorTime: what collections took is reported where one place in the variables adds up.
func TestCollectorTime(t *testing.T) {
	const at = rwData + 0x1000 - 96 // across two pages
	for name, tc := range map[string]struct {
		change func(w []uint64)
		found  bool
	}{
		"as they are":                     {func([]uint64) {}, true},
		"a pause of the next collection":  {func(w []uint64) { w[13] += 1e6; w[14] += 1e6 }, true},
		"the copy of runtime/metrics":     {func(w []uint64) { w[0], w[1] = 4<<20, 1<<10 }, false},
		"no collection yet":               {func(w []uint64) { w[0] = 2 << 32 }, false},
		"Go 1.20":                         {func(w []uint64) { w[0], w[1] = 2, 1e15 }, false},
		"parts that are not the sum":      {func(w []uint64) { w[10]++ }, false},
		"a scavenger that is not the sum": {func(w []uint64) { w[15]++ }, false},
		"less than all":                   {func(w []uint64) { w[19]-- }, false},
		"far more than all":               {func(w []uint64) { w[19] += 2e9 }, false},
		"a negative time":                 {func(w []uint64) { w[10], w[11] = 1<<64-1e9, 5e9 }, false},
	} {
		p := goProgram()
		p.Put(rwData+0x2100, theCounters...)
		words := append([]uint64(nil), theTimes...)
		tc.change(words)
		p.Put(at, words...)
		_, u, err := Reader{}.Claim(t.Context(), p.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int64{
			amounts.Collections: 12, amounts.CollectorTime: int64(words[14]), amounts.BusyTime: 10e9,
			amounts.Allocated: 900 << 20,
		}
		for detail, value := range want {
			if got, found := u.Details[detail]; found != tc.found || found && got != value {
				t.Errorf("%s: %s is %d, %v, want %d, %v", name, detail, got, found, value, tc.found)
			}
		}
		p.NothingAbsent(t)
	}
}

// TestCollectorTimeOfTwo: of two places that add up none is reported.
func TestCollectorTimeOfTwo(t *testing.T) {
	p := goProgram()
	p.Put(rwData+0x2100, theCounters...)
	p.Put(rwData+0x100, theTimes...)
	p.Put(rwData+0x1100, theTimes...)
	_, u, err := Reader{}.Claim(t.Context(), p.Snapshot())
	if _, found := u.Details[amounts.Collections]; err != nil || found {
		t.Errorf("%v, %v", u.Details, err)
	}
}

// collecting is the memory of a program whose collections find something else each time it is read.
type collecting struct {
	procmem.Memory
	p      *fakeproc.Process
	at     uint64
	marked []uint64 // from the second reading on
	// began is what was in use when the collection began that runs, from the second reading on; 0: none runs.
	began []uint64
	idle  bool // it allocates nothing
	reads int
}

func (c *collecting) ReadAt(b []byte, at uint64) (int, error) {
	if len(b) < procmem.PageSize { // only the counters
		c.p.Put(c.at-8*markedBefore, c.marked[min(c.reads, len(c.marked)-1)])
		triggered := ^uint64(0)
		if c.reads < len(c.began) && c.began[c.reads] > 0 {
			triggered = c.began[c.reads]
		}
		c.p.Put(c.at-8*triggeredBefore, triggered)
		c.reads++
		if more := uint64(c.reads) << 20; !c.idle {
			c.p.Put(c.at+24, theCounters[3]+more, theCounters[4]+more)
		}
	}
	return c.Memory.ReadAt(b, at)
}

// TestLeastAlive: of collections that follow each other without a pause, the one that finds least counts, without what
// was allocated while it ran.
func TestLeastAlive(t *testing.T) {
	const mib, at = 1 << 20, rwData + 0x1000 + 48
	for name, tc := range map[string]struct {
		first  uint64
		marked []uint64
		began  []uint64
		bound  time.Duration // 0: none
		idle   bool
		want   int64
		reads  int
	}{
		"the least": {7 * mib, []uint64{6 * mib, 5 * mib, 7 * mib}, nil, 0, false, 5 * mib, readings},
		// 9 MiB are more than there is
		"a collection that is on": {7 * mib, []uint64{0, 6 * mib, 9 * mib}, nil, 0, false, 6 * mib, readings},
		"what was allocated while it ran": {
			6 * mib, []uint64{6 * mib, 6 * mib, 7 * mib}, []uint64{7 * mib, 6 * mib}, 0, false, 5 * mib, readings,
		},
		"what is no beginning": {
			6 * mib, []uint64{6 * mib, 6 * mib, 7 * mib}, []uint64{5 * mib, 9 * mib}, 0, false, 6 * mib, readings,
		},
		"each has its own": {
			6 * mib, []uint64{6 * mib, 7 * mib, 7 * mib, 6 * mib}, []uint64{7 * mib}, 0, false, 6 * mib, readings,
		},
		"rare collections":     {4 * mib, []uint64{mib}, nil, 0, false, 4 * mib, 0},
		"it allocates nothing": {7 * mib, []uint64{7 * mib}, nil, 0, true, 7 * mib, readings/5 + 1},
		"no time for it":       {7 * mib, []uint64{5 * mib}, nil, 1500 * time.Millisecond, false, 7 * mib, 0},
		"time enough":          {7 * mib, []uint64{5 * mib}, nil, time.Minute, false, 5 * mib, readings},
	} {
		t.Run(name, func(t *testing.T) {
			p := goProgram()
			p.Put(at, theCounters...)
			p.Put(at-8*markedBefore, tc.first)
			p.Put(at-8*liveBefore, 8*mib)
			s := p.Snapshot()
			m := &collecting{Memory: s.Memory, p: p, at: at, marked: tc.marked, began: tc.began, idle: tc.idle}
			s.Memory = m
			synctest.Test(t, func(t *testing.T) { // no second is waited for
				ctx := t.Context()
				if tc.bound > 0 {
					bounded, cancel := context.WithTimeout(ctx, tc.bound)
					defer cancel()
					ctx = bounded
				}
				_, u, err := Reader{Now: time.Now}.Claim(ctx, s)
				if err != nil || u.Details[amounts.Live] != tc.want || m.reads != tc.reads {
					t.Errorf("live %d after %d reads, %v, want %d after %d", u.Details[amounts.Live], m.reads, err, tc.want, tc.reads)
				}
			})
		})
	}
}

// TestCollectedCounters: of two places that fit, the one that follows the result of a collection counts.
func TestCollectedCounters(t *testing.T) {
	for _, at := range []uint64{rwData + 0x800, rwData + 0x200} {
		p := goProgram()
		p.Put(rwData+0x500, 3194880, 20865024, 98304, 32768, 832, 259915776) // in runtime.memstats of a program
		p.Put(at, theCounters...)
		p.Put(at-8*markedBefore, 3<<20)
		p.Put(at-8*liveBefore, 4<<20)
		_, u, err := Reader{}.Claim(t.Context(), p.Snapshot())
		if err != nil || u.Details[amounts.Live] != 3<<20 {
			t.Errorf("counters at %#x: live %d, %v, want 3 MiB", at, u.Details[amounts.Live], err)
		}
	}
}

func TestNothingIsGuessed(t *testing.T) {
	p := goProgram()
	if _, _, err := (Reader{}).Claim(t.Context(), p.Snapshot()); !errors.Is(err, ErrNone) {
		t.Errorf("%v, want %v", err, ErrNone)
	}
	p.Put(rwData+0x100, theCounters...)
	p.Put(rwData+0x200, theCounters...)
	if _, _, err := (Reader{}).Claim(t.Context(), p.Snapshot()); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("%v, want %v", err, ErrAmbiguous)
	}
	for name, change := range map[string]func(c []uint64){
		"more than the heap":       func(c []uint64) { c[0] = 256 << 20 },
		"less than an eighth":      func(c []uint64) { c[0], c[1], c[2] = 1<<20, 0, 0 },
		"no multiple of a span":    func(c []uint64) { c[0] += 4096 },
		"more objects than spans":  func(c []uint64) { c[3] = 910 << 20 },
		"freed more than it had":   func(c []uint64) { c[4] = 901 << 20 },
		"less mapped than in use":  func(c []uint64) { c[5] = 1 << 20 },
		"more mapped than can be":  func(c []uint64) { c[5] = 1 << 50 },
		"sums that wrap around":    func(c []uint64) { c[1] = 1<<64 - 1<<20 },
		"a collector without work": func(c []uint64) { c[3], c[4] = 0, 0 },
		"powers of two":            func(c []uint64) { copy(c, []uint64{128 << 10, 16 << 20, 32 << 10, 8 << 10, 512, 8}) },
	} {
		p := goProgram()
		c := append([]uint64(nil), theCounters...)
		change(c)
		p.Put(rwData+0x100, c...)
		if _, u, err := (Reader{}).Claim(t.Context(), p.Snapshot()); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
}

// countersBudget: variables are read page by page into one buffer.
var countersBudget = budget.Budget{Bytes: 256 << 10, PerByte: 16, CPU: time.Second}

// FuzzCounters reads arbitrary variables.
func FuzzCounters(f *testing.F) {
	var seed []byte
	for _, c := range theCounters {
		seed = binary.LittleEndian.AppendUint64(seed, c)
	}
	f.Add(seed)
	f.Add(make([]byte, 0x3000))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := goProgram()
		p.Write(rwData, data[:min(len(data), 0x4000)])
		s := p.Snapshot()
		var u amounts.Usage
		var err error
		budget.Check(t, countersBudget, len(data), func() { _, u, err = Reader{}.Claim(t.Context(), s) })
		p.NothingAbsent(t)
		if err == nil && (u.InUse < 0 || u.FreePartial < 0 || u.FreeResident > heapSize || u.InUse > 2*heapSize) {
			t.Errorf("%+v", u)
		}
	})
}
