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
	// Caught are the signals that the process handles itself.
	Caught SignalSet
	// Threads are those that could be asked where their stack is, the main thread left out.
	Threads []Thread
}

// Thread is one thread of a process.
type Thread struct {
	TID int
	// RobustList is the address of the head of the thread's list of robust mutexes. The C library keeps it inside its
	// descriptor of the thread, which lies at the top of the thread's stack.
	RobustList uint64
}

// SignalSet is a set of signals as /proc/PID/status shows it, signal 1 in the lowest bit.
type SignalSet uint64

// Has reports whether the signal of this number is in the set.
func (s SignalSet) Has(signal int) bool {
	return signal >= 1 && signal <= 64 && s&(1<<(signal-1)) != 0
}
