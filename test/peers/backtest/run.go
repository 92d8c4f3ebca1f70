// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// contender is one policy under its name in the output.
type contender struct {
	name string
	make func() Policy
}

// pricePrefix marks memfit with a chosen price of a kill; its cost is printed at that price.
const pricePrefix = "price-"

func pricedName(price float64) string { return fmt.Sprintf("%s%g", pricePrefix, price) }

// priced returns memfit with each of the prices as its posture, and with the next ones up to that of Cautious.
func priced() (all []contender) {
	for _, price := range slices.Concat(prices, []float64{100, 200}) {
		all = append(all, contender{
			pricedName(price), func() Policy { return newMemfit(memory.Bytes(price) * memory.GiB) },
		})
	}
	return all
}

// contenders are compared in every run, in this order.
var contenders = []contender{
	{"memfit", func() Policy { return newMemfit(recommend.Balanced) }},
	{"memfit-frugal", func() Policy { return newMemfit(recommend.Frugal) }},
	{"memfit-cautious", func() Policy { return newMemfit(recommend.Cautious) }},
	{"clairvoyant", func() Policy { return &clairvoyant{} }},
	{"naive20", func() Policy { return &naive20{} }},
	{"krr", func() Policy { return newKRR() }},
	{"attune", func() Policy { return &attune{} }},
	{"cruisekube", func() Policy { return newCruiseKube() }},
}

// vpaVariants returns the points of VPA's curve.
func vpaVariants() (all []contender) {
	for _, f := range flagGrid() {
		all = append(all, contender{f.String(), func() Policy { return newVPA(f) }})
	}
	return all
}

// postures are the prices of a kill that have a name.
var postures = []struct {
	name  string
	price memory.Bytes
}{{"Frugal", recommend.Frugal}, {"Balanced", recommend.Balanced}, {"Cautious", recommend.Cautious}}

// settingsPrefix distinguishes the points of memfit's curve over its settings from its postures.
const settingsPrefix = "settings-"

// settings returns memfit's counterparts of VPA's variants: posture instead of percentile, sizing.headroomPercent at
// VPA's margins and sizing.limit.min at its floors. It omits the plain postures, which are contenders.
func settings() (all []contender) {
	for _, posture := range postures {
		for _, margin := range margins {
			for _, floor := range floorsMiB {
				p := defaultPolicy()
				p.KillPrice = posture.price
				plain := p
				if percent := int32(math.Round(100 * margin)); percent != p.HeadroomPercent { // otherwise the defaults
					p.HeadroomPercent, p.MinMarginPercent = percent, percent
				}
				p.LimitMin = max(p.LimitMin, memory.Bytes(floor)*memory.MiB)
				if p == plain {
					continue
				}
				name := fmt.Sprintf("%s%s-m%d-f%g", settingsPrefix, strings.ToLower(posture.name), p.HeadroomPercent, floor)
				all = append(all, contender{name, func() Policy { return &memfit{policy: p, model: recommend.DefaultModel()} }})
			}
		}
	}
	return all
}

// Outcome has the results of one policy on one set.
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

// RunAll replays a set against every policy, and prints the results of all except the variants of VPA and the settings
// of memfit, which are points of a curve.
func RunAll(set Set, w io.Writer) (outcomes []Outcome) {
	p95 := UseP95(set)
	for _, c := range slices.Concat(contenders, priced(), vpaVariants(), settings()) {
		o := Run(set, c)
		outcomes = append(outcomes, o)
		if !strings.HasPrefix(c.name, "vpa-") && !strings.HasPrefix(c.name, settingsPrefix) {
			o.Print(w)
			o.Metrics(p95).Print(w, o)
		}
	}
	return outcomes
}

// Kills returns the number of OOM kills of all series.
func (o Outcome) Kills() (n int) {
	for _, r := range o.Results {
		n += r.Kills
	}
	return n
}

// Trade returns slack in GiB-days and kills. The slack of series without any use is ignored: they never ran.
func (o Outcome) Trade() trade {
	t := trade{kills: float64(o.Kills())}
	for _, r := range o.Results {
		if r.Demand > 0 {
			t.slack += r.Slack / gibDay
		}
	}
	return t
}

// gibDay is a GiB for a day, in byte seconds.
const gibDay = (1 << 30) * 86400

// SlackTotal returns all slack per all demand, of series with any use.
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

// SlackMedian returns the median of the series' own ratios.
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

// Print writes the line that scripts read.
func (o Outcome) Print(w io.Writer) {
	fmt.Fprintf(w, "set=%s policy=%s series=%d days=%.1f kills=%d slack_total=%.4f slack_median=%.4f\n",
		o.Set, o.Policy, o.Series, o.Days, o.Kills(), o.SlackTotal(), o.SlackMedian())
}
