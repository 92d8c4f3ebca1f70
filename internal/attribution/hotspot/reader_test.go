// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package hotspot

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

// Where the parts of a made-up JVM are.
const (
	lib    = 0x7f0000000000 // what libjvm.so exports, and its tables
	libEnd = 0x10000
	java   = 0x7f1000000000 // structures that malloc holds
	heapAt = 0xc0000000
	region = 1 << 20
)

// symbols are exported symbols.
type symbols map[string]uint64

func (s symbols) Symbol(name string) (uint64, error) {
	at, ok := s[name]
	if !ok {
		return 0, errors.New("not exported")
	}
	return at, nil
}

// made is a synthetic JVM. Its tables grow as fields are declared.
type made struct {
	*fakeproc.Process
	symbols symbols
	next    uint64 // where the next name or variable goes
	structs uint64 // where the next entry of the table of structures goes
	types   uint64
	flags   uint64
	count   uint64
}

func newJVM() *made {
	p := fakeproc.New().Map(lib, libEnd, fakeproc.RW, "/jdk/lib/server/libjvm.so")
	p.Map(java, 0x10000, fakeproc.RW, "").Map(heapAt, 8*region, fakeproc.RW, "")
	p.Map(heapAt+8*region, 8*region, 0, "") // reserved
	p.Touch(lib, libEnd/procmem.PageSize)
	p.Touch(java, 16)
	j := &made{Process: p, symbols: symbols{}, next: lib, structs: lib + 0x8000, types: lib + 0xc000, flags: java + 0x8000}
	j.export("gHotSpotVMStructs", j.structs)
	j.export("gHotSpotVMStructEntryArrayStride", 48)
	for i, c := range []string{"TypeName", "FieldName", "TypeString", "IsStatic", "Offset", "Address"} {
		j.export("gHotSpotVMStructEntry"+c+"Offset", uint64(8*i))
	}
	j.export("gHotSpotVMTypes", j.types)
	j.export("gHotSpotVMTypeEntryArrayStride", 16)
	j.export("gHotSpotVMTypeEntryTypeNameOffset", 0)
	j.export("gHotSpotVMTypeEntrySizeOffset", 8)
	j.Put(j.types, j.text("JVMFlag"), 24)
	j.static("JVMFlag", "flags", "JVMFlag*", j.flags)
	j.static("JVMFlag", "numFlags", "size_t", 8)
	j.field("JVMFlag", "_name", "const char*", 0)
	j.field("JVMFlag", "_addr", "void*", 8)
	return j
}

func (j *made) variable(value uint64) uint64 {
	at := j.next
	j.Put(at, value)
	j.next += 8
	return at
}

func (j *made) export(name string, value uint64) { j.symbols[name] = j.variable(value) }

func (j *made) text(text string) uint64 {
	at := j.next
	j.Write(at, append([]byte(text), 0))
	j.next += uint64(len(text)/8+1) * 8
	return at
}

func (j *made) field(typeName, name, kind string, offset uint64) {
	j.Put(j.structs, j.text(typeName), j.text(name), j.text(kind), 0, offset, 0)
	j.structs += 48
}

func (j *made) static(typeName, name, kind string, value uint64) {
	j.Put(j.structs, j.text(typeName), j.text(name), j.text(kind), 1, 0, j.variable(value))
	j.structs += 48
}

func (j *made) flag(name string, value uint64) {
	j.Put(j.flags+24*j.count, j.text(name), j.variable(value))
	j.count++
}

// heap declares the heap, which lies at an address of 16 regions.
func (j *made) heap() {
	j.static("Universe", "_collectedHeap", "CollectedHeap*", java)
	j.field("CollectedHeap", "_reserved", "MemRegion", 16)
	j.field("MemRegion", "_start", "HeapWord*", 0)
	j.field("MemRegion", "_word_size", "size_t", 8)
	j.Put(java+16, heapAt, 16*region/8)
}

