// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// outcome returns the outcome of a policy: a series for each of kills, each with the same slack in GiB-days.
func outcome(policy string, slack float64, kills ...int) Outcome {
	o := Outcome{Policy: policy}
	for _, k := range kills {
		o.Results = append(o.Results, Result{Kills: k, Slack: slack * gibDay, Demand: 1})
	}
	return o
}

// TestSettingsAreChosenOnOtherSeries: memfit is not compared with the variant that is the best by chance on the
// reporting half.
func TestSettingsAreChosenOnOtherSeries(t *testing.T) {
	tuning := []Outcome{
		outcome("memfit", 1, 0, 0), outcome("memfit-frugal", 0.5, 9, 9),
		outcome("vpa", 2, 0, 0), outcome("vpa-lucky", 1, 3, 3),
	}
	reporting := []Outcome{
		outcome("memfit", 1, 0, 0, 0), outcome("memfit-frugal", 0.5, 9, 9, 9),
		outcome("vpa", 2, 0, 0, 0), outcome("vpa-lucky", 0.5, 0, 0, 0),
	}
	for _, p := range Pair(tuning, reporting) {
		if p.Memfit != "memfit" || p.VPA != "vpa" {
			t.Errorf("at a price of %g, %s is compared with %s, want memfit with vpa", p.Price, p.Memfit, p.VPA)
		}
		if math.Abs(p.Difference+3) > 1e-9 || math.Abs(p.Low+3) > 1e-9 || math.Abs(p.High+3) > 1e-9 {
			t.Errorf("at a price of %g: %+v, want -1 for each of three series", p.Price, p)
		}
	}
}

// TestAFewKillsInOneSeriesAreOpen: a difference in a single series may be chance, one in nearly all series is not.
func TestAFewKillsInOneSeriesAreOpen(t *testing.T) {
	one, most := make([]float64, 60), make([]float64, 60)
	for i := range most {
		most[i] = 1 + float64(i%5)/10
	}
	one[17] = 20
	for name, c := range map[string]struct {
		each []float64
		want string
	}{"one series": {one, "open"}, "all of them": {most, "no"}} {
		low, high := interval(c.each)
		var sum float64
		for _, d := range c.each {
			sum += d
		}
		if low > sum || high < sum {
			t.Errorf("%s: %g is not between %g and %g", name, sum, low, high)
		}
		var b bytes.Buffer
		Paired{Low: low, High: high}.Print(&b, "s")
		if !strings.HasSuffix(b.String(), "ahead="+c.want+"\n") {
			t.Errorf("%s: %q, want ahead=%s", name, b.String(), c.want)
		}
	}
	if low, high := interval(nil); low != 0 || high != 0 {
		t.Errorf("the interval without series is %g to %g", low, high)
	}
}
