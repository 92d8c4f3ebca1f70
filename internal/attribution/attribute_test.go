// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package attribution_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
	"github.com/memfit/memfit/test/fakeproc"
)

const page = procmem.PageSize

// claimer claims what it is reported.
type claimer struct {
	name     string
	regions  []attribution.Region
	usage    amounts.Usage
	err      error
	unlikely bool
}

func (c claimer) Name() string                      { return c.name }
func (c claimer) Detect(*attribution.Snapshot) bool { return !c.unlikely }
func (c claimer) Claim(context.Context, *attribution.Snapshot) ([]attribution.Region, amounts.Usage, error) {
	return c.regions, c.usage, c.err
}

func attribute(t *testing.T, p *fakeproc.Process, readers ...attribution.Reader) attribution.Result {
	t.Helper()
	r, err := attribution.Attribute(t.Context(), p.Snapshot(), readers)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// part is a region in short.
type part struct {
	Start, End uint64
	Kind       attribution.Kind
	Owner      string
	RSS        memory.Bytes
}

func parts(r attribution.Result) []part {
	var all []part
	for _, one := range r.Regions {
		all = append(all, part{one.Start, one.End, one.Kind, one.Owner, one.RSS})
	}
	return all
}

// TestClaims: the first claim counts, no byte is claimed twice, unmapped memory is not claimed, and the parts add up
// to what the kernel counts.
func TestClaims(t *testing.T) {
	p := fakeproc.New().Map(0x10000, 0x10000, fakeproc.RW, "").Map(0x30000, 0x2000, fakeproc.RW, "")
	p.Touch(0x11000, 2)
	p.Touch(0x14000, 8)
	p.Touch(0x30000, 2)
	first := claimer{name: "first", regions: []attribution.Region{
		{Start: 0x14000, End: 0x18000, Kind: attribution.V8Page}, {Start: 0x12000, End: 0x15000, Kind: attribution.GoHeap},
		{Start: 0x19000, End: 0x18000, Kind: attribution.PyArena},
	}}
	second := claimer{name: "second", regions: []attribution.Region{{Start: 0, End: 0x31000, Kind: attribution.Arena}}}
	r := attribute(t, p, first, claimer{unlikely: true}, second)
	want := []part{
		{0x10000, 0x12000, attribution.Arena, "second", page},
		{0x12000, 0x15000, attribution.GoHeap, "first", 2 * page},
		{0x15000, 0x18000, attribution.V8Page, "first", 3 * page},
		{0x18000, 0x20000, attribution.Arena, "second", 4 * page},
		{0x30000, 0x31000, attribution.Arena, "second", page},
		{0x31000, 0x32000, attribution.Other, "", page},
	}
	if diff := cmp.Diff(want, parts(r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if r.RSS != 12*page || r.Unexplained != page {
		t.Errorf("RSS %s of which %s is unexplained, want 12 pages and 1", r.RSS, r.Unexplained)
	}
}

// TestAmountsNeedCoverage: below 95 % only the coverage is reported, and regions stay.
func TestAmountsNeedCoverage(t *testing.T) {
	p := fakeproc.New().Map(0x10000, 0x1000, fakeproc.RW, "")
	regions := []attribution.Region{{Start: 0x10000, End: 0x11000, Kind: attribution.Arena}}
	for coverage, told := range map[float64]bool{0.9499: false, 0.95: true, 1: true, 0: false} {
		r := attribute(
			t, p, claimer{name: "x", regions: regions, usage: amounts.Usage{InUse: 7, Returnable: 8, Coverage: coverage}},
		)
		u := r.Usages[0]
		if (u.InUse != 0 || u.Returnable != 0) != told || u.Coverage != coverage {
			t.Errorf("coverage %f: %+v", coverage, u)
		}
		if r.Regions[0].Kind != attribution.Arena {
			t.Errorf("coverage %f: the region is %s", coverage, r.Regions[0].Kind)
		}
	}
}

func TestFailuresAreTold(t *testing.T) {
	p := fakeproc.New().Map(0x10000, 0x1000, fakeproc.RW, "")
	p.Touch(0x10000, 1)
	broken := errors.New("broken")
	r := attribute(t, p, claimer{name: "x", err: broken})
	if len(r.Failed) != 1 || r.Failed[0].Reader != "x" || !errors.Is(r.Failed[0].Err, broken) || r.Unexplained != page {
		t.Errorf("%+v", r)
	}
}

// TestGone: what was read of a process that has ended meanwhile may be another's.
func TestGone(t *testing.T) {
	s := fakeproc.New().Map(0x10000, 0x1000, fakeproc.RW, "").Snapshot()
	s.Same = func() error { return procmem.ErrGone }
	if _, err := attribution.Attribute(t.Context(), s, nil); !errors.Is(err, procmem.ErrGone) {
		t.Errorf("error %v", err)
	}
}

// TestRules: one mapping for each rule, in the order of addresses.
func TestRules(t *testing.T) {
	const none = procmem.Perms(0)
	shared := fakeproc.RW | procmem.Shared
	all := []struct {
		perms procmem.Perms
		path  string
		apart bool // it does not begin where the one before ends
		want  attribution.Kind
	}{
		{fakeproc.RX, "/app", false, attribution.Files},
		{procmem.Readable, "/app", false, attribution.Files},
		{fakeproc.RW, "/app", false, attribution.Variables},
		{fakeproc.RW, "", false, attribution.Variables},
		{fakeproc.RW, "[heap]", true, attribution.BrkHeap},
		{procmem.Readable, "/usr/lib/server/classes.jsa", true, attribution.JVMCDS},
		{shared, "/dev/zero (deleted)", true, attribution.Shmem},
		{shared, "/memfd:x (deleted)", false, attribution.Shmem},
		{shared, "/SYSV00000000 (deleted)", false, attribution.Shmem},
		{shared, "/data/index", false, attribution.Variables},
		{fakeproc.RW, "/anon_hugepage (deleted)", false, attribution.HugeTLB},
		{fakeproc.RW, "[anon:glibc: malloc arena]", true, attribution.Arena},
		{fakeproc.RW, "[anon:glibc: pthread stack: 17]", false, attribution.Stack},
		{fakeproc.RW, "[anon:somebody's secret]", false, attribution.Named},
		{fakeproc.RW | procmem.Executable, "", true, attribution.JIT},
		{fakeproc.RW, "", true, attribution.Other},
		{none, "", true, attribution.Other},
		{fakeproc.RW, "[stack]", true, attribution.Stack},
		{procmem.Readable, "[vvar]", true, attribution.Kernel},
		{fakeproc.RX, "[vdso]", false, attribution.Kernel},
	}
	p := fakeproc.New()
	at := uint64(0x10000)
	for _, m := range all {
		if m.apart {
			at += 0x10000
		}
		p.Map(at, 0x1000, m.perms, m.path)
		at += 0x1000
	}
	r := attribute(t, p)
	for i, m := range all {
		if got := r.Regions[i].Kind; got != m.want {
			t.Errorf("%q with permissions %d is %s, want %s", m.path, m.perms, got, m.want)
		}
	}
}

// TestStacks: a thread's descriptor lies at the top of its stack.
func TestStacks(t *testing.T) {
	s := fakeproc.New().Map(0x10000, 0x1000, fakeproc.RW, "").Map(0x20000, 0x8000, fakeproc.RW, "").Snapshot()
	s.Process.RobustLists = []uint64{0x27700, 0x90000}
	r, err := attribution.Attribute(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Regions[0].Kind != attribution.Other || r.Regions[1].Kind != attribution.Stack {
		t.Errorf("%+v", r.Regions)
	}
}

// TestWhatIsLeft: unclaimed memory of a JVM is the JVM's, and with an allocator in a library it is the allocator's.
func TestWhatIsLeft(t *testing.T) {
	for library, want := range map[string]attribution.Kind{
		"/opt/java/lib/server/libjvm.so": attribution.JVMOther, "/usr/lib/libjemalloc.so.2": attribution.Jemalloc,
		"/usr/lib/libtcmalloc_minimal.so.4": attribution.Tcmalloc, "/usr/lib/libmimalloc.so.2.0": attribution.Mimalloc,
		"/usr/lib/libssl.so.3": attribution.Other,
	} {
		p := fakeproc.New().Map(0x10000, 0x1000, fakeproc.RX, library).Map(0x40000, 0x1000, fakeproc.RW, "")
		if got := attribute(t, p).Regions[1].Kind; got != want {
			t.Errorf("with %s it is %s, want %s", library, got, want)
		}
	}
}
