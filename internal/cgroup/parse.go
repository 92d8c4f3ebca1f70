// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// Unlimited is the value of an absent limit, which cgroup v1 writes as the largest number of whole pages, v2 as "max".
const Unlimited memory.Bytes = math.MaxInt64

// unlimitedFrom is above the memory of every machine. cgroup v1 writes 2^63 less a page of 4 to 64 KiB.
const unlimitedFrom = 1 << 62

// parseSize parses a file with one number of bytes, or "max".
func parseSize(text []byte) (memory.Bytes, bool) {
	text = bytes.TrimSpace(text)
	if string(text) == "max" {
		return Unlimited, true
	}
	n, ok := parseUint(text)
	if !ok {
		return 0, false
	}
	return size(n), true
}

// size converts a number of bytes from the kernel.
func size(n uint64) memory.Bytes {
	if n >= unlimitedFrom {
		return Unlimited
	}
	return memory.Bytes(n)
}

// parseUint parses decimal digits, without allocating.
func parseUint(text []byte) (uint64, bool) {
	if len(text) == 0 || len(text) > 20 { // 2^64 has 20 digits
		return 0, false
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	return n, err == nil
}

// parseFlat calls f for each line "name number" of a flat-keyed file: memory.stat, memory.events, memory.oom_control.
func parseFlat(text []byte, f func(name []byte, value uint64)) {
	for line := range bytes.Lines(text) {
		name, value, found := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if n, ok := parseUint(value); found && ok {
			f(name, n)
		}
	}
}

// parsePressure parses how long all tasks waited, in microseconds: "full avg10=0.00 avg60=0.00 avg300=0.00 total=12".
func parsePressure(text []byte) (full time.Duration, ok bool) {
	for line := range bytes.Lines(text) {
		_, total, found := bytes.Cut(line, []byte("total="))
		n, number := parseUint(bytes.TrimSpace(total))
		if found && number && n <= math.MaxInt64/1000 && bytes.HasPrefix(line, []byte("full ")) {
			full, ok = time.Duration(n)*time.Microsecond, true
		}
	}
	return full, ok
}

// parsePIDs parses cgroup.procs, one PID per line. all is false if there are more than most.
func parsePIDs(text []byte, most int) (pids []int, all bool) {
	for line := range bytes.Lines(text) {
		n, ok := parseUint(bytes.TrimSpace(line))
		if !ok || n == 0 || n > math.MaxInt32 { // 0 is a process outside of the reader's PID namespace
			continue
		}
		if len(pids) == most {
			return pids, false
		}
		pids = append(pids, int(n))
	}
	return pids, true
}
