// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// trade is the cost of a policy on one set: slack (unused memory below the limit) in GiB-days, and OOM kills.
type trade struct{ slack, kills float64 }

// curve has the best settings of one product: the lower left edge of the convex hull of their trades, leanest first.
// A fleet can be divided between two settings, so all points on the line between them are possible. A curve that is
// below another everywhere is cheaper at every price of a kill.
type curve []trade

// newCurve omits trades that are worse than a mix of two others.
func newCurve(all []trade) (c curve) {
	all = slices.Clone(all)
	slices.SortFunc(
		all, func(a, b trade) int { return cmp.Or(cmp.Compare(a.slack, b.slack), cmp.Compare(a.kills, b.kills)) },
	)
	for _, t := range all {
		if len(c) > 0 && t.kills >= c[len(c)-1].kills {
			continue // more slack without fewer kills
		}
		for len(c) > 1 && c[len(c)-2].line(t, c[len(c)-1].slack) <= c[len(c)-1].kills {
			c = c[:len(c)-1]
		}
		c = append(c, t)
	}
	return c
}

// line returns the kills at a slack on the straight line from t to u.
func (t trade) line(u trade, slack float64) float64 {
	return t.kills + (u.kills-t.kills)*(slack-t.slack)/(u.slack-t.slack)
}

// widest returns the slack of the widest setting.
func (c curve) widest() float64 { return c[len(c)-1].slack }

// at returns the kills at a slack: infinite below the leanest setting, constant above the widest.
func (c curve) at(slack float64) float64 {
	if len(c) == 0 || slack < c[0].slack {
		return math.Inf(1)
	}
	for i := 1; i < len(c); i++ {
		if slack <= c[i].slack {
			return c[i-1].line(c[i], slack)
		}
	}
	return c[len(c)-1].kills
}

// below reports whether c has fewer kills than other, or none, at every slack from its leanest setting to widest. Both
// curves are straight between their corners, so comparing the corners is enough.
func (c curve) below(other curve, widest float64) bool {
	for _, slack := range c.corners(other) {
		if kills := c.at(slack); slack <= widest && kills >= other.at(slack) && kills > 0 {
			return false
		}
	}
	return true
}

// area returns the area between other and c in kills times GiB-days, positive where c has fewer kills, over the slacks
// of both: within c's own range, and beyond its widest setting.
func (c curve) area(other curve) (within, beyond float64) {
	widest := c.widest()
	corners := slices.DeleteFunc(c.corners(other), func(slack float64) bool { return slack < other[0].slack })
	for i := 1; i < len(corners); i++ {
		from, to := corners[i-1], corners[i]
		area := (other.at(from) - c.at(from) + other.at(to) - c.at(to)) / 2 * (to - from)
		if to <= widest {
			within += area
		} else {
			beyond += area
		}
	}
	return within, beyond
}

// corners returns the slacks of both curves' settings, from the leanest setting of c on.
func (c curve) corners(other curve) (corners []float64) {
	for _, t := range slices.Concat(c, other) {
		if t.slack >= c[0].slack {
			corners = append(corners, t.slack)
		}
	}
	slices.Sort(corners)
	return slices.Compact(corners)
}

// cheapest returns the trade with the lowest total cost: slack, plus price GiB-days per kill.
func (c curve) cheapest(price float64) trade {
	return slices.MinFunc(c, func(a, b trade) int { return cmp.Compare(a.cost(price), b.cost(price)) })
}

func (t trade) cost(price float64) float64 { return t.slack + price*t.kills }

// String lists SLACK/KILLS of each corner, slack in GiB-days.
func (c curve) String() string {
	var corners []string
	for _, t := range c {
		corners = append(corners, fmt.Sprintf("%.2f/%g", t.slack, t.kills))
	}
	return strings.Join(corners, ",")
}
