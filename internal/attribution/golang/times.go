// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package golang

import (
	"time"

	"github.com/memfit/memfit/internal/procmem"
)

// spent is the processor time of collections from the program's start to the last collection.
type spent struct {
	collector, busy time.Duration
	collections     uint64
}

const (
	// Words of cpuStats in Go 1.21 to 1.26, nanoseconds: four ways in which the collector takes time and their sum, two of
	// the scavenger and their sum, idle, the program, and the total. Each sum is exact but for the pauses of a running
	// collection, which are not in the total yet.
	timeWords = 11
	// Words before them begin with three halves of a word: how many collections there were, and the processors of the
	// last one in a pause and beside it. The copy of the times that runtime/metrics keeps has other words there.
	wordsBefore = 10

	maxTime       = 1 << 60 // 36 years
	maxProcessors = 1 << 16
)

// spentBefore reads the time of collections before the word total, if the words are consistent.
func spentBefore(window *procmem.Window, end, total uint64) (s spent, ok bool) {
	if own, err := window.Word(end - 8); err != nil || own == 0 || own > total || total > maxTime {
		return spent{}, false
	}
	var w [wordsBefore + timeWords]uint64
	for i := range w { // unreadable words are 0
		w[i], _ = window.Word(end - 8*uint64(len(w)-1-i))
	}
	t := w[wordsBefore:]
	for _, word := range t {
		if word > maxTime {
			return spent{}, false
		}
	}
	collector, scavenger, idle := t[4], t[7], t[8]
	sum := collector + scavenger + idle + t[9]
	if collector == 0 || collector != t[0]+t[1]+t[2]+t[3] || scavenger != t[5]+t[6] ||
		sum < total || sum-total > total/16 || idle+collector > total {
		return spent{}, false
	}
	collections, paused, processors := w[0]&(1<<32-1), w[0]>>32, w[1]
	if collections == 0 || paused == 0 || paused > processors || processors > maxProcessors {
		return spent{}, false
	}
	//nolint:gosec // at most maxTime
	return spent{collector: time.Duration(collector), busy: time.Duration(total - idle), collections: collections}, true
}
