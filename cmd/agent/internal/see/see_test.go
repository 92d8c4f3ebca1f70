// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package see

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/agent/internal/scan"
	"github.com/memfit/memfit/internal/attribution"
	"github.com/memfit/memfit/internal/attribution/amounts"
	"github.com/memfit/memfit/internal/attribution/glibc"
	"github.com/memfit/memfit/internal/attribution/ruby"
	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/detect"
	"github.com/memfit/memfit/internal/liveness"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/pagemap"
	"github.com/memfit/memfit/internal/procmem/live"
	"github.com/memfit/memfit/test/fakeproc/procdir"
)

// TestItself inspects the process of this test, which may always be read: its parts and the unexplained amount add up
// to what is resident, and it runs Go.
func TestItself(t *testing.T) {
	e := newInspector("/proc", cgroup.V2, nil, time.Now)
	both := []int{os.Getpid(), 1 << 22} // the second is no process
	f := e.inspectContainer(t.Context(), scan.Inspection{Container: "x", PIDs: both, WithMap: true})
	if f.Err != nil || f.Memory == nil || f.Memory.Processes != 1 {
		t.Fatalf("%+v", f)
	}
	total := f.Memory.Unexplained.DeepCopy()
	for i := range f.Memory.Parts {
		total.Add(f.Memory.Parts[i].Resident)
	}
	if total.Cmp(f.Memory.Resident) != 0 {
		t.Errorf("%s in all, %s resident: %+v", total.String(), f.Memory.Resident.String(), f.Memory.Parts)
	}
	all := memory.Bytes(0)
	if f.Map.Rest != nil {
		all = memory.FromQuantity(*f.Map.Rest)
	}
	for i := range f.Map.Regions {
		r := &f.Map.Regions[i]
		all += memory.FromQuantity(r.Resident)
		if _, err := pagemap.Parse(r.Pages, memory.FromQuantity(r.Size), memory.FromQuantity(r.Block)); err != nil {
			t.Errorf("the map of %s cannot be read: %v", r.Part, err)
		}
	}
	if off := float64(all)/float64(f.Memory.Resident.Value()) - 1; off > 0.1 || off < -0.1 { // it runs meanwhile
		t.Errorf("a map of %s of %s that are resident", all, f.Memory.Resident.String())
	}
	if f.Runtime == nil || f.Runtime.Type != "Go" || !strings.HasPrefix("go"+f.Runtime.Version, runtime.Version()) {
		t.Errorf("%+v, want Go %s", f.Runtime, runtime.Version())
	}
	f = e.inspectContainer(t.Context(), scan.Inspection{Container: "x", PIDs: []int{1 << 22}})
	if f.Err == nil || f.Memory != nil {
		t.Errorf("a container without a process that can be read: %+v", f)
	}
}

// slow is a reader that does not come to an end with one process, as a hostile one would have it.
type slow struct {
	index int // of the process
	seen  map[int]bool
	end   func() // of the time that there is
}

func (*slow) Name() string { return "slow" }
func (r *slow) Detect(s *attribution.Snapshot) bool {
	r.seen[s.Process.PID] = true
	return len(r.seen) == r.index+1
}

func (r *slow) Claim(
	ctx context.Context, _ *attribution.Snapshot,
) (claimed []attribution.Region, usage amounts.Usage, err error) {
	r.end()
	<-ctx.Done()
	return nil, usage, ctx.Err()
}

// app is a container, and webPod and bankPod are pods.
const (
	app     = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	other   = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
	webPod  = "254a8dbd-72d3-46e9-bb4e-d852b1221545"
	bankPod = "254a8dbd-72d3-46e9-bb4e-d852b1221546"
)

// idle starts as many processes that do nothing, and returns a /proc in which they are of the container app.
func idle(t *testing.T, count int) (proc string, pids []int) {
	t.Helper()
	proc = t.TempDir()
	for range count {
		command := exec.CommandContext(t.Context(), "sleep", "600")
		if err := command.Start(); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
		pids = append(pids, command.Process.Pid)
		if err := procdir.Add(proc, command.Process.Pid, command.Process.Pid, procdir.Cgroup(webPod, app)); err != nil {
			t.Fatal(err)
		}
	}
	for before := memory.Bytes(0); ; time.Sleep(50 * time.Millisecond) { // until they have loaded their libraries
		now := residentIn(proc, pids)
		if now == before {
			return proc, pids
		}
		before = now
	}
}

