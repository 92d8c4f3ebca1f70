// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// clairvoyant sets the peak of the whole series from the start: the lowest constant limit without a kill.
type clairvoyant struct{ peak int64 }

// Start returns the first limit, from the whole series.
func (c *clairvoyant) Start(points []Point) int64 {
	for _, p := range points {
		c.peak = max(c.peak, p.Bytes)
	}
	return c.peak
}

func (c *clairvoyant) Observe(time.Time, int64, int64)      {}
func (c *clairvoyant) Killed(time.Time, int64)              {}
func (c *clairvoyant) Limit(_ time.Time, limit int64) int64 { return limit }

// naive20 is a common manual rule: 20 % above the highest use so far, and 20 % more after every kill.
type naive20 struct{ peak int64 }

func (n *naive20) Observe(_ time.Time, use, _ int64) { n.peak = max(n.peak, use) }
func (n *naive20) Killed(_ time.Time, limit int64)   { n.peak = max(n.peak, limit) }
func (n *naive20) Limit(time.Time, int64) int64      { return n.peak * 12 / 10 }
