// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// cost is what one measurement found.
type cost struct {
	containers  int
	perWorkload int
	pass        time.Duration // processor time of a minute of operation, garbage collection included
	heap        memory.Bytes  // live, of all containers
	checkpoint  memory.Bytes  // of all containers, as JSON carries it
}

func (c cost) perContainer(n int64) int64 { return n / int64(c.containers) }

func (c cost) String() string {
	return fmt.Sprintf("what=loop containers=%d containers_per_workload=%d pass_ms=%d ns_per_container=%d "+
		"heap_bytes_per_container=%d checkpoint_bytes_per_container=%d",
		c.containers, c.perWorkload, c.pass.Milliseconds(),
		c.perContainer(c.pass.Nanoseconds()), c.perContainer(int64(c.heap)), c.perContainer(int64(c.checkpoint)))
}

// liveHeap is what is reachable now.
func liveHeap() memory.Bytes {
	runtime.GC()
	runtime.GC() // what finalizers held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory.Bytes(m.HeapAlloc)
}

// grown is the live heap that f leaves behind.
func grown(f func()) memory.Bytes {
	before := liveHeap()
	f()
	return liveHeap() - before
}

// processorTime is what f takes on one core, garbage collection included.
func processorTime(f func() error) (time.Duration, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	runtime.GC()
	before, err := used()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := used()
	return after - before, err
}

// used is the processor time of this process on all cores.
func used() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("reading the processor time of this process: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
