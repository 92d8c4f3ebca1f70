// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
)

// A curve over 64 variants has an advantage when it is drawn on the data that judge it: with a handful of kills, one of
// 64 variants is good by chance, and owners have to choose theirs in advance. So the products are compared a second
// time: settings of both are chosen on the tuning half, and their costs compared on the reporting half, by series.

const (
	// resamples is enough for stable bounds: their first two digits do not change.
	resamples = 10_000
	// tailPercent of the resamples are beyond each bound: the interval contains 90 %.
	tailPercent = 5
)

// Paired compares the costs of memfit and VPA at one price, with settings chosen on other series.
type Paired struct {
	Price       float64
	Memfit, VPA string // the settings with the lowest cost on the tuning half
	// Difference is memfit's cost minus VPA's; Low and High bound its 90 % interval. All are in GiB-days.
	Difference, Low, High float64
	Against               float64 // VPA's cost in GiB-days
}

// Pair compares at each price. Both halves have the outcomes of the same policies.
func Pair(tuning, reporting []Outcome) (all []Paired) {
	for _, price := range prices {
		memfit := cheapestOn(tuning, "memfit", price)
		vpa := cheapestOn(tuning, "vpa", price)
		p := Paired{Price: price, Memfit: memfit, VPA: vpa}
		a, b := costs(reporting, memfit, price), costs(reporting, vpa, price)
		differences := make([]float64, len(a))
		for i := range a {
			differences[i] = a[i] - b[i]
			p.Difference += differences[i]
			p.Against += b[i]
		}
		p.Low, p.High = interval(differences)
		all = append(all, p)
	}
	return all
}

// cheapestOn returns the policy of a product with the lowest total cost; of equals, the first by name.
func cheapestOn(outcomes []Outcome, product string, price float64) string {
	best, least := "", 0.
	for _, o := range slices.SortedFunc(slices.Values(outcomes), func(a, b Outcome) int {
		return cmp.Compare(a.Policy, b.Policy)
	}) {
		if !strings.HasPrefix(o.Policy, product) {
			continue
		}
		if cost := o.Trade().cost(price); best == "" || cost < least {
			best, least = o.Policy, cost
		}
	}
	return best
}

// costs returns the cost of each series under a policy.
func costs(outcomes []Outcome, policy string, price float64) (all []float64) {
	for _, o := range outcomes {
		if o.Policy != policy {
			continue
		}
		for _, r := range o.Results {
			all = append(all, Outcome{Results: []Result{r}}.Trade().cost(price))
		}
	}
	return all
}

// interval returns the 90 % bootstrap interval of a sum: the range of sums of other series of the same kind. Equal
// numbers give an equal interval.
func interval(each []float64) (low, high float64) {
	if len(each) == 0 {
		return 0, 0
	}
	r := rand.New(rand.NewPCG(1, 1))
	sums := make([]float64, resamples)
	for i := range sums {
		for range each {
			sums[i] += each[r.IntN(len(each))]
		}
	}
	slices.Sort(sums)
	tail := resamples * tailPercent / 100
	return sums[tail], sums[resamples-1-tail]
}

// Print writes the line that scripts read. ahead is yes, no, or open when the interval contains 0.
func (p Paired) Print(w io.Writer, set string) {
	ahead := "open"
	switch {
	case p.High < 0:
		ahead = "yes"
	case p.Low > 0:
		ahead = "no"
	}
	fmt.Fprintf(w, "set=%s price=%g chosen=%s against=%s difference=%.2f low=%.2f high=%.2f ahead=%s\n",
		set, p.Price, p.Memfit, p.VPA, p.Difference, p.Low, p.High, ahead)
}
