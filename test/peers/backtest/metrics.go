// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
)

// day is one day of one container under one policy, counted from its first sample; the last day may be shorter.
type day struct {
	Limit, Use float64 // integrals, in byte seconds
	Kills      int
}

// day returns the day of a point, so many seconds after the first; it adds missing days.
func (r *Result) day(seconds int64) *day {
	n := int(seconds / 86400)
	for len(r.Days) <= n {
		r.Days = append(r.Days, day{})
	}
	return &r.Days[n]
}

// Metrics are the metrics of an outcome that other products publish, too.
type Metrics struct {
	// RelativeSlack is the mean over container-days of (limit - mean use) / limit, as Google reports Autopilot's.
	RelativeSlack float64
	// Quiet is the share of container-days without an OOM kill.
	Quiet float64
	// RequestOverP95 is the ratio of requests to P95 use of the same containers, both weighted by time.
	RequestOverP95 float64
	// ChangesPerDay is the number of limits applied after the first, per container-day.
	ChangesPerDay float64
}

// Metrics computes the metrics of the series that ran; useP95 is the P95 use of each series.
func (o Outcome) Metrics(useP95 []int64) Metrics {
	var w Metrics
	var days, quiet, request, p95 float64
	for i, r := range o.Results {
		if r.Demand == 0 {
			continue // it never ran
		}
		for _, d := range r.Days {
			if d.Limit > 0 {
				days++
				w.RelativeSlack += 1 - d.Use/d.Limit
			}
			if d.Limit > 0 && d.Kills == 0 {
				quiet++
			}
		}
		w.ChangesPerDay += float64(r.Changes)
		request += r.Request
		p95 += float64(useP95[i]) * r.Seconds
	}
	if days == 0 || p95 == 0 {
		return Metrics{}
	}
	w.RelativeSlack, w.Quiet, w.ChangesPerDay = w.RelativeSlack/days, quiet/days, w.ChangesPerDay/days
	w.RequestOverP95 = request / p95
	return w
}

// Print writes the line that scripts read.
func (w Metrics) Print(out io.Writer, o Outcome) {
	fmt.Fprintf(
		out, "set=%s policy=%s relative_slack=%.3f days_without_kill=%.4f request_over_p95=%.2f changes_per_day=%.3f\n",
		o.Set, o.Policy, w.RelativeSlack, w.Quiet, w.RequestOverP95, w.ChangesPerDay,
	)
}

// UseP95 returns the P95 use of every series of a set, weighted by time.
func UseP95(set Set) []int64 {
	p95 := make([]int64, len(set.Series))
	for i, s := range set.Series {
		p95[i] = s.quantile(0.95)
	}
	return p95
}

// quantile returns the use below or at which the series was for the share q of the time.
func (s Series) quantile(q float64) int64 {
	type piece struct{ bytes, seconds int64 }
	pieces := make([]piece, len(s.Points))
	var total int64
	for i, p := range s.Points {
		pieces[i] = piece{p.Bytes, duration(s.Points, i)}
		total += pieces[i].seconds
	}
	slices.SortFunc(pieces, func(a, b piece) int { return int(a.bytes - b.bytes) })
	var passed int64
	for _, p := range pieces {
		if passed += p.seconds; float64(passed) >= q*float64(total) {
			return p.bytes
		}
	}
	return 0
}
