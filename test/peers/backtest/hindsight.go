// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/recommend"
)

// What could be had at best? On a small set VPA's curve hangs on a kill or two of 64 variants, so that memfit's being
// above it may be for want of a better rule, or of luck. So the room for young containers is replayed at other slopes,
// spans, tapers and least limits, the rest of memfit as it is, and whoever chooses three of these rules for the three
// postures knows the outcome.

// roomRule is memfit's default posture with other constants of the hazard curve, and with a least limit, as VPA has
// one.
type roomRule struct {
	least, perDoubling memory.Bytes
	span               time.Duration
	use, ends          memory.Bytes // the taper
}

func (r roomRule) contender() contender {
	m := recommend.DefaultModel()
	m.BurstPerDoubling, m.BurstSpan, m.BurstUse, m.BurstEnds = r.perDoubling, period.Evidence(r.span), r.use, r.ends
	p := defaultPolicy()
	p.LimitMin = max(p.LimitMin, r.least)
	return contender{make: func() Policy { return &memfit{model: m, policy: p} }}
}

// atMost: no container gets more by r than by other.
func (r roomRule) atMost(other roomRule) bool {
	return r.least <= other.least && r.perDoubling <= other.perDoubling && r.span <= other.span && r.use <= other.use
}

func roomRules() (rules []roomRule) {
	const always = 1 << 50 // no taper: the headroom of large containers is more
	for _, least := range []memory.Bytes{0, 100, 250} {
		for _, perDoubling := range []memory.Bytes{10, 14, 17, 23, 31} {
			for _, hours := range []time.Duration{7, 48, 150, 370, 740, 1500, 2700, 5200, 11000, 22000, 74000} {
				for _, use := range [][2]memory.Bytes{
					{64 * memory.MiB, 400 * memory.MiB}, {250 * memory.MiB, 400 * memory.MiB}, {always, always},
				} {
					rules = append(
						rules, roomRule{least * memory.MiB, perDoubling * memory.MiB, hours * time.Hour, use[0], use[1]},
					)
				}
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

// Hindsight prints, for each half of each set, the curve through the best of all rules, and for each highest of the
// least limits of all choices of three how many are below VPA's curve at every slack and cheaper than its cheapest
// variant at every price: on all tuning halves, on all reporting halves, and on both. Only what both counts could have
// been found on the tuning halves. Of ordered ones each gives at least what the one before it gives, as postures do.
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
				f.rules = append(f.rules, Run(half, c.contender()).Trade())
			}
			best := newCurve(f.rules)
			fmt.Fprintf(w, "%s rules=%d dominates=%t best=%s vpa=%s\n", f.name, len(rules), best.dominates(f.vpa), best, f.vpa)
			halves[h] = append(halves[h], f)
		}
	}
	found := map[memory.Bytes]*struct{ choices, tuning, reporting, both, ordered int }{}
	for i, cautious := range rules { // rules are sorted by their least limit
		n := found[cautious.least]
		if n == nil {
			n = new(struct{ choices, tuning, reporting, both, ordered int })
			found[cautious.least] = n
		}
		for j := range i {
			for k := range j {
				onTuning, onReporting := dominate(halves[0], i, j, k), dominate(halves[1], i, j, k)
				n.choices++
				n.tuning += one(onTuning)
				n.reporting += one(onReporting)
				n.both += one(onTuning && onReporting)
				n.ordered += one(onTuning && onReporting && inOrder(cautious, rules[j], rules[k]))
			}
		}
	}
	for _, least := range slices.Sorted(maps.Keys(found)) {
		n := found[least]
		fmt.Fprintf(w, "least=%s choices=%d tuning=%d reporting=%d both=%d ordered=%d\n",
			least, n.choices, n.tuning, n.reporting, n.both, n.ordered)
	}
}

// inOrder: they can be three postures, in some order.
func inOrder(rules ...roomRule) bool {
	slices.SortFunc(rules, func(a, b roomRule) int {
		return cmp.Or(cmp.Compare(a.least, b.least), cmp.Compare(a.perDoubling, b.perDoubling), cmp.Compare(a.span, b.span),
			cmp.Compare(a.use, b.use))
	})
	return rules[0].atMost(rules[1]) && rules[1].atMost(rules[2])
}

// dominate reports whether the curve through these rules dominates VPA's on every field.
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

// dominates reports whether c is below other at every slack that it can have, and cheaper at every price.
func (c curve) dominates(other curve) bool {
	for _, price := range prices {
		if c.cheapest(price).cost(price) >= other.cheapest(price).cost(price) {
			return false
		}
	}
	return c.below(other, max(c.widest(), other.widest()))
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
