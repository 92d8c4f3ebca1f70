// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime is the processor time that the thread of the caller has used so far. To compare two values, lock the
// goroutine to its thread.
func ThreadTime() time.Duration { return used(unix.CLOCK_THREAD_CPUTIME_ID) }

// ProcessTime is the processor time that the agent has used so far.
func ProcessTime() time.Duration { return used(unix.CLOCK_PROCESS_CPUTIME_ID) }

// used reads the clock, because getrusage of a running thread is only updated at the kernel's ticks.
func used(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