// g1 declares regions: one of objects, half filled, one that is free but resident, and one that is neither.
func (j *made) g1() {
	j.heap()
	j.flag("UseSerialGC", 0)
	j.flag("UseG1GC", 1)
	j.flag("MaxHeapSize", 16*region)
	j.field("G1CollectedHeap", "_hrm", "HeapRegionManager", 64)
	j.field("HeapRegionManager", "_regions", "G1HeapRegionTable", 8)
	j.field("G1HeapRegionTable", "_base", "address", 0)
	j.field("G1HeapRegionTable", "_length", "size_t", 8)
	for i, f := range []string{"_bottom", "_top", "_end"} {
		j.field("HeapRegion", f, "HeapWord*", uint64(8*i))
	}
	j.field("HeapRegion", "_type", "HeapRegionType", 24)
	j.field("HeapRegionType", "_tag", "Tag volatile", 4)
	j.Put(java+64+8, java+0x1000, 4)
	for i, r := range []struct{ top, tag uint64 }{{region / 2, 2}, {region, 0}, {0, 0}} {
		at := java + 0x2000 + uint64(i)*64
		bottom := heapAt + uint64(i)*region
		j.Put(java+0x1000+uint64(8*i), at)
		j.Put(at, bottom, bottom+r.top, bottom+region, r.tag<<32)
	}
	j.Touch(heapAt, 2*region/procmem.PageSize)
}

func (j *made) claim(pages int) ([]attribution.Region, amounts.Usage, error) {
	s := j.Snapshot()
	r := words.New(s, pages)
	defer r.Close()
	return claim(j.symbols, s, r)
}

func TestG1(t *testing.T) {
	j := newJVM()
	j.g1()
	j.static("CodeCache", "_low_bound", "address", java+0x100000)
	j.static("CodeCache", "_high_bound", "address", java+0x200000)
	regions, u, err := j.claim(1000)
	if err != nil || len(regions) != 2 || regions[0].Kind != attribution.JVMCode || regions[1].End != heapAt+16*region {
		t.Fatalf("%v, %v", regions, err)
	}
	half := memory.Bytes(region / 2)
	if u.InUse != half || u.FreeResident != 3*half || u.Coverage != 1 || u.Details["MaxHeapSize"] != 16*region ||
		u.Details[Filled] != region/2 {
		t.Errorf("%+v", u)
	}
	j.NothingAbsent(t)
}

// TestHeapOrigin: the JVM reports whether it computed the size of its heap, or a flag set it.
func TestHeapOrigin(t *testing.T) {
	for origin, want := range map[uint64]int64{0: 0, 1: 0, 2: 0, 5: 1, 1<<17 | 5: 1, 1<<17 | 1: 0} {
		j := newJVM()
		j.field("JVMFlag", "_flags", "JVMFlag::Flags", 16)
		j.g1()
		j.Put(j.flags+2*24+16, origin) // the third flag is MaxHeapSize
		_, u, err := j.claim(1000)
		if got := u.Details[amounts.HeapFollowsMemory]; err != nil || got != want {
			t.Errorf("origin %d: %d, %v; want %d", origin, got, err, want)
		}
	}
	j := newJVM()
	j.g1()
	_, u, err := j.claim(1000)
	_, known := u.Details[amounts.HeapFollowsMemory]
	if err != nil || known {
		t.Errorf("a JVM that does not export the origin: %+v, %v", u.Details, err)
	}
}