// residentIn is what the kernel counts for processes of the container app.
func residentIn(proc string, pids []int) (sum memory.Bytes) {
	e := newInspector(proc, cgroup.V2, nil, time.Now)
	for _, pid := range pids {
		sum += e.resident(app, pid)
	}
	return sum
}

// TestWhatIsNotReadIsCounted: of forty processes some are not inspected, because there are too many or because one took
// all the time. All are counted, what is resident in them is unexplained, and one that has ended is not missed.
func TestWhatIsNotReadIsCounted(t *testing.T) {
	proc, pids := idle(t, 40)
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Skip(err)
	}
	for name, c := range map[string]struct {
		pids   []int
		slow   int // index, by size, of the one that takes all the time; 0: none
		more   bool
		unread int
	}{
		"all are read":                   {pids: pids[:10]},
		"more than are inspected":        {pids: pids, unread: 40 - maxProcesses},
		"one takes all the time":         {pids: pids[:20], slow: 5, unread: 15},
		"one has ended":                  {pids: slices.Insert(slices.Clone(pids[:10]), 4, ended.Process.Pid)},
		"there are others, nobody knows": {pids: pids[:10], more: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var readers []attribution.Reader
			if c.slow > 0 { // the second reader is not asked any more
				one := &slow{c.slow, map[int]bool{}, cancel}
				readers = []attribution.Reader{one, one}
			}
			inspection := scan.Inspection{Container: app, PIDs: c.pids, WithMap: true, More: c.more}
			f := newInspector(proc, cgroup.V2, readers, time.Now).inspectContainer(ctx, inspection)
			if f.Err != nil {
				t.Fatal(f.Err)
			}
			there := slices.DeleteFunc(slices.Clone(c.pids), func(pid int) bool { return pid == ended.Process.Pid })
			if int(f.Memory.Processes) != len(there) {
				t.Errorf("%d processes, want %d", f.Memory.Processes, len(there))
			}
			resident := residentIn(proc, there)
			near := func(b memory.Bytes) bool { return max(b, resident)-min(b, resident) <= resident/20 }
			total := memory.FromQuantity(f.Memory.Unexplained)
			for i := range f.Memory.Parts {
				total += memory.FromQuantity(f.Memory.Parts[i].Resident)
			}
			if got := memory.FromQuantity(f.Memory.Resident); got != total || !near(got) {
				t.Errorf("%s resident, parts of %s; the kernel counts %s", got, total, resident)
			}
			all, drawn := c.unread == 0 && !c.more, memory.Bytes(0)
			if f.Map.Rest != nil {
				drawn = memory.FromQuantity(*f.Map.Rest)
			}
			for i := range f.Map.Regions {
				drawn += memory.FromQuantity(f.Map.Regions[i].Resident)
			}
			if !near(drawn) {
				t.Errorf("a map of %s of %s that are resident", drawn, resident)
			}
			unread := fmt.Sprintf("%d of %d processes, with ", c.unread, len(there))
			if all && f.Unread != "" || c.unread > 0 && !strings.HasPrefix(f.Unread, unread) {
				t.Errorf("it is told that %q could not be read, want %s", f.Unread, unread)
			}
			// The largest are read, which hold a little more than their share.
			if share := 100 - 95*c.unread/len(there); !c.more && int(f.Memory.CoveragePercent) > share {
				t.Errorf("%d %% are covered, of %d processes %d are unread", f.Memory.CoveragePercent, len(there), c.unread)
			}
			if c.more && (f.Memory.CoveragePercent != 0 || f.Unread == "") {
				t.Errorf("%d %% of what nobody has listed are covered, %q", f.Memory.CoveragePercent, f.Unread)
			}
		})
	}
}

