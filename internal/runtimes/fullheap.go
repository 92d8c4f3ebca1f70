// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"slices"
	"strings"
)

// FullHeap is how a process ends whose heap has reached its own cap, which does not depend on the limit.
type FullHeap struct {
	// Exits are exit codes with which the runtime gives up. 128+n is death by signal n.
	Exits []int32
	// Faults are exit codes of a full heap and of bugs as well: they count where memory was seen at the cap.
	Faults []int32
	// Words are what the runtime writes before it gives up, as in the log.
	Words []string
	// Raise is what raises the cap, as an instruction: "raise -Xmx (heapPercent in the profile)". Empty: nothing special.
	Raise string
}

// The exit codes of processes that a signal ended.
const (
	// Abort is SIGABRT, with which several runtimes give up and any program may.
	Abort int32 = 134

	trap  int32 = 133 // SIGTRAP
	fault int32 = 139 // SIGSEGV
)

// HeapWords are the words of a full heap that a log contains, whatever runs there; empty: it has none.
func HeapWords(log string) string {
	for _, r := range table {
		for _, words := range r.FullHeap.Words {
			if strings.Contains(log, words) {
				return words
			}
		}
	}
	return ""
}

// RaiseCap is what raises the heap cap of the runtime called name, as an instruction.
func RaiseCap(name string) string {
	if raise := Lookup(name).FullHeap.Raise; raise != "" {
		return raise
	}
	return "raise the cap (heapPercent in the profile)"
}

// EndWith are the titles of the runtimes that end with the exit code when their heap is full.
func EndWith(code int32) []string {
	var titles []string
	for _, r := range table {
		if slices.Contains(r.FullHeap.Exits, code) {
			titles = append(titles, r.Title)
		}
	}
	return titles
}
