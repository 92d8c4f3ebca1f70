// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget tests that code which reads untrusted input stays within a budget of allocated memory and CPU time. It
// counts the bytes that the process allocates and the CPU time of the thread, which do not depend on other load.
package budget

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Budget is what an input may cost.
type Budget struct {
	// Bytes may be allocated for any input, and PerByte bytes more for each byte of the input. Bytes should be at least
	// 64 KiB, because tests and fuzzers themselves allocate some KB meanwhile.
	Bytes, PerByte int
	// CPU is the CPU time for an input of any allowed size, on a slow machine. It should be at least a second, because
	// the thread's CPU time includes steal time of a virtual machine (156 ms were counted for a call of 1 ms).
	CPU time.Duration
}

// Check runs f, which reads an input of this many bytes, and fails the test if f exceeds the budget. No other test may
// run meanwhile.
func Check(t testing.TB, b Budget, input int, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := threadTime(t)
	f()
	took := threadTime(t) - start
	runtime.ReadMemStats(&after)
	if allowed := cpuFactor * b.CPU; took > allowed {
		t.Errorf("an input of %d bytes takes %s of CPU time, at most %s are allowed", input, took, allowed)
	}
	allocated, allowed := after.TotalAlloc-before.TotalAlloc, uint64(bytesFactor*(b.Bytes+b.PerByte*input))
	if allocated > allowed {
		t.Errorf("an input of %d bytes allocates %d bytes, at most %d are allowed", input, allocated, allowed)
	}
	if input >= 1<<20 {
		t.Logf(
			"%d bytes: %s of CPU time, %d bytes allocated per byte", input, took.Round(100*time.Microsecond),
			allocated/uint64(input),
		)
	}
}

// threadTime returns the CPU time of this thread, or on systems other than Linux of the process.
func threadTime(t testing.TB) time.Duration {
	thread := syscall.RUSAGE_SELF
	if runtime.GOOS == "linux" {
		thread = 1 // RUSAGE_THREAD
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
