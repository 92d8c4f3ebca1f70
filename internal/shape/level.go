// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"slices"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/stats"
)

const (
	// flatPercent and flatBytes bound the height of flat memory; the larger of the two counts.
	flatPercent  = 12
	flatBytes    = float64(8 * memory.MiB)
	burstIdle    = 0.4 // the least share of time that a bursting process spends on its floor
	burstPercent = 25  // the least height of a burst, in percent of the floor; sawteeth of a collector are lower
	// burstSudden is the least share of a burst's height that memory rises within one cell (a hundredth of the window).
	// Garbage accumulates more slowly.
	burstSudden = 0.5
	// capLow and capHigh bound the memory of a process that fills its cap, in percent of the cap. The runtime's overhead
	// is added to the upper bound.
	capLow, capHigh = 82, 104
)

// level describes the range of a series, and how it leaves its floor.
type level struct {
	base, usual, top float64 // bytes: low, median and high points after warm-up
	idle             float64 // share of time on the floor, 0 to 1
	sudden           float64 // the largest rise within a cell, as a share of the height
}

func (l level) height() float64 { return l.top - l.base }

func (l level) flat() bool { return l.height() <= max(flatBytes, l.usual*flatPercent/100) }

// bursty reports whether memory often is on its floor, and rises from it suddenly and far.
func (l level) bursty() bool {
	return l.height() >= l.base*burstPercent/100 && l.idle >= burstIdle && l.sudden >= burstSudden
}

// levels measures the level of a series after its warm-up.
func levels(s series, g growth) level {
	c := s.cells[g.skip:]
	highs, lows := each(c, func(c cell) float64 { return c.high }), each(c, func(c cell) float64 { return c.low })
	slices.Sort(highs)
	slices.Sort(lows)
	l := level{base: stats.Quantile(lows, 0.1), usual: stats.Median(s.mids()[g.skip:]), top: stats.Quantile(highs, 0.99)}
	least := max(flatBytes, l.height()/5)
	idle := 0
	for i, x := range c {
		if x.high-g.floor[min(g.skip+i, len(g.floor)-1)] <= least {
			idle++
		}
		if i > 0 && l.height() > 0 {
			l.sudden = max(l.sudden, (x.high-c[i-1].mid)/l.height())
		}
	}
	l.idle = float64(idle) / float64(len(c))
	return l
}
