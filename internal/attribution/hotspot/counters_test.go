// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/test/budget"
	"github.com/memfit/memfit/test/fakeproc"
	"github.com/memfit/memfit/test/fakeproc/hsperf"
)

const perfAt = 0x7f2000000000

// busy is a JVM with Serial at its largest heap, after a full collection that left 12 bytes.
func busy() map[string]uint64 {
	return map[string]uint64{
		youngCount: 3, fullCount: 4, youngTicks: 5, fullTicks: 6, youngExit: 100, fullExit: 200, youngSize: 10,
		youngMaxSize: 10, oldSize: 20, oldMaxSize: 20, edenSize: 8, edenUsed: 2, oldUsed: 10,
	}
}

// publishing is a process that publishes counters; what is written behind the file is not resident.
func publishing(counters map[string]uint64) *fakeproc.Process {
	p := fakeproc.New().Map(perfAt, 0x8000, fakeproc.RW, "/tmp/hsperfdata_app/1")
	p.Write(perfAt, perfFile(counters))
	return p
}

func perfFile(counters map[string]uint64) []byte {
	return perfFileOf(noSpace, counters)
}

func perfFileOf(cause string, counters map[string]uint64) []byte {
	entries := []hsperf.Entry{
		{Name: "sun.rt.javaCommand", Text: []byte("app.jar --password=hunter2\x00")},
		{Name: lastCause, Text: []byte(cause + "\x00")},
	}
	for name, value := range counters {
		entries = append(entries, hsperf.Entry{Name: name, Value: value})
	}
	return hsperf.File(entries...)
}

func TestCounters(t *testing.T) {
	want := map[string]int64{
		amounts.YoungCollections: 3, amounts.FullCollections: 4, amounts.YoungTime: 5, amounts.FullTime: 6,
		amounts.Eden: 8, amounts.Old: 20, amounts.Live: 12,
	}
	young := maps.Clone(want)
	delete(young, amounts.Live)
	for name, tc := range map[string]struct {
		change map[string]uint64
		want   map[string]int64
	}{
		"after a full collection":       {nil, want},
		"after a young one":             {map[string]uint64{youngExit: 300}, young},
		"the old generation may grow":   {map[string]uint64{oldMaxSize: 21}, nil},
		"the young one may grow":        {map[string]uint64{youngMaxSize: 11}, nil},
		"a counter that is less than 0": {map[string]uint64{edenUsed: 1 << 63}, nil},
	} {
		counted := busy()
		maps.Copy(counted, tc.change)
		p := publishing(counted)
		if got := counters(p.Snapshot()); !maps.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		p.NothingAbsent(t)
	}
	asked := publishing(nil)
	asked.Write(perfAt, perfFileOf("System.gc()", busy()))
	if got := counters(asked.Snapshot()); !maps.Equal(got, young) {
		t.Errorf("the program asked for its collections: %v, want %v", got, young)
	}
	if got := counters(fakeproc.New().Snapshot()); got != nil {
		t.Errorf("a JVM that publishes nothing: %v", got)
	}
}

// TestMomentOfCollections: collections are watched where they cost something, until a full one is the last.
func TestMomentOfCollections(t *testing.T) {
	costs := map[string]int64{
		"UseSerialGC": 1, amounts.HeapFollowsMemory: 1, amounts.CollectorTime: 10, amounts.BusyTime: 100,
	}
	r := Reader{Now: time.Now}
	counted := busy()
	counted[youngExit] = 300
	p := publishing(counted)
	reads := 0
	p.BeforeRead = func(uint64) {
		if reads++; reads == 5 {
			p.BeforeRead = nil
			p.Write(perfAt, perfFile(busy()))
		}
	}
	if got := r.collections(t.Context(), p.Snapshot(), costs); got[amounts.Live] != 12 {
		t.Errorf("%v after %d readings", got, reads)
	}
	for name, of := range map[string]map[string]int64{
		"little":   {"UseSerialGC": 1, amounts.HeapFollowsMemory: 1, amounts.CollectorTime: 1, amounts.BusyTime: 100},
		"G1":       {"UseG1GC": 1, amounts.HeapFollowsMemory: 1, amounts.CollectorTime: 10, amounts.BusyTime: 100},
		"-Xmx":     {"UseSerialGC": 1, amounts.CollectorTime: 10, amounts.BusyTime: 100},
		"no times": {"UseSerialGC": 1, amounts.HeapFollowsMemory: 1},
	} {
		if got := r.collections(t.Context(), publishing(busy()).Snapshot(), of); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchTime)
	defer cancel()
	p = publishing(counted)
	before := time.Now()
	got := r.collections(ctx, p.Snapshot(), costs)
	if got[amounts.FullCollections] != 4 || got[amounts.Live] != 0 || time.Since(before) > watchTime/2 {
		t.Errorf("with little time left: %v after %s", got, time.Since(before))
	}
}

// countersBudget: the file is read once, and each entry visited.
var countersBudget = budget.Budget{Bytes: 2 << 20, PerByte: 16, CPU: time.Second}

// FuzzHeapCounters reads arbitrary counters.
func FuzzHeapCounters(f *testing.F) {
	f.Add(perfFile(busy()))
	f.Add([]byte{0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		p := fakeproc.New().Map(perfAt, 0x100000, fakeproc.RW, "/tmp/hsperfdata_app/1")
		p.Write(perfAt, data[:min(len(data), 0x100000-procmem.PageSize)])
		s := p.Snapshot()
		budget.Check(t, countersBudget, len(data), func() {
			for name, value := range counters(s) {
				if value < 0 {
					t.Errorf("%s is %d", name, value)
				}
			}
		})
		p.NothingAbsent(t)
	})
}