// TestNumberIsAssignedToANeighbor: a number that was listed for a container belongs to a process of another pod by the
// time it is inspected, perhaps of one that refuses inspections. Nothing of that process is reported.
func TestNumberIsAssignedToANeighbor(t *testing.T) {
	proc, pids := idle(t, 3)
	neighbor := pids[2]
	if err := procdir.Add(proc, neighbor, os.Getpid(), procdir.Cgroup(bankPod, other)); err != nil {
		t.Fatal(err)
	}
	want := residentIn(proc, pids[:2])
	e := newInspector(proc, cgroup.V2, nil, time.Now)
	f := e.inspectContainer(t.Context(), scan.Inspection{Container: app, PIDs: pids})
	if f.Err != nil {
		t.Fatal(f.Err)
	}
	got := memory.FromQuantity(f.Memory.Resident)
	if f.Memory.Processes != 2 || max(got, want)-min(got, want) > want/20 || f.Unread != "" {
		t.Errorf("%d processes with %s, want 2 with %s; unread: %q", f.Memory.Processes, got, want, f.Unread)
	}
	if f.Runtime != nil && f.Runtime.Type == "Go" { // as this test does, the largest of the three
		t.Errorf("it runs what its neighbor runs: %+v", f.Runtime)
	}
	e = newInspector(proc, cgroup.V2, nil, time.Now)
	f = e.inspectContainer(t.Context(), scan.Inspection{Container: app, PIDs: pids[2:]})
	if f.Memory != nil || !errors.Is(f.Err, errNoProcess) {
		t.Errorf("a neighbor alone: %+v", f)
	}
}

// opens is a reader that opens the program of each process, as most readers do.
type opens struct{ opened *int }

func (opens) Name() string                        { return "opens" }
func (opens) Detect(s *attribution.Snapshot) bool { return true }
func (r opens) Claim(
	_ context.Context, s *attribution.Snapshot,
) (claimed []attribution.Region, usage amounts.Usage, err error) {
	_, err = s.Exe()
	if err == nil {
		*r.opened++
	}
	return nil, amounts.Usage{Coverage: 1}, err
}