// TestCollectorTime: what the collector took is known where its threads are, and never more than the process took.
func TestCollectorTime(t *testing.T) {
	const s = time.Second
	type threads map[string]time.Duration
	timed := func(of threads, err error) *attribution.Snapshot {
		j := newJVM()
		j.g1()
		snapshot := j.Snapshot()
		snapshot.Times = func() (procmem.Times, error) {
			times := procmem.Times{Process: 20 * s}
			for name, took := range of {
				times.Threads = append(times.Threads, procmem.ThreadTime{Name: name, Time: took})
			}
			return times, err
		}
		return snapshot
	}
	for name, tc := range map[string]struct {
		flag      string
		threads   threads
		err       error
		collector time.Duration // 0: not known
	}{
		"Serial": {"UseSerialGC", threads{"java": s, "VM Thread": 3 * s, "VM Periodic Tas": s}, nil, 3 * s},
		"G1": {"UseG1GC", threads{
			"VM Thread": s, "GC Thread#0": s, "GC Thread#12": s, "G1 Conc#0": s, "G1 Main Marker": s, "G1 Young RemSet": s,
			"C2 CompilerThre": s, "GC": s,
		}, nil, 6 * s},
		"Parallel of JDK 11":           {"UseParallelGC", threads{"VM Thread": s, "ParGC Thread#0": 2 * s}, nil, 3 * s},
		"threads without names, JDK 8": {"UseSerialGC", threads{"java": s}, nil, 0},
		"workers without names":        {"UseParallelGC", threads{"VM Thread": s, "java": s}, nil, 0},
		"a collector that is not read": {"UseShenandoahGC", threads{"VM Thread": s, "GC Thread#0": s}, nil, 0},
		"more than the process":        {"UseSerialGC", threads{"VM Thread": 30 * s}, nil, 20 * s},
		"unreadable":                   {"UseSerialGC", threads{"VM Thread": s}, procmem.ErrGone, 0},
	} {
		collector, busy, ok := (&jvm{s: timed(tc.threads, tc.err)}).times(map[string]uint64{tc.flag: 1})
		if ok != (tc.collector > 0) || ok && (collector != tc.collector || busy != 20*s) {
			t.Errorf("%s: %s of %s, %v; want %s", name, collector, busy, ok, tc.collector)
		}
	}
	j := newJVM()
	j.g1()
	snapshot := j.Snapshot()
	snapshot.Times = timed(threads{"VM Thread": s, "GC Thread#0": s}, nil).Times
	r := words.New(snapshot, 1000)
	defer r.Close()
	_, u, err := claim(j.symbols, snapshot, r)
	if err != nil || u.Details[amounts.CollectorTime] != int64(2*s) || u.Details[amounts.BusyTime] != int64(20*s) {
		t.Errorf("%+v, %v", u, err)
	}
}

// TestSerial: four spaces, three of which are filled in part. What is filled and was never touched is not in use.
func TestSerial(t *testing.T) {
	used := memory.Bytes(6 * 0x10000)
	for touched, inUse := range map[int]memory.Bytes{4: used, 3: used - 3*0x10000} {
		_, u, err := serial(touched).claim(1000)
		if err != nil || u.InUse != inUse || u.FreeResident != memory.Bytes(touched)*region-inUse || u.Coverage != 1 ||
			u.Details[Filled] != int64(used) {
			t.Errorf("%d spaces are resident: %+v, %v", touched, u, err)
		}
	}
}

// serial is a JVM with four spaces, of which so many are resident.
func serial(touched int) *made {
	j := newJVM()
	j.heap()
	j.flag("UseSerialGC", 1)
	j.field("SerialHeap", "_young_gen", "DefNewGeneration*", 64)
	j.field("SerialHeap", "_old_gen", "TenuredGeneration*", 72)
	for i, f := range []string{"_eden_space", "_from_space", "_to_space"} {
		j.field("DefNewGeneration", f, "ContiguousSpace*", uint64(8*i))
	}
	j.field("TenuredGeneration", "_the_space", "ContiguousSpace*", 0)
	for i, f := range []string{"_bottom", "_top", "_end"} {
		j.field("ContiguousSpace", f, "HeapWord*", uint64(8*i))
	}
	j.Put(java+64, java+0x1000, java+0x1100)
	for i := range uint64(4) {
		at, bottom := java+0x2000+64*i, heapAt+i*region
		j.Put(at, bottom, bottom+i*0x10000, bottom+region)
		j.Put(java+0x1000+8*i, at)
	}
	j.Put(java+0x1100, java+0x2000+64*3)
	j.Touch(heapAt, touched*region/procmem.PageSize)
	return j
}

