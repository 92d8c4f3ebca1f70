// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

// Process is one process, pinned by its number and the moment it started: a number alone is used again.
type Process struct {
	PID int
	// StartTime is in clock ticks since the machine started, field 22 of /proc/PID/stat.
	StartTime uint64
	// Exe is the path of the program, as seen inside its container. The process chose it: it is not a proof.
	Exe string
	// RobustLists are the addresses of the heads of the threads' lists of robust mutexes, as far as they are known,
	// without the main thread's. The C library keeps each inside its descriptor of the thread, which lies at the top of
	// the thread's stack.
	RobustLists []uint64
}