// TestNoFileStaysOpen: files of inspected processes lie on volumes, which cannot be unmounted while a file is open.
func TestNoFileStaysOpen(t *testing.T) {
	proc, pids := idle(t, 20)
	opened := 0
	e := newInspector(proc, cgroup.V2, []attribution.Reader{opens{&opened}}, time.Now)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector would close them
	before := openFiles(t)
	for range 3 {
		if f := e.inspectContainer(t.Context(), scan.Inspection{Container: app, PIDs: pids}); f.Err != nil {
			t.Fatal(f.Err)
		}
	}
	if opened != 60 {
		t.Fatalf("%d programs were opened, want 60", opened)
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, %d before 60 processes were inspected", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestBlockedInspection: reading a process blocks for ever. Inspections of others go on, the container is not inspected
// again until its inspection has returned, and the liveness check stays well.
func TestBlockedInspection(t *testing.T) {
	proc, pids := idle(t, 2)
	pipe := filepath.Join(proc, strconv.Itoa(pids[0]), "smaps")
	if err := errors.Join(os.Remove(pipe), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	watchdog := liveness.NewWatchdog(clock.RealClock{})
	e := New(proc, cgroup.V2, nil, time.Now, watchdog)
	e.patience = time.Second
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { e.Run(ctx); close(ended) }()
	inspect := func(pid int) scan.Finding {
		for !e.Start(scan.Inspection{Container: app, Namespace: "shop", PIDs: []int{pid}}) {
			time.Sleep(time.Millisecond)
		}
		return <-e.Found()
	}
	if f := inspect(pids[0]); !errors.Is(f.Err, errBlocked) || f.Spent < maxInspection {
		t.Errorf("the inspection that blocks found %+v", f)
	}
	if f := inspect(pids[1]); !errors.Is(f.Err, errBlocked) || f.Spent != 0 {
		t.Errorf("another one of the same container found %+v", f)
	}
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // the open returns, and reads nothing
	if err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	f := inspect(pids[1])
	for begin := time.Now(); f.Err != nil && time.Since(begin) < time.Minute; f = inspect(pids[1]) {
		time.Sleep(10 * time.Millisecond)
	}
	if f.Err != nil || f.Memory.Processes != 1 || f.Namespace != "shop" {
		t.Errorf("after it returned: %+v", f)
	}
	cancel()
	<-ended
}

// TestManyBlockedInspections: a namespace blocks some inspections, and not those of others. Where too many are blocked,
// nothing is inspected and the liveness check fails, until one returns.
func TestManyBlockedInspections(t *testing.T) {
	passive := clocktesting.NewFakePassiveClock(time.Now())
	watchdog := liveness.NewWatchdog(passive)
	e := New("/proc", cgroup.V2, nil, time.Now, watchdog)
	returns := make(chan scan.Finding, 1)
	for i := range maxAbandoned {
		inspection := scan.Inspection{Container: strconv.Itoa(i), Namespace: strconv.Itoa(i / maxAbandonedPerNamespace)}
		if err := e.refused(inspection); err != nil {
			t.Fatalf("%+v: %v", inspection, err)
		}
		e.abandoned[inspection.Container] = blocked{inspection.Namespace, make(chan scan.Finding)}
	}
	same, other := scan.Inspection{Container: "x", Namespace: "0"}, scan.Inspection{Container: "x"}
	if e.refused(same) == nil || e.refused(other) != nil {
		t.Error("a namespace blocks more than its part, or the part of another one")
	}
	e.abandoned["0"] = blocked{"0", returns}
	done := make(chan bool)
	go func() { done <- e.waitForSlot(t.Context()) }()
	for watchdog.Check(nil) == nil {
		passive.SetTime(passive.Now().Add(time.Minute))
		time.Sleep(time.Millisecond)
	}
	returns <- scan.Finding{}
	if !<-done || watchdog.Check(nil) != nil || len(e.abandoned) != maxAbandoned-1 {
		t.Errorf("after one returned, %d are blocked: %v", len(e.abandoned), watchdog.Check(nil))
	}
}

// TestLargestUnread: what runs in a container whose largest process could not be read is unknown.
func TestLargestUnread(t *testing.T) {
	proc, pids := idle(t, 1)
	pids = append(pids, os.Getpid()) // larger
	broken := filepath.Join(proc, strconv.Itoa(os.Getpid()))
	if err := procdir.Add(proc, os.Getpid(), os.Getpid(), procdir.Cgroup(webPod, app)); err != nil {
		t.Fatal(err)
	}
	e := newInspector(proc, cgroup.V2, nil, time.Now)
	f := e.inspectContainer(t.Context(), scan.Inspection{Container: app, PIDs: pids})
	if f.Runtime == nil || f.Runtime.Type != "Go" {
		t.Errorf("it runs %+v, want Go", f.Runtime)
	}
	if err := os.Remove(filepath.Join(broken, "pagemap")); err != nil {
		t.Fatal(err)
	}
	f = e.inspectContainer(t.Context(), scan.Inspection{Container: app, PIDs: pids})
	if f.Err != nil || f.Runtime != nil || f.Memory.Processes != 2 {
		t.Errorf("without its largest process: %+v", f)
	}
	if want := "no action is known to help: the heaps of its processes could not be read"; f.Memory.Summary != want {
		t.Errorf("it helps that %q, want %q", f.Memory.Summary, want)
	}
}

// TestDetectionThatFailedIsTriedAgain: a file that cannot be read now may be readable at the next inspection.
func TestDetectionThatFailedIsTriedAgain(t *testing.T) {
	for name, file := range map[string]string{"root": "root", "command line": "cmdline"} {
		proc := t.TempDir()
		if err := procdir.Add(proc, os.Getpid(), os.Getpid(), ""); err != nil {
			t.Fatal(err)
		}
		hidden := filepath.Join(proc, strconv.Itoa(os.Getpid()), file)
		e := newInspector(proc, cgroup.V2, nil, time.Now)
		dir, err := e.open(app, os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		target, err := dir.Target(os.Getpid())
		if err != nil {
			t.Skip(err)
		}
		s, err := attribution.Take(target, detect.Variables())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(hidden, hidden+"-hidden"); err != nil {
			t.Fatal(err)
		}
		e.runtimeOf(t.Context(), "shop", target, s)
		if len(e.known) != 0 {
			t.Errorf("without the %s it is remembered what runs", name)
		}
		if err := os.Rename(hidden+"-hidden", hidden); err != nil {
			t.Fatal(err)
		}
		if r := e.runtimeOf(t.Context(), "shop", target, s); r == nil || r.Type != "Go" || len(e.known) != 1 {
			t.Errorf("%s: %+v, %d remembered", name, r, len(e.known))
		}
		target.Close()
	}
}

// TestDetectionEndsWithItsTime: it is part of the time that an inspection has.
func TestDetectionEndsWithItsTime(t *testing.T) {
	dir, err := live.Proc("/proc").Process(os.Getpid())
	if err != nil {
		t.Skip(err)
	}
	target, err := dir.Target(os.Getpid())
	if err != nil {
		t.Skip(err)
	}
	defer target.Close()
	s, err := attribution.Take(target, detect.Variables())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := newInspector("/proc", cgroup.V2, nil, time.Now)
	if f, err := e.detected(ctx, "shop", target, s); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, error %v", f, err)
	}
	if r := e.runtimeOf(ctx, "shop", target, s); r != nil || len(e.known) != 0 {
		t.Errorf("%+v without time, %d remembered", r, len(e.known))
	}
	if r := e.runtimeOf(t.Context(), "shop", target, s); r == nil || r.Type != "Go" {
		t.Errorf("%+v with time", r)
	}
}

func TestSum(t *testing.T) {
	s := newSum(scan.Inspection{})
	for range 2 {
		s.add(&attribution.Result{
			RSS: 100 * memory.MiB, Unexplained: memory.MiB,
			Regions: []attribution.Region{
				{Kind: attribution.Arena, RSS: 60 * memory.MiB}, {Kind: attribution.Files, RSS: 30 * memory.MiB},
				{Kind: attribution.Files, RSS: 9 * memory.MiB}, {Kind: attribution.Other, RSS: memory.MiB},
			},
			Usages: []amounts.Usage{{
				Reader: "glibc", InUse: 30 * memory.MiB, Returnable: 20 * memory.MiB, FreePartial: 4 * memory.MiB, Coverage: 0.999,
				Details: map[string]int64{amounts.Arenas: 2},
			}},
		}, &attribution.Snapshot{Env: map[string]string{"MALLOC_TRIM_THRESHOLD_": "131072"}})
	}
	q := resource.MustParse
	want := &v1alpha1.MemoryParts{
		Resident: q("200Mi"), Unexplained: q("2Mi"), Processes: 2, CoveragePercent: 99,
		Parts: []v1alpha1.MemoryPart{
			{Name: "glibc arenas", Group: v1alpha1.PartNative, Resident: q("120Mi")},
			{Name: "program and libraries", Group: v1alpha1.PartFiles, Resident: q("78Mi")},
		},
		Summary: "malloc_trim would give back 40Mi of the 200Mi that are resident",
		Savings: []v1alpha1.PredictedSaving{
			{
				Action: "malloc_trim", Amount: q("40Mi"), How: "call it after a burst", Method: "resident pages " +
					"inside free chunks, " +
					"and the end of the main arena, counted chunk by chunk; 4Mi more are free on pages that also " +
					"hold something in use",
			},
			{
				Action: "MALLOC_ARENA_MAX=2", Setting: "MALLOC_ARENA_MAX", Amount: q("0"), How: "tuning.arenaMax: " +
					"2 in the profile, " +
					"for new pods; threads that allocate all the time then wait for each other",
				Method: "the process has 2 without it",
			},
			{
				Action: "MALLOC_TRIM_THRESHOLD_=131072", Setting: "MALLOC_TRIM_THRESHOLD_", Amount: q("0"),
				How: "tuning.trimThreshold: 128Ki in the profile, for new pods; blocks above 128 KiB are then mapped one by one, " +
					"which costs page faults",
				Method: "MALLOC_TRIM_THRESHOLD_ is already effective: it does not return the memory that is free now",
			},
		},
	}
	got := s.parts(time.Time{})
	equal := cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCoverageIsTheLeastOfAll: a heap that could not be read, and an unknown one, are not reported as covered.
func TestCoverageIsTheLeastOfAll(t *testing.T) {
	for name, c := range map[string]struct {
		result attribution.Result
		want   int32
	}{
		"all is known": {attribution.Result{RSS: 100 * memory.MiB}, 100},
		"a heap of no reader, as .NET's": {
			attribution.Result{RSS: 100 * memory.MiB, Unexplained: 80 * memory.MiB}, 20,
		},
		"a reader made nothing of it": {
			attribution.Result{RSS: 100 * memory.MiB, Failed: []attribution.Failure{{Reader: "ruby", Err: ruby.ErrNone}}}, 0,
		},
		"a program that never calls malloc": {
			attribution.Result{RSS: 100 * memory.MiB, Failed: []attribution.Failure{{Reader: "glibc", Err: glibc.ErrNone}}}, 100,
		},
		"one that understood too little, as of ZGC": {
			attribution.Result{RSS: 100 * memory.MiB, Usages: []amounts.Usage{{Reader: "hotspot", Coverage: 0}}}, 0,
		},
	} {
		s := newSum(scan.Inspection{})
		s.add(&c.result, &attribution.Snapshot{})
		if got := s.parts(time.Time{}).CoveragePercent; got != c.want {
			t.Errorf("%s: %d %%, want %d", name, got, c.want)
		}
	}
}

func TestFound(t *testing.T) {
	r := detect.Result{
		Runtime: "JVM", Version: "17.0.9", Libc: "glibc", LibcVersion: "2.36", DetectsLimit: &detect.LimitDetection{V1: true},
		Flags: []detect.Flag{{Text: "-Xmx300m", From: "command line"}}, Evidence: make([]string, 20),
	}
	for version, want := range map[cgroup.Version]string{cgroup.V1: "Yes", cgroup.V2: "No"} {
		got := found(r, version)
		if got.ContainerAware != want || got.Libc != "glibc 2.36" || got.Allocator != "glibc" ||
			got.Flags[0] != "-Xmx300m (command line)" || len(got.Evidence) != maxEvidence {
			t.Errorf("%s: %+v", version, got)
		}
	}
	if found(detect.Result{}, cgroup.V1) != nil {
		t.Error("what shows nothing is something")
	}
}

// TestLargestHeap: the largest heap is reported with the JVM's own word on where it comes from. What is remembered of a
// program is not changed by one of its processes.
func TestLargestHeap(t *testing.T) {
	usage := func(details ...map[string]int64) []amounts.Usage {
		all := map[string]int64{}
		for _, d := range details {
			maps.Copy(all, d)
		}
		return []amounts.Usage{{Reader: "hotspot", Details: all}}
	}
	most := map[string]int64{"MaxHeapSize": 128 << 20}
	byMemory := func(yes int64) map[string]int64 { return map[string]int64{amounts.HeapFollowsMemory: yes} }
	for name, c := range map[string]struct {
		usages []amounts.Usage
		want   string
		set    bool
	}{
		"computed":             {usage(most, byMemory(1)), "128Mi", false},
		"set by a flag":        {usage(most, byMemory(0)), "128Mi", true},
		"of an unknown origin": {usage(most), "128Mi", false},
		"no size":              {usage(byMemory(1)), "", false},
		"no heap at all":       {nil, "", false},
	} {
		remembered := &v1alpha1.InspectedRuntime{Type: "JVM"}
		got := ""
		f := withHeap(remembered, c.usages)
		if f.MaxHeap != nil {
			got = f.MaxHeap.String()
		}
		if got != c.want || f.HeapSet != c.set || remembered.MaxHeap != nil {
			t.Errorf("%s: %q (set: %t), want %q (%t); remembered %v", name, got, f.HeapSet, c.want, c.set, remembered.MaxHeap)
		}
	}
	if withHeap(nil, usage(most, byMemory(1))) != nil {
		t.Error("a process whose runtime is unknown has a heap")
	}
}
