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

// trade is what a policy costs on one set: memory held for nothing in GiB-days, and kills.
type trade struct{ slack, kills float64 }

// curve is the best that the settings of one product do: the lower left edge of the convex hull of their trades,
// leanest first. Between two settings a fleet can be divided, so that the line between them can be had, too; and a
// straight edge is what a price per kill chooses from: one curve is below another everywhere when it is cheaper at
// every price.
type curve []trade

// newCurve leaves out what is worse than a mix of two others.
func newCurve(all []trade) (c curve) {
	all = slices.Clone(all)
	slices.SortFunc(
		all, func(a, b trade) int { return cmp.Or(cmp.Compare(a.slack, b.slack), cmp.Compare(a.kills, b.kills)) },
	)
	for _, t := range all {
		if len(c) > 0 && t.kills >= c[len(c)-1].kills {
			continue // more memory for no fewer kills
		}
		for len(c) > 1 && c[len(c)-2].line(t, c[len(c)-1].slack) <= c[len(c)-1].kills {
			c = c[:len(c)-1]
		}
		c = append(c, t)
	}
	return c
}

// line is the kills at a slack on the straight line from t to u.
func (t trade) line(u trade, slack float64) float64 {
	return t.kills + (u.kills-t.kills)*(slack-t.slack)/(u.slack-t.slack)
}

// widest is the slack of the widest setting.
func (c curve) widest() float64 { return c[len(c)-1].slack }

// at is the kills that a slack buys: none can be had below the leanest setting, and more than the widest one holds
// helps no further.
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

// below reports whether c has fewer kills than other at every slack from its leanest setting to widest; where other
// has none, none is as good. Both curves are straight between their corners, so that the corners decide.
func (c curve) below(other curve, widest float64) bool {
	for _, slack := range c.corners(other) {
		if mine, theirs := c.at(slack), other.at(slack); slack <= widest && mine >= theirs && mine > 0 {
			return false
		}
	}
	return true
}

// area is how many kills fewer c has than other, times GiB-days, over the slacks that both can have: within c's own
// range, and beyond its widest setting, where it has what it has there.
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

// corners are the slacks at which either curve bends, from the leanest setting of c on.
func (c curve) corners(other curve) (corners []float64) {
	for _, t := range slices.Concat(c, other) {
		if t.slack >= c[0].slack {
			corners = append(corners, t.slack)
		}
	}
	slices.Sort(corners)
	return slices.Compact(corners)
}

// cheapest is the trade with the least total cost: slack, and for each kill the price in GiB-days.
func (c curve) cheapest(price float64) trade {
	return slices.MinFunc(c, func(a, b trade) int { return cmp.Compare(a.cost(price), b.cost(price)) })
}

func (t trade) cost(price float64) float64 { return t.slack + price*t.kills }

// String is each corner's slack in GiB-days and its kills.
func (c curve) String() string {
	var corners []string
	for _, t := range c {
		corners = append(corners, fmt.Sprintf("%.2f/%g", t.slack, t.kills))
	}
	return strings.Join(corners, ",")
}
