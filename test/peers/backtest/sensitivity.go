// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// constants are the constants that affect a replay, each with a function that scales it. Settings of owners are scaled
// from their defaults.
var constants = []struct {
	name  string
	scale func(m *recommend.Model, p *recommend.Policy, by float64)
}{
	{"Balanced", func(_ *recommend.Model, p *recommend.Policy, by float64) { scale(&p.KillPrice, by) }},
	{"OldFrom", func(m *recommend.Model, _ *recommend.Policy, by float64) { scale(&m.OldFrom, by) }},
	{"Records", func(m *recommend.Model, _ *recommend.Policy, by float64) { m.Records *= by }},
	{"Excess", func(m *recommend.Model, _ *recommend.Policy, by float64) { scale(&m.Excess, by) }},
	{"ExcessShare", func(m *recommend.Model, _ *recommend.Policy, by float64) { m.ExcessShare *= by }},
	{"DayHalfLife", func(m *recommend.Model, _ *recommend.Policy, by float64) { m.DayHalfLife *= by }},
	{"Alike", func(m *recommend.Model, _ *recommend.Policy, by float64) { m.Alike *= by }},
	{"Unlike", func(m *recommend.Model, _ *recommend.Policy, by float64) { m.Unlike *= by }},
	{"LowerLimit", func(m *recommend.Model, _ *recommend.Policy, by float64) { m.LowerLimit *= by }},
	{"LowerKill", func(m *recommend.Model, _ *recommend.Policy, by float64) { m.LowerKill *= by }},
	{"LowerYoung", func(m *recommend.Model, _ *recommend.Policy, by float64) { scale(&m.LowerYoung, by) }},
	{"usualMinMargin",
		func(_ *recommend.Model, p *recommend.Policy, by float64) { scale(&p.MinMarginPercent, by) }},
	{"Young", func(m *recommend.Model, _ *recommend.Policy, by float64) { scale(&m.Young, by) }},
	{"YoungPower", func(m *recommend.Model, _ *recommend.Policy, by float64) { m.YoungPower *= by }},
	{"BurstShare", func(m *recommend.Model, _ *recommend.Policy, by float64) { m.BurstShare *= by }},
	{"BurstPerDoubling", func(m *recommend.Model, _ *recommend.Policy, by float64) { scale(&m.BurstPerDoubling, by) }},
	{"BurstUse", func(m *recommend.Model, _ *recommend.Policy, by float64) { scale(&m.BurstUse, by) }},
	{"BurstEnds", func(m *recommend.Model, _ *recommend.Policy, by float64) { scale(&m.BurstEnds, by) }},
	{"StepHalfLife", func(m *recommend.Model, _ *recommend.Policy, by float64) { scale(&m.StepHalfLife, by) }},
	{"KillBeyondPercent - 100", func(m *recommend.Model, _ *recommend.Policy, by float64) {
		m.KillBeyondPercent = 100 + int32(math.Round(by*float64(m.KillBeyondPercent-100)))
	}},
	{"MinHeadroom", func(m *recommend.Model, _ *recommend.Policy, by float64) { scale(&m.MinHeadroom, by) }},
	{"UsedMarginPercent", func(m *recommend.Model, _ *recommend.Policy, by float64) { scale(&m.UsedMarginPercent, by) }},
	{"RepeatPercent", func(m *recommend.Model, _ *recommend.Policy, by float64) { scale(&m.RepeatPercent, by) }},
	{"GuessPercent", func(m *recommend.Model, _ *recommend.Policy, by float64) { scale(&m.GuessPercent, by) }},
	{"RememberedPercent", func(m *recommend.Model, _ *recommend.Policy, by float64) { scale(&m.RememberedPercent, by) }},
	{"sizing.headroomPercent",
		func(_ *recommend.Model, p *recommend.Policy, by float64) { scale(&p.HeadroomPercent, by) }},
	{"oom.factorPercent - 100", func(_ *recommend.Model, p *recommend.Policy, by float64) {
		p.OOMFactorPercent = 100 + int32(math.Round(by*float64(p.OOMFactorPercent-100)))
	}},
	{"oom.minIncrease", func(_ *recommend.Model, p *recommend.Policy, by float64) { scale(&p.OOMMinIncrease, by) }},
	{"sizing.minChangePercent",
		func(_ *recommend.Model, p *recommend.Policy, by float64) { scale(&p.MinChangePercent, by) }},
}

// scale multiplies a whole number.
func scale[N ~int64 | ~int32](n *N, by float64) { *n = N(math.Round(by * float64(*n))) }

// priceOfDefault returns the price of a kill in the default posture, in GiB-days, at which sensitivity is measured.
func priceOfDefault() float64 {
	return float64(recommend.Balanced) / float64(memory.GiB)
}

// Sensitivity prints, for every constant and both halves, the change of total cost in percent with a quarter less and a
// quarter more of the constant: the geometric mean over all sets.
func Sensitivity(w io.Writer, sets []Set) {
	var halves [2][]Set
	for _, set := range sets {
		tuning, reporting := Halves(set)
		halves[0], halves[1] = append(halves[0], tuning), append(halves[1], reporting)
	}
	costs := func(half []Set, edit func(*recommend.Model, *recommend.Policy)) (costs []float64) {
		m, p := recommend.DefaultModel(), defaultPolicy()
		edit(&m, &p)
		for _, set := range half {
			o := Run(set, contender{"memfit", func() Policy { return &memfit{policy: p, model: m} }})
			costs = append(costs, o.Trade().cost(priceOfDefault()))
		}
		return costs
	}
	var base [2][]float64
	for h, half := range halves {
		base[h] = costs(half, func(*recommend.Model, *recommend.Policy) {})
	}
	for _, c := range constants {
		fmt.Fprintf(w, "constant=%q", c.name)
		for h, name := range []string{"tuning", "reporting"} {
			for _, by := range []float64{0.75, 1.25} {
				changed := costs(halves[h], func(m *recommend.Model, p *recommend.Policy) { c.scale(m, p, by) })
				fmt.Fprintf(w, " %s%+.0f%%=%+.2f%%", name, 100*(by-1), 100*meanChange(base[h], changed))
			}
		}
		fmt.Fprintln(w)
	}
}

// meanChange returns the geometric mean of after/before, minus 1; it ignores sets with a cost of 0.
func meanChange(before, after []float64) float64 {
	sum, n := 0., 0.
	for i := range before {
		if before[i] > 0 && after[i] > 0 {
			sum += math.Log(after[i] / before[i])
			n++
		}
	}
	return math.Expm1(sum / max(n, 1))
}
