// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"flag"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

var (
	sizes     = flag.String("containers", "1000", "sizes of clusters, separated by commas")
	hours     = flag.Duration("hours", 3*time.Hour, "time that passes while writes are counted")
	workloads = flag.Int("workloads", 50, "workloads whose writes are counted")
)

// The bounds, for one core.
const (
	maxPass      = 3 * time.Second    // a minute of operation of atContainers
	maxHeap      = memory.Bytes(1536) // per container, from atContainers on: with few, the process itself dominates
	atContainers = 100_000
	maxWrites    = 8.0 // per workload and hour: six checkpoints, a status, and an occasional change
	replicas     = 10  // per workload
)

// TestLoop measures a minute of the operator: four samples and one kill counter of every container, a reconcile of
// every workload after each sample, and the writes. It averages eleven minutes, in which every checkpoint is written
// once.
func TestLoop(t *testing.T) {
	for text := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < replicas {
			t.Fatalf("-containers: %q is not a number of at least %d", text, replicas)
		}
		t.Run(text, func(t *testing.T) { measureLoop(t, n) })
	}
}

func measureLoop(t *testing.T, containers int) {
	o := newOperator(t, containers/replicas)
	before := liveHeap()
	o.observeAll(t)
	o.addHistory(t)
	heap := liveHeap() - before
	o.maps.weigh, o.maps.writes = true, writes{}
	const minutes = 11
	pass := cpuTime(t, func() { o.run(t, minutes*time.Minute) }) / minutes
	written := o.maps.writes.checkpoints
	if written < int64(len(o.workloads)) {
		t.Fatalf("memfit wrote %d checkpoints of %d workloads in eleven minutes", written, len(o.workloads))
	}
	runtime.KeepAlive(o)
	each := func(n int64) int64 { return n / int64(containers) }
	t.Logf("containers=%d pass_ms=%d ns_per_container=%d heap_bytes_per_container=%d checkpoint_bytes_per_container=%d",
		containers, pass.Milliseconds(), each(pass.Nanoseconds()), each(int64(heap)),
		each(o.maps.checkpoints*int64(len(o.workloads))/written))
	if containers < atContainers {
		return
	}
	if allowed := maxPass * time.Duration(containers) / atContainers; pass > allowed {
		t.Errorf("a minute takes %s of CPU time, at most %s is allowed", pass.Round(time.Millisecond), allowed)
	}
	if heap > (maxHeap * memory.Bytes(containers)).Percent(101) {
		t.Errorf("a container takes %d bytes of heap, at most %d are allowed", each(int64(heap)), maxHeap)
	}
}

// TestWrites lets hours pass with memfit's default intervals, and counts memfit's writes.
func TestWrites(t *testing.T) {
	o := newOperator(t, *workloads)
	o.observeAll(t)
	o.addHistory(t)
	o.maps.writes = writes{}
	o.run(t, *hours)
	perHour := func(n int64) float64 { return float64(n) / float64(*workloads) / hours.Hours() }
	w := o.maps.writes
	all := perHour(w.status + w.checkpoints + w.events)
	t.Logf("workloads=%d hours=%.0f status_per_hour=%.2f checkpoints_per_hour=%.2f events_per_hour=%.2f "+
		"writes_per_hour=%.2f", *workloads, hours.Hours(), perHour(w.status), perHour(w.checkpoints), perHour(w.events), all)
	if all > maxWrites {
		t.Errorf("memfit writes %.2f times per workload and hour, at most %.0f are allowed", all, maxWrites)
	}
}

// liveHeap returns the size of reachable objects.
func liveHeap() memory.Bytes {
	runtime.GC()
	runtime.GC() // objects that finalizers kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory.Bytes(m.HeapAlloc)
}

// cpuTime returns the CPU time of f on one core, including garbage collection.
func cpuTime(t *testing.T, f func()) time.Duration {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	runtime.GC()
	before := processCPU(t)
	f()
	return processCPU(t) - before
}

// processCPU returns the CPU time of this process on all cores.
func processCPU(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(fmt.Errorf("reading the CPU time of this process: %w", err))
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
