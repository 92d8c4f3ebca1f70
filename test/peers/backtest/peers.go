// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"time"
)

// The policies of this file follow the documentation of other products, not their code. Only CruiseKube documents its
// reaction to a kill; for all of them a kill counts as use of the whole limit, the most that their metrics can show.

// recentPeaks has the highest use of each hour of a window, by hour since the epoch.
type recentPeaks struct {
	hours []int64
	now   int64
}

func newRecentPeaks(days int64) recentPeaks { return recentPeaks{hours: make([]int64, days*24)} }

func (r *recentPeaks) add(at time.Time, use int64) {
	hour, n := at.Unix()/3600, int64(len(r.hours))
	if r.now == 0 || hour-r.now >= n {
		clear(r.hours)
		r.now = hour
	}
	for ; r.now < hour; r.now++ {
		r.hours[(r.now+1)%n] = 0
	}
	r.hours[hour%n] = max(r.hours[hour%n], use)
}

func (r *recentPeaks) max() int64 { return slices.Max(r.hours) }

// atHour returns the highest use in the current hour of the day, over all days of the window.
func (r *recentPeaks) atHour() (peak int64) {
	for i := r.now; i > r.now-int64(len(r.hours)) && i >= 0; i -= 24 {
		peak = max(peak, r.hours[i%int64(len(r.hours))])
	}
	return peak
}

// krr is the simple strategy of robusta-dev/krr: request and limit are the highest use of two weeks plus 15 %, at least
// 100 MB.
type krr struct{ peaks recentPeaks }

const (
	krrDays    = 14
	krrPercent = 115
	krrLeast   = 100_000_000
)

func newKRR() *krr { return &krr{newRecentPeaks(krrDays)} }

func (k *krr) Observe(at time.Time, use, _ int64) { k.peaks.add(at, use) }
func (k *krr) Killed(at time.Time, limit int64)   { k.peaks.add(at, limit) }
func (k *krr) Limit(time.Time, int64) int64       { return max(k.peaks.max()*krrPercent/100, krrLeast) }

// cruisekube is truefoundry/CruiseKube: the limit is twice the highest use or killed limit of a week, the request the
// highest use of the current hour of the day. Its reduction of requests for memory that the pods of a node share is
// omitted: it cannot be computed from one container.
type cruisekube struct{ peaks recentPeaks }

const cruisekubeDays, cruisekubeTimes = 7, 2

func newCruiseKube() *cruisekube { return &cruisekube{newRecentPeaks(cruisekubeDays)} }

func (c *cruisekube) Observe(at time.Time, use, _ int64) { c.peaks.add(at, use) }
func (c *cruisekube) Killed(at time.Time, limit int64)   { c.peaks.add(at, limit) }
func (c *cruisekube) Limit(time.Time, int64) int64       { return cruisekubeTimes * c.peaks.max() }
func (c *cruisekube) Request(limit int64) int64          { return min(c.peaks.atHour(), limit) }

// attune is attune-io/attune: request and limit are the highest P99 of the 24 hours of the day over a week, plus 30 %;
// one step changes the limit by at most 30 %. Its factor for low confidence is omitted, because by its documentation it
// is 4 even at full confidence.
type attune struct {
	hours [24][]attuneSample // by hour of the day, oldest first
	p99   [24]float64
}

type attuneSample struct{ unix, bytes int64 }

const (
	attuneSeconds     = 7 * 86400
	attuneQuantile    = 0.99
	attunePercent     = 130
	attuneStepPercent = 30
)

func (a *attune) Observe(at time.Time, use, _ int64) { a.add(at, use) }
func (a *attune) Killed(at time.Time, limit int64)   { a.add(at, limit) }

func (a *attune) add(at time.Time, bytes int64) {
	h := at.Hour()
	a.hours[h] = append(a.hours[h], attuneSample{at.Unix(), bytes})
}

func (a *attune) Limit(at time.Time, limit int64) int64 {
	h := at.Hour()
	for _, slot := range []int{(h + 23) % 24, h} { // only these changed since the last call
		a.hours[slot] = slices.DeleteFunc(a.hours[slot], func(s attuneSample) bool {
			return at.Unix()-s.unix > attuneSeconds
		})
		a.p99[slot] = quantile(a.hours[slot], attuneQuantile)
	}
	want := int64(slices.Max(a.p99[:])) * attunePercent / 100
	step := limit * attuneStepPercent / 100
	return min(max(want, limit-step), limit+step)
}

// quantile returns the quantile q of the samples, interpolated linearly as Prometheus does; 0 without samples.
func quantile(samples []attuneSample, q float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = float64(s.bytes)
	}
	slices.Sort(values)
	rank := q * float64(len(values)-1)
	low := int(math.Floor(rank))
	high := min(low+1, len(values)-1)
	return values[low] + (values[high]-values[low])*(rank-math.Floor(rank))
}
