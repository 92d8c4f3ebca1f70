// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package procmem

// Process is one process, identified by PID and start time, because PIDs are reused.
type Process struct {
	PID int
	// StartTime is in clock ticks since the machine started, field 22 of /proc/PID/stat.
	StartTime uint64
	// Exe is the path of the program, as seen inside its container. The process controls it.
	Exe string
	// RobustLists are the addresses of the heads of the threads' lists of robust mutexes, as far as they are known,
	// without the main thread's. Each is in the C library's thread descriptor, at the top of the thread's stack.
	RobustLists []uint64
}
