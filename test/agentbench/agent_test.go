// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package agentbench

import (
	"cmp"
	"errors"
	"flag"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/memfit/memfit/api/v1alpha1"
)

var (
	agent  = flag.String("agent", "", "the agent's program, an absolute path")
	pods   = flag.Int("pods", 104, "containers beside the one that allocates")
	settle = flag.Duration("settle", 45*time.Second, "how long the agent runs before it is measured")
	steady = flag.Duration("steady", 2*time.Minute, "how long its processor time is measured")
	rounds = flag.Int("rounds", 20, "windows of the allocating process of each kind: stopped, watching, looking")
)

// Bounds of what the agent may cost (docs/evidence/agent.md).
const (
	boundCPU     = 1.0   // percent of a core
	boundRSS     = 64.0  // MiB
	boundP999    = 1.10  // of the allocations' p99.9 while the agent is stopped
	boundPause   = 5.0   // milliseconds more than while no one inspects the process
	boundPerHour = 6.0   // writes for each container in quiet times
	rounding     = 1e-12 // what rounding may add
)

// TestCost measures what the agent takes for itself, and then what a process notices of it.
func TestCost(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("it takes root, to make cgroups and to read processes")
	}
	b := newBench(t)
	t.Logf("pods=%d processes=%s load=%s", *pods+1, b.kinds(), load())
	b.quiet(t)
	b.alone(t)
	b.noticed(t)
}

// check reports a value and fails where it is above its bound.
func check(t *testing.T, key string, value, bound float64) {
	t.Helper()
	t.Logf("%s=%.2f bound=%.2f", key, value, bound)
	if value > bound+rounding {
		t.Errorf("%s=%.2f is above its bound %.2f", key, value, bound)
	}
}

// quiet lets the agent run beside containers in which nothing happens. These are the minutes of an agent that cost
// most: it has just started, inspects all containers and writes all snapshots.
func (b *bench) quiet(t *testing.T) {
	t.Helper()
	pid := b.node.PID()
	time.Sleep(*settle)
	before, _ := taken(t, pid)
	threads, began := threadTimes(pid), time.Now()
	time.Sleep(*steady)
	after, rss := taken(t, pid)
	took := time.Since(began)
	var busiest []float64 // percent of a core of each thread
	for id, now := range threadTimes(pid) {
		busiest = append(busiest, 100*float64(now-threads[id])/float64(took))
	}
	slices.SortFunc(busiest, func(a, b float64) int { return cmp.Compare(b, a) })
	_, writes := b.node.Requests()
	// each is written once after its start, which is not a quiet time: what comes above that counts
	perHour := max(float64(writes-len(b.pods)), 0) / float64(len(b.pods)) * float64(time.Hour) / float64(*settle+took)
	inspected := 0
	for _, pod := range b.pods {
		s, ok := b.node.Snapshot(pod.Name)
		if ok && len(s.Containers) > 0 && s.Containers[0].Inspection == v1alpha1.InspectionDone {
			inspected++
		}
	}
	check(t, "cpu_percent_of_core", 100*float64(after-before)/float64(took), boundCPU)
	check(t, "rss_mib", float64(rss)/(1<<20), boundRSS)
	check(t, "writes_per_container_and_hour", perHour, boundPerHour)
	t.Logf("looked_into=%d writes=%d cpu_percent_of_threads=%.2f load=%s", inspected, writes,
		busiest[:min(len(busiest), 6)], load())
}

// alone reports the processor time of the least that an agent can do: with the agent stopped, read the use of all
// containers from open files, once in half a second. Where other machines share the processor's caches, what was not
// touched for half a second is slow: it tells what a figure of cpu_percent_of_core is worth on this machine.
func (b *bench) alone(t *testing.T) {
	t.Helper()
	const times, every = 10, 500 * time.Millisecond
	if err := unix.Kill(b.node.PID(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Kill(b.node.PID(), unix.SIGCONT) }()
	var files []*os.File
	for i := range b.pods {
		f, err := b.cgroups.OpenUsage(i)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		files = append(files, f)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var slept, awake []float64 // microseconds of processor time of a reading
	read := func() float64 {
		before, buffer := threadTime(t), make([]byte, 32)
		for _, f := range files {
			if _, err := f.ReadAt(buffer, 0); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
		return float64(threadTime(t)-before) / 1e3 / float64(len(files))
	}
	for range times {
		time.Sleep(every)
		slept, awake = append(slept, read()), append(awake, read())
	}
	t.Logf("reading_us_each_half_second=%.1f reading_us_at_once_again=%.1f percent_of_core_for_reading_each_second=%.2f",
		median(slept), median(awake), median(slept)*float64(len(files))/1e4)
}

// threadTime is the processor time that this thread has used.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Nano())
}

// taken is the processor time that a process has used, and its resident memory in bytes.
func taken(t *testing.T, pid int) (cpu time.Duration, rss int) {
	t.Helper()
	p, err := procfs.NewProc(pid)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := p.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(stat.CPUTime() * float64(time.Second)), stat.ResidentMemory()
}

// threadTimes is what each thread of a process has run, by its number, where the kernel reports it.
func threadTimes(pid int) map[int]time.Duration {
	out := map[int]time.Duration{}
	threads, _ := procfs.AllThreads(pid) // none: it has ended, which others notice
	for _, t := range threads {
		if ran, err := t.Schedstat(); err == nil {
			out[t.PID] = time.Duration(ran.RunningNanoseconds)
		}
	}
	return out
}

// load is the machine's, because a busy one makes everything slower.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
