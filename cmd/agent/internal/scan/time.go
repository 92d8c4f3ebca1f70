// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"syscall"
	"time"
)

// ThreadTime is the processor time that the thread of the caller has used so far. A goroutine that compares two of them
// is locked to its thread.
func ThreadTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD of Linux
	return used(thread)
}

// ProcessTime is the processor time that the agent has used so far.
func ProcessTime() time.Duration { return used(syscall.RUSAGE_SELF) }

func used(by int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(by, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
