// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"slices"

	"github.com/memfit/memfit/internal/memory"
)

// Modes describes runs of two kinds, which differ by their input: some need much more memory than the others. The zero
// value: the runs are of one kind, or too few.
type Modes struct {
	// Small and Large are the numbers of runs of each kind, SmallPeak and LargePeak the highest peaks among them.
	Small, Large         int
	SmallPeak, LargePeak memory.Bytes
}

const (
	// leastRuns of which at least leastOfMode are of each kind distinguish two kinds from one exception.
	leastRuns, leastOfMode = 8, 2
	// modesApart is how much more, in percent, the smallest of the large runs needs than the largest of the small ones.
	// The runs of one kind differ by less than that.
	modesApart = 150
)

// modesOf finds two kinds of runs by the peak of each run: those below the widest gap, and those above it.
func modesOf(peaks []memory.Bytes) Modes {
	if len(peaks) < leastRuns {
		return Modes{}
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
	m := Modes{Small: at, SmallPeak: sorted[at-1], Large: len(sorted) - at, LargePeak: sorted[last]}
	gap := apart(at-1, at)
	if min(m.Small, m.Large) < leastOfMode || 100*gap < modesApart || apart(0, at-1) >= gap || apart(at, last) >= gap {
		return Modes{}
	}
	return m
}

// words is the distribution in one sentence; empty: there is one kind of runs.
func (m Modes) words() string {
	if m == (Modes{}) {
		return ""
	}
	return sprintf("%d of %d runs used at most %s, %d up to %s", m.Small, m.Small+m.Large, m.SmallPeak.CeilTo(memory.MiB),
		m.Large, m.LargePeak.CeilTo(memory.MiB))
}
