// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"slices"

	"github.com/memfit/memfit/internal/memory"
)

const (
	// minRuns of which at least minRunsOfMode are of each kind distinguish two kinds from one exception.
	minRuns, minRunsOfMode = 8, 2
	// modesApart is how much more, in percent, the smallest of the large runs needs than the largest of the small ones.
	// The runs of one kind differ by less than that.
	modesApart = 150
)

// twoKinds describes runs of two kinds, which differ by their input: those below the widest gap of the peaks, and those
// above it. Empty: the runs are of one kind, or too few.
func twoKinds(peaks []memory.Bytes) string {
	if len(peaks) < minRuns {
		return ""
	}
	sorted := slices.Sorted(slices.Values(peaks))
	last := len(sorted) - 1
	apart := func(from, to int) float64 { return float64(sorted[to]) / float64(max(sorted[from], 1)) }
	at := 1 // the first of the large runs
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
