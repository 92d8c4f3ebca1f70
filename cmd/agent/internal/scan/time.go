// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime is the processor time that the thread of the caller has used so far. A goroutine that compares two of them
// is locked to its thread.
func ThreadTime() time.Duration { return used(unix.CLOCK_THREAD_CPUTIME_ID) }

// ProcessTime is the processor time that the agent has used so far.
func ProcessTime() time.Duration { return used(unix.CLOCK_PROCESS_CPUTIME_ID) }

// used asks the clock: of a thread that runs, getrusage knows only what it had used up to the kernel's last tick.
func used(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
