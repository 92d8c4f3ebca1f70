// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"math"

	"github.com/memfit/memfit/internal/memory"
)

// costs are what a limit is expected to cost a day: the memory held, and the kills on days like those seen.
type costs struct {
	days  []window
	total float64 // the weight of all days
	kill  float64 // what a kill costs, in bytes held for a day
}

func (e *evaluation) costs(days []window) costs {
	c := costs{days: days}
	var use float64
	for _, d := range days {
		c.total += d.weight
		use += d.weight * float64(d.peak)
	}
	price := e.model.price(e.Policy.Posture)
	c.kill = float64(price.Fixed) + price.Times*use/c.total
	return c
}

// kills returns the kills that are expected in a day: the share of days that went above the limit.
func (c *costs) kills(limit memory.Bytes) float64 {
	var above float64
	for _, d := range c.days {
		if d.peak > limit {
			above += d.weight
		}
	}
	return above / c.total
}

// cheapest returns the peak to size for: the one at which a day of holding the limit, plus the kills expected in it, is
// least. A peak that comes often is held; one that came once, long ago, is held only where memory is cheap.
func (c *costs) cheapest(limitFor func(peak memory.Bytes) memory.Bytes) memory.Bytes {
	best, least := c.days[0].peak, math.Inf(1)
	for _, candidate := range c.days {
		limit := limitFor(candidate.peak)
		if cost := float64(limit) + c.kill*c.kills(limit); cost < least {
			best, least = candidate.peak, cost
		}
	}
	return best
}

// words are the sentence by which an operator can check a limit: the peak, what is above it, the kills expected, and
// what 10 % less would save and cost.
func (c *costs) words(limit, recent memory.Bytes, p Posture) string {
	lower := limit.Percent(90)
	saved, kills := limit.Minus(lower), c.kills(limit)
	more := c.kills(lower) - kills
	less := sprintf("cost %s more kills, worth %s", per100(more), memory.Bytes(c.kill*more))
	if more == 0 {
		less = sprintf("leave %s above that peak", lower.Minus(recent))
	}
	return sprintf("%s is %s above the last day's peak of %s: %s kills are expected in 100 days like the last %d; "+
		"10 %% less would save %s and %s (%s: a kill is worth %s held for a day)", limit, limit.Minus(recent), recent,
		per100(kills), len(c.days), saved, less, p, memory.Bytes(c.kill))
}

// per100 is a rate of kills a day as a number in 100 days.
func per100(rate float64) string { return sprintf("%.2g", 100*rate) }
