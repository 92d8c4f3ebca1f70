// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
)

// day is one day of one container under one policy, counted from its first sample; the last one may be shorter.
type day struct {
	Limit, Use float64 // integrals, in byte seconds
	Kills      int
}

// day returns the day that a point belongs to, which is added when it is the first of it.
func (r *Result) day(seconds int64) *day {
	n := int(seconds / 86400)
	for len(r.Days) <= n {
		r.Days = append(r.Days, day{})
	}
	return &r.Days[n]
}

// Words is an outcome in the words that others report theirs in.
type Words struct {
	// RelativeSlack is the mean over container-days of (limit - mean use) / limit, as Google reports Autopilot's.
	RelativeSlack float64
	// Quiet is the share of container-days without an OOM kill.
	Quiet float64
	// RequestOverP95 is all requests per P95 use of the same containers, both by time.
	RequestOverP95 float64
	// ChangesPerDay is the number of limits applied after the first, per container-day.
	ChangesPerDay float64
}

// Words counts container-days of use; usual is the P95 of each series.
func (o Outcome) Words(usual []int64) Words {
	var w Words
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
		p95 += float64(usual[i]) * r.Seconds
	}
	if days == 0 || p95 == 0 {
		return Words{}
	}
	w.RelativeSlack, w.Quiet, w.ChangesPerDay = w.RelativeSlack/days, quiet/days, w.ChangesPerDay/days
	w.RequestOverP95 = request / p95
	return w
}

// Print writes the line that scripts read.
func (w Words) Print(out io.Writer, o Outcome) {
	fmt.Fprintf(
		out, "set=%s policy=%s relative_slack=%.3f days_without_kill=%.4f request_over_p95=%.2f changes_per_day=%.3f\n",
		o.Set, o.Policy, w.RelativeSlack, w.Quiet, w.RequestOverP95, w.ChangesPerDay,
	)
}

// Usual is the P95 use of every series of a set, by time.
func Usual(set Set) []int64 {
	usual := make([]int64, len(set.Series))
	for i, s := range set.Series {
		usual[i] = s.quantile(0.95)
	}
	return usual
}

// quantile is the use that the share q of the time stayed at or below.
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
