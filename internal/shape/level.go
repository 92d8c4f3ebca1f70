// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"slices"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/stats"
)

const (
	// stillPercent and stillBytes: memory that moves less than the larger of the two is flat.
	stillPercent = 12
	stillBytes   = float64(8 * memory.MiB)
	burstIdle    = 0.4 // the least share of time on its floor for a bursting process
	burstPercent = 25  // of its floor is the least height of a burst; sawteeth of a collector are lower
	// burstSudden is the least share of its height that a burst rises within a cell, a hundredth of the window; garbage
	// accumulates more slowly.
	burstSudden = 0.5
	// capLow and capHigh bound the level of memory that fills its cap, in percent of the cap. The upper bound also
	// includes the runtime's overhead.
	capLow, capHigh = 82, 104
)

// level describes how a series moves around its floor.
type level struct {
	base, usual, top float64 // bytes: low, median and high points after warm-up
	idle             float64 // share of time on the floor
	sudden           float64 // the largest rise within a cell, as a share of the height
}

func (l level) height() float64 { return l.top - l.base }

func (l level) still() bool { return l.height() <= max(stillBytes, l.usual*stillPercent/100) }

// peaked reports whether it is on its floor most of the time, and leaves it suddenly and far.
func (l level) peaked() bool {
	return l.height() >= l.base*burstPercent/100 && l.idle >= burstIdle && l.sudden >= burstSudden
}

// levels measures the cells after warm-up.
func levels(s series, g growth) level {
	c := s.cells[g.skip:]
	highs, lows := each(c, func(c cell) float64 { return c.high }), each(c, func(c cell) float64 { return c.low })
	slices.Sort(highs)
	slices.Sort(lows)
	l := level{base: stats.Quantile(lows, 0.1), usual: stats.Median(s.mids()[g.skip:]), top: stats.Quantile(highs, 0.99)}
	least := max(stillBytes, l.height()/5)
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
