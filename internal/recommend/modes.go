// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"slices"

	"github.com/memfit/memfit/internal/memory"
)

const (
	// Two kinds of runs need minRuns runs, and minRunsOfMode of each kind: fewer may be exceptions.
	minRuns, minRunsOfMode = 8, 2
	// modesApart is the least ratio, in percent, of the smallest peak of the large runs to the largest of the small runs.
	modesApart = 150
)

// twoKinds describes runs of two kinds, which probably differ by their input: those below the widest gap between peaks,
// and those above it. It returns "" if the runs are of one kind, or too few.
func twoKinds(peaks []memory.Bytes) string {
	if len(peaks) < minRuns {
		return ""
	}
	sorted := slices.Sorted(slices.Values(peaks))
	last := len(sorted) - 1
	apart := func(from, to int) float64 { return float64(sorted[to]) / float64(max(sorted[from], 1)) }
	at := 1 // index of the first large run
	for i := range sorted[1:] {
		if apart(i, i+1) > apart(at-1, at) {
			at = i + 1
		}
	}
	gap, large := apart(at-1, at), len(sorted)-at
	if min(at, large) < minRunsOfMode || 100*gap < modesApart || apart(0, at-1) >= gap || apart(at, last) >= gap {
		return ""
	}
	return sprintf("%d of %d runs used at most %s, %d up to %s", at, len(sorted), sorted[at-1].CeilTo(memory.MiB), large,
		sorted[last].CeilTo(memory.MiB))
}
