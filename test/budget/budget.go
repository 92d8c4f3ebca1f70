// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget holds code that reads what another party wrote to the memory and the processor time it may take. Both
// are counted, not waited for: bytes allocated by this process, and processor time of this very thread, so that a busy
// machine changes neither.
package budget

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Budget is what an input may cost.
type Budget struct {
	// Bytes may be allocated whatever the input, and PerByte bytes more for each of its bytes. Less than 64 KiB is luck:
	// the machinery of a test and of a fuzzer allocates some KB meanwhile.
	Bytes, PerByte int
	// CPU is processor time for an input of any size that is allowed, on a slow machine. Less than a second is luck:
	// what the host takes from a virtual machine counts as the thread's (156 ms were counted for a call of 1 ms).
	CPU time.Duration
}

// Check runs f, which reads an input of so many bytes, and fails the test when that takes more than the budget. No
// other test may run meanwhile.
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
		t.Errorf("an input of %d bytes takes %s of processor time, and may take %s", input, took, allowed)
	}
	allocated, allowed := after.TotalAlloc-before.TotalAlloc, uint64(bytesFactor*(b.Bytes+b.PerByte*input))
	if allocated > allowed {
		t.Errorf("an input of %d bytes allocates %d bytes, and may allocate %d", input, allocated, allowed)
	}
	if input >= 1<<20 {
		t.Logf(
			"%d bytes: %s of processor time, %d bytes allocated for each", input, took.Round(100*time.Microsecond),
			allocated/uint64(input),
		)
	}
}

// threadTime is the processor time that this thread has used; that of the process on systems other than Linux.
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
