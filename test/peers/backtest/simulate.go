// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// Policy sizes one container. It gets what a cluster reports: use up to the effective limit, and kills.
type Policy interface {
	// Observe reports a sample of use, at most the effective limit.
	Observe(at time.Time, use, limit int64)
	// Killed reports an OOM kill at the effective limit. The demand above the limit is unknown.
	Killed(at time.Time, limit int64)
	// Limit returns the recommended limit; 0: unchanged.
	Limit(at time.Time, limit int64) int64
}

// requester is a policy whose request is not the limit.
type requester interface {
	// Request returns the request under the effective limit.
	Request(limit int64) int64
}

// The rules of the simulator; times are in seconds.
const (
	firstHour     = 3600
	decideEvery   = 3600
	minFirstLimit = 64 << 20
	// minChangePercent is the smallest change that is applied, in percent of the effective limit.
	minChangePercent = 10
)

// Result is the result of one policy on one series.
type Result struct {
	Series   string
	Kills    int
	Changes  int     // limits applied after the first
	Slack    float64 // integral of limit - demand, in byte seconds
	Demand   float64 // integral of demand, in byte seconds
	Request  float64 // integral of the request, in byte seconds
	Seconds  float64 // of the points without a kill
	Days     []day
	Limits   []int64 // the effective limit at every point; only with keep
	KilledAt []int   // indices of points; only with keep
}

// Ratio returns slack per demand; 0 for a series without any use.
func (r Result) Ratio() float64 {
	if r.Demand == 0 {
		return 0
	}
	return r.Slack / r.Demand
}

// FirstLimit returns every policy's first limit: 1.2 times the highest demand of the first hour, and at least 64 MiB.
func FirstLimit(points []Point) int64 {
	var peak int64
	for _, p := range points {
		if p.Unix-points[0].Unix > firstHour {
			break
		}
		peak = max(peak, p.Bytes)
	}
	return max(minFirstLimit, peak*12/10)
}

// Simulate replays one series against one policy. With keep, the result has all limits and kills.
func Simulate(s Series, p Policy, keep bool) Result {
	r := Result{Series: s.Name}
	if len(s.Points) == 0 {
		return r
	}
	limit := FirstLimit(s.Points)
	if c, ok := p.(interface{ Start([]Point) int64 }); ok {
		limit = c.Start(s.Points) // of the clairvoyant
	}
	decided := s.Points[0].Unix
	for i, point := range s.Points {
		at := unixTime(point.Unix)
		if keep {
			r.Limits = append(r.Limits, limit)
		}
		if point.Bytes > limit {
			r.Kills++
			r.day(point.Unix-s.Points[0].Unix).Kills++
			if keep {
				r.KilledAt = append(r.KilledAt, i)
			}
			p.Killed(at, limit)
			decided = point.Unix
			limit = r.apply(p.Limit(at, limit), limit)
			continue
		}
		r.hold(limit, request(p, limit), point.Bytes, point.Unix-s.Points[0].Unix, float64(duration(s.Points, i)))
		p.Observe(at, point.Bytes, limit)
		if point.Unix-decided >= decideEvery {
			decided = point.Unix
			limit = r.apply(p.Limit(at, limit), limit)
		}
	}
	return r
}

func unixTime(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

// request returns a policy's request under the effective limit: the limit, unless the policy is a [requester].
func request(p Policy, limit int64) int64 {
	if r, ok := p.(requester); ok {
		return r.Request(limit)
	}
	return limit
}

// hold adds a point to the integrals: since seconds after the first point, for a duration in seconds.
func (r *Result) hold(limit, request, use, since int64, seconds float64) {
	r.Slack += float64(limit-use) * seconds
	r.Demand += float64(use) * seconds
	r.Request += float64(request) * seconds
	r.Seconds += seconds
	d := r.day(since)
	d.Limit += float64(limit) * seconds
	d.Use += float64(use) * seconds
}

// apply returns the new limit: want, if it is a change of at least minChangePercent.
func (r *Result) apply(want, limit int64) int64 {
	if want <= 0 || max(want, limit)-min(want, limit) < limit*minChangePercent/100 {
		return limit
	}
	r.Changes++
	return want
}

// duration returns the seconds from point i to the next, at most an hour, so that a gap in the trace does not count as
// use. The last point has the duration of the previous one.
func duration(points []Point, i int) int64 {
	switch {
	case i+1 < len(points):
		return min(points[i+1].Unix-points[i].Unix, decideEvery)
	case i > 0:
		return min(points[i].Unix-points[i-1].Unix, decideEvery)
	}
	return 0
}
