// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"slices"
	"strings"
)

// FullHeap describes the end of a process at its own heap cap, independent of the limit.
type FullHeap struct {
	// Exits are exit codes of the runtime for a full heap. 128+n is death by signal n.
	Exits   []int32
	Faults  []int32  // exit codes of a full heap and also of bugs: they count if memory was at the cap
	Words   []string // the runtime's log messages for a full heap
	NotHeap []string // its log messages for other memory that ran out, after which it ends with the same codes
	// Raise is the instruction to raise the cap: "raise -Xmx (heapPercent in the profile)". Empty: the default.
	Raise string
}

// The exit codes of processes that a signal ended.
const (
	// Abort is SIGABRT, used by several runtimes and possibly by any program.
	Abort int32 = 134

	trap  int32 = 133 // SIGTRAP
	fault int32 = 139 // SIGSEGV
)

// HeapWords returns a runtime's message for a full heap in a log; empty: none.
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

// NotHeap reports whether a runtime's message in a log names other memory that ran out.
func NotHeap(log string) bool {
	return slices.ContainsFunc(table, func(r *Runtime) bool {
		return slices.ContainsFunc(r.FullHeap.NotHeap, func(words string) bool { return strings.Contains(log, words) })
	})
}

// RaiseCap returns the instruction to raise the heap cap of the named runtime.
func RaiseCap(name string) string {
	if raise := Lookup(name).FullHeap.Raise; raise != "" {
		return raise
	}
	return "raise the cap (heapPercent in the profile)"
}

// EndWith returns the titles of the runtimes with this exit code for a full heap.
func EndWith(code int32) []string {
	var titles []string
	for _, r := range table {
		if slices.Contains(r.FullHeap.Exits, code) {
			titles = append(titles, r.Title)
		}
	}
	return titles
}
