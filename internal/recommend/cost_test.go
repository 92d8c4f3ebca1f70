// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"testing"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// TestAnOperatorCanCheckALimit: the sentence about a limit has figures that follow from the days.
func TestAnOperatorCanCheckALimit(t *testing.T) {
	c := costs{
		days:  []window{{0, 412 * mib, 1}, {1, 440 * mib, 1}, {2, 600 * mib, 1}, {3, 400 * mib, 1}},
		total: 4, kill: float64(8 * gib),
	}
	const want = "474Mi is 62Mi above the last day's peak of 412Mi: 25 kills are expected in 100 days like the last 4; " +
		"10 % less would save 47Mi and cost 25 more kills, worth 2Gi (Balanced: a kill is worth 8Gi held for a day)"
	if got := c.words(474*mib, 412*mib, Balanced); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	h := history.New()
	now := feed(h, day, gib, flat(412*mib))
	if got := Evaluate(Input{History: h, Current: sizeOf(gib, gib), Now: now}); says(got, "kills are expected") {
		t.Errorf("one day: %q", got.Reasons)
	}
}

// TestNoCheaperLimitIsLeftOut: of all limits at the peaks of days, none costs less than the one that is chosen.
func TestNoCheaperLimitIsLeftOut(t *testing.T) {
	cost := func(c *costs, limit memory.Bytes) float64 { return float64(limit) + c.kill*c.kills(limit) }
	for seed := range memory.Bytes(50) {
		c := costs{kill: float64((seed + 1) * 200 * mib)}
		for i := range memory.Bytes(20) {
			w := window{peak: 50*mib + (seed*7919+i*i*104729)%997*mib, weight: 1 / float64(i+1)}
			c.days, c.total = append(c.days, w), c.total+w.weight
		}
		same := func(b memory.Bytes) memory.Bytes { return b }
		best := c.cheapest(same)
		for _, d := range c.days {
			if cost(&c, d.peak) < cost(&c, best) {
				t.Errorf("seed %d: %s costs more than %s", seed, best, d.peak)
			}
		}
	}
}
