// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"slices"
	"strings"
)

// FullHeap describes how a process ends when its heap is full, which can be far below the memory limit.
type FullHeap struct {
	Exits   []int32  // exit codes of the runtime for a full heap; 128+n is death by signal n
	Faults  []int32  // exit codes of a full heap and also of bugs, which count if usage was at the cap
	Words   []string // log messages for a full heap
	NotHeap []string // log messages for other exhausted memory, after which the process ends with the same codes
	// Raise is the instruction to raise the cap: "raise -Xmx (heapPercent in the profile)". Empty: the default.
	Raise string
}

// The exit codes of processes that a signal ended.
const (
	// Abort is the code after SIGABRT, which several runtimes use for a full heap, and any program may use.
	Abort int32 = 134

	trap  int32 = 133 // SIGTRAP
	fault int32 = 139 // SIGSEGV
)

// HeapWords returns the first message of any runtime for a full heap that a log contains; empty: none.
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

// NotHeap reports whether a log contains a runtime's message for exhausted memory other than the heap.
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

// TitlesByExit returns the titles of the runtimes that end with this exit code when their heap is full.
func TitlesByExit(code int32) []string {
	var titles []string
	for _, r := range table {
		if slices.Contains(r.FullHeap.Exits, code) {
			titles = append(titles, r.Title)
		}
	}
	return titles
}
