// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/memfit/memfit/internal/recommend"
)

// contender is one policy under its name in the output.
type contender struct {
	name string
	make func() Policy
}

// contenders are compared in every run, in this order.
var contenders = []contender{
	{"memfit", func() Policy { return newMemfit(recommend.Balanced) }},
	{"vpa", func() Policy { return newVPA(250) }},
	{"vpa-floor0", func() Policy { return newVPA(0) }},
	{"clairvoyant", func() Policy { return &clairvoyant{} }},
	{"naive20", func() Policy { return &naive20{} }},
}

// postures are memfit's three, for the curve.
var postures = []contender{
	{"memfit, Frugal", func() Policy { return newMemfit(recommend.Frugal) }},
	{"memfit, Balanced", func() Policy { return newMemfit(recommend.Balanced) }},
	{"memfit, Cautious", func() Policy { return newMemfit(recommend.Cautious) }},
}

// Outcome is what one policy did on one set.
type Outcome struct {
	Set, Policy string
	Series      int
	Days        float64 // length of the longest series
	Results     []Result
}

// Run replays a set against one policy, series in parallel.
func Run(set Set, c contender) Outcome {
	o := Outcome{Set: set.Name, Policy: c.name, Series: len(set.Series), Results: make([]Result, len(set.Series))}
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(runtime.GOMAXPROCS(0), 2) {
		wg.Go(func() {
			for i := range next {
				o.Results[i] = Simulate(set.Series[i], c.make(), false)
			}
		})
	}
	for i, s := range set.Series {
		if n := len(s.Points); n > 0 {
			o.Days = max(o.Days, float64(s.Points[n-1].Unix-s.Points[0].Unix)/86400)
		}
		next <- i
	}
	close(next)
	wg.Wait()
	return o
}

// Kills is the number of OOM kills of all series.
func (o Outcome) Kills() (n int) {
	for _, r := range o.Results {
		n += r.Kills
	}
	return n
}

// Changes is the number of limits applied.
func (o Outcome) Changes() (n int) {
	for _, r := range o.Results {
		n += r.Changes
	}
	return n
}

// Churn is the number of limits applied per series and day.
func (o Outcome) Churn() float64 {
	if o.Days == 0 || o.Series == 0 {
		return 0
	}
	return float64(o.Changes()) / o.Days / float64(o.Series)
}

// SlackTotal is all slack per all demand. Series that used nothing at all are left out: they never ran.
func (o Outcome) SlackTotal() float64 {
	var slack, demand float64
	for _, r := range o.Results {
		if r.Demand > 0 {
			slack += r.Slack
			demand += r.Demand
		}
	}
	if demand == 0 {
		return 0
	}
	return slack / demand
}

// SlackMedian is the median of the series' own ratios.
func (o Outcome) SlackMedian() float64 {
	var ratios []float64
	for _, r := range o.Results {
		if r.Demand > 0 {
			ratios = append(ratios, r.Ratio())
		}
	}
	if len(ratios) == 0 {
		return 0
	}
	slices.Sort(ratios)
	n := len(ratios)
	return (ratios[(n-1)/2] + ratios[n/2]) / 2
}

// Print writes the line scripts read.
func (o Outcome) Print(w io.Writer) {
	fmt.Fprintf(w, "set=%s policy=%s series=%d days=%.1f kills=%d slack_total=%.4f slack_median=%.4f\n",
		o.Set, o.Policy, o.Series, o.Days, o.Kills(), o.SlackTotal(), o.SlackMedian())
}