// TestWhatIsNotSplit: the range of a heap is reported where its parts are not known, with no amounts.
func TestWhatIsNotSplit(t *testing.T) {
	j := newJVM()
	j.heap()
	j.flag("UseZGC", 1)
	j.Touch(heapAt, 10)
	regions, u, err := j.claim(1000)
	if err != nil || len(regions) != 1 || u.Coverage != 0 || u.InUse != 0 {
		t.Errorf("%v, %+v, %v", regions, u, err)
	}
	j = newJVM()
	j.g1()
	j.Put(java+0x1008, java+0x2000) // one region twice
	if _, u, err := j.claim(1000); err != nil || u.Coverage != 0 {
		t.Errorf("%+v, %v", u, err)
	}
	j = newJVM()
	j.g1()
	j.Put(java+0x2000+8, 12345) // a region that is filled to somewhere else
	if _, u, err := j.claim(1000); err != nil || u.Coverage != 0 || u.InUse != 0 {
		t.Errorf("%+v, %v", u, err)
	}
	j = newJVM()
	j.g1()
	j.Put(java+64+16, 1<<40) // that many regions
	if _, u, err := j.claim(1000); err != nil || u.Coverage != 0 {
		t.Errorf("%+v, %v", u, err)
	}
}

func TestNoTables(t *testing.T) {
	for name, change := range map[string]func(j *made){
		"a symbol is missing":      func(j *made) { delete(j.symbols, "gHotSpotVMTypes") },
		"a table that is nowhere":  func(j *made) { j.Put(j.symbols["gHotSpotVMStructs"], 0) },
		"entries without size":     func(j *made) { j.Put(j.symbols["gHotSpotVMStructEntryArrayStride"], 0) },
		"a column behind":          func(j *made) { j.Put(j.symbols["gHotSpotVMStructEntryAddressOffset"], 4096) },
		"more flags than can be":   func(j *made) { j.static("JVMFlag", "numFlags", "size_t", 1<<40) },
		"no heap yet":              func(j *made) { j.static("Universe", "_collectedHeap", "CollectedHeap*", 0) },
		"a heap of too many words": func(j *made) { j.Put(java+24, 1<<50) },
	} {
		j := newJVM()
		j.g1()
		change(j)
		if _, u, err := j.claim(1000); !errors.Is(err, ErrNoTables) {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
	j := newJVM()
	j.g1()
	if _, _, err := j.claim(3); !errors.Is(err, procmem.ErrBudget) {
		t.Errorf("%v, want %v", err, procmem.ErrBudget)
	}
}

// tablesBudget: names are at most 96 bytes of 4,096 entries, of which those of some 30 types are kept.
var tablesBudget = budget.Budget{Bytes: 16 << 20, PerByte: 64, CPU: 2 * time.Second}

// FuzzTables reads a JVM with arbitrary tables and structures.
func FuzzTables(f *testing.F) {
	const part = 0x4000
	j := newJVM()
	j.g1()
	seed := make([]byte, 2*part)
	for i, at := range []uint64{lib + 0x8000, java} {
		for page := uint64(0); page < part; page += procmem.PageSize {
			if _, err := j.ReadAt(seed[uint64(i)*part+page:][:procmem.PageSize], at+page); err != nil {
				f.Fatal(err)
			}
		}
	}
	f.Add(seed)
	f.Add(make([]byte, part))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = data[:min(len(data), 2*part)]
		j := newJVM()
		j.g1()
		j.Write(lib+0x8000, data[:min(len(data), part)])
		if len(data) > part {
			j.Write(java, data[part:])
		}
		s := j.Snapshot()
		r := words.New(s, maxPages)
		var u amounts.Usage
		var err error
		budget.Check(t, tablesBudget, len(data), func() { _, u, err = claim(j.symbols, s, r) })
		j.NothingAbsent(t)
		var rss memory.Bytes
		for _, m := range s.Mappings {
			rss += m.RSS
		}
		if err == nil && (u.Coverage < 0 || u.Coverage > 1 || u.InUse < 0 || u.InUse+u.FreeResident > rss) {
			t.Errorf("%+v of %s", u, rss)
		}
	})
}
