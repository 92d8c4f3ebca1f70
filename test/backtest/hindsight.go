// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// What could be had at best? On a small set VPA's curve hangs on a kill or two of 64 variants, so that memfit's being
// above it may be for want of a better rule, or of luck. So the room for young containers is replayed at other slopes,
// spans and tapers, the rest of memfit as it is, and whoever chooses three of these rules for the three postures knows
// the outcome.

// roomRules are memfit's default posture with other constants of the hazard curve.
func roomRules() (rules []contender) {
	const always = 1 << 50 // no taper: the headroom of large containers is more
	for _, perDoubling := range []memory.Bytes{10, 14, 17, 23, 31} {
		for _, hours := range []time.Duration{7, 48, 150, 370, 740, 1500, 2700, 5200, 11000, 22000, 74000} {
			for _, use := range [][2]memory.Bytes{
				{64 * memory.MiB, 400 * memory.MiB}, {250 * memory.MiB, 400 * memory.MiB}, {always, always},
			} {
				m := recommend.DefaultModel()
				m.BurstPerDoubling, m.BurstSpan = perDoubling*memory.MiB, hours*time.Hour
				m.BurstUse, m.BurstEnds = use[0], use[1]
				rules = append(rules, contender{make: func() Policy { return &memfit{model: m} }})
			}
		}
	}
	return rules
}

// field is what the rules of hindsight are judged on: a half of a set.
type field struct {
	name  string
	vpa   curve
	rules []trade
}

// Hindsight prints, for each half of each set, the curve through the best of all rules, and of all choices of three how
// many are below VPA's curve at every slack and cheaper than its cheapest variant at every price: on all tuning
// halves, on all reporting halves, and on both. Only what the last number counts could have been found on the tuning
// halves.
func Hindsight(w io.Writer, sets []Set) {
	rules := roomRules()
	var halves [2][]field
	for _, set := range sets {
		tuning, reporting := Halves(set)
		for h, half := range []Set{tuning, reporting} {
			f := field{name: fmt.Sprintf("set=%s half=%s", set.Name, []string{"tuning", "reporting"}[h])}
			var variants []trade
			for _, c := range vpaVariants() {
				variants = append(variants, Run(half, c).Trade())
			}
			f.vpa = newCurve(variants)
			for _, c := range rules {
				f.rules = append(f.rules, Run(half, c).Trade())
			}
			best := newCurve(f.rules)
			fmt.Fprintf(w, "%s rules=%d dominates=%t best=%s vpa=%s\n", f.name, len(rules), best.dominates(f.vpa), best, f.vpa)
			halves[h] = append(halves[h], f)
		}
	}
	var all, tuned, reported, both int
	for i := range rules {
		for j := range i {
			for k := range j {
				onTuning, onReporting := dominate(halves[0], i, j, k), dominate(halves[1], i, j, k)
				all++
				tuned += one(onTuning)
				reported += one(onReporting)
				both += one(onTuning && onReporting)
			}
		}
	}
	fmt.Fprintf(w, "choices=%d tuning=%d reporting=%d both=%d\n", all, tuned, reported, both)
}

// dominate says whether the curve through these rules dominates VPA's on every field.
func dominate(fields []field, rules ...int) bool {
	for _, f := range fields {
		var mine []trade
		for _, i := range rules {
			mine = append(mine, f.rules[i])
		}
		if !newCurve(mine).dominates(f.vpa) {
			return false
		}
	}
	return true
}

// dominates says whether c is below other at every slack that it can have, and cheaper at every price.
func (c curve) dominates(other curve) bool {
	for _, price := range prices {
		if c.cheapest(price).cost(price) >= other.cheapest(price).cost(price) {
			return false
		}
	}
	return c.below(other, max(c[len(c)-1].slack, other[len(other)-1].slack))
}

// String is each corner's slack in GiB-days and its kills.
func (c curve) String() string {
	var corners []string
	for _, t := range c {
		corners = append(corners, fmt.Sprintf("%.2f/%g", t.slack, t.kills))
	}
	return strings.Join(corners, ",")
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
