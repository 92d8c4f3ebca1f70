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
	pods   = flag.Int("pods", 104, "containers in addition to the one that allocates")
	settle = flag.Duration("settle", 45*time.Second, "how long the agent runs before it is measured")
	steady = flag.Duration("steady", 2*time.Minute, "how long its CPU time is measured")
	rounds = flag.Int("rounds", 20, "windows of the allocating process of each kind: stopped, watching, inspecting")
)

// Bounds of the agent's cost (docs/evidence/agent.md).
const (
	boundCPU     = 1.0   // percent of a core
	boundRSS     = 64.0  // MiB
	boundP999    = 1.10  // of the allocations' p99.9 while the agent is stopped
	boundPause   = 5.0   // milliseconds more than without inspections
	boundPerHour = 6.0   // writes per container while nothing happens
	rounding     = 1e-12 // tolerance for rounding
)

// TestCost measures the agent's own cost, and then its effect on a process.
func TestCost(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("needs root to create cgroups and to read processes")
	}
	b := newBench(t)
	t.Logf("pods=%d processes=%s load=%s", *pods+1, b.kinds(), load())
	b.measureAgent(t)
	b.reportReadingCost(t)
	b.measureTarget(t)
}

// check logs a value and fails if it exceeds its bound.
func check(t *testing.T, key string, value, bound float64) {
	t.Helper()
	t.Logf("%s=%.2f bound=%.2f", key, value, bound)
	if value > bound+rounding {
		t.Errorf("%s=%.2f exceeds its bound %.2f", key, value, bound)
	}
}

// measureAgent measures the agent's CPU time, RSS and writes while nothing happens in the containers. These first
// minutes cost most, because the agent inspects all containers and writes all snapshots.
func (b *bench) measureAgent(t *testing.T) {
	t.Helper()
	pid := b.node.PID()
	time.Sleep(*settle)
	before, _ := cpuAndRSS(t, pid)
	threads, began := threadTimes(pid), time.Now()
	time.Sleep(*steady)
	after, rss := cpuAndRSS(t, pid)
	took := time.Since(began)
	var busiest []float64 // percent of a core of each thread
	for id, now := range threadTimes(pid) {
		busiest = append(busiest, 100*float64(now-threads[id])/float64(took))
	}
	slices.SortFunc(busiest, func(a, b float64) int { return cmp.Compare(b, a) })
	_, writes := b.node.Requests()
	// without the first write of each container
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
	t.Logf("inspected=%d writes=%d cpu_percent_of_threads=%.2f load=%s", inspected, writes,
		busiest[:min(len(busiest), 6)], load())
}

// reportReadingCost reports the CPU time of the minimum that an agent must do: reading the usage of all containers from
// open files every half second. On machines with shared CPU caches, data that was not used for half a second is slow to
// read; the result helps to judge cpu_percent_of_core on this machine. The agent is stopped meanwhile.
func (b *bench) reportReadingCost(t *testing.T) {
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
	var slept, awake []float64 // microseconds of CPU time per reading
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
	t.Logf("reading_us_each_half_second=%.1f reading_us_repeated=%.1f percent_of_core_for_reading_each_second=%.2f",
		median(slept), median(awake), median(slept)*float64(len(files))/1e4)
}

// threadTime returns the CPU time of this thread.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Nano())
}

// cpuAndRSS returns the CPU time of a process, and its resident memory in bytes.
func cpuAndRSS(t *testing.T, pid int) (cpu time.Duration, rss int) {
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

// threadTimes returns the CPU time of each thread of a process by its ID, if the kernel reports it.
func threadTimes(pid int) map[int]time.Duration {
	out := map[int]time.Duration{}
	threads, _ := procfs.AllThreads(pid) // an ended process has none; other checks fail then
	for _, t := range threads {
		if ran, err := t.Schedstat(); err == nil {
			out[t.PID] = time.Duration(ran.RunningNanoseconds)
		}
	}
	return out
}

// load returns the machine's load average of the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
