// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// Policy sizes one container. It sees what a cluster would show it: use up to the effective limit, and kills.
type Policy interface {
	// Observe is one sample of use, below the effective limit.
	Observe(at time.Time, use, limit int64)
	// Killed is an OOM kill at the effective limit. What the container wanted beyond it stays unknown.
	Killed(at time.Time, limit int64)
	// Limit is the limit the policy wants now; 0: no opinion, the limit stays.
	Limit(at time.Time, limit int64) int64
}

// requester is a policy whose request is not the limit.
type requester interface {
	// Request is what it requests under the effective limit.
	Request(limit int64) int64
}

// The rules of the simulator, from the issue that ordered it.
const (
	firstHour     = 3600
	askEvery      = 3600
	smallestFirst = 64 << 20
	// leastChange is the smallest change that is applied, in percent of the effective limit.
	leastChange = 10
)

// Result is what one policy did on one series.
type Result struct {
	Series   string
	Kills    int
	Changes  int     // limits applied after the first
	Slack    float64 // integral of limit - demand, in byte seconds
	Demand   float64 // integral of demand, in byte seconds
	Request  float64 // integral of the request, in byte seconds
	Seconds  float64 // in which it was not killed
	Days     []day
	Limits   []int64 // the effective limit at every point; only when asked for
	KilledAt []int   // indices of points; only when asked for
}

// Ratio is slack per demand; 0 for a series that used nothing.
func (r Result) Ratio() float64 {
	if r.Demand == 0 {
		return 0
	}
	return r.Slack / r.Demand
}

// FirstLimit is what every policy starts with: 1.2 times the highest demand of the first hour, and at least 64 MiB.
func FirstLimit(points []Point) int64 {
	var peak int64
	for _, p := range points {
		if p.Unix-points[0].Unix > firstHour {
			break
		}
		peak = max(peak, p.Bytes)
	}
	return max(smallestFirst, peak*12/10)
}

// Simulate replays one series against one policy.
func Simulate(s Series, p Policy, keep bool) Result {
	r := Result{Series: s.Name}
	if len(s.Points) == 0 {
		return r
	}
	limit := FirstLimit(s.Points)
	if c, ok := p.(interface{ Start([]Point) int64 }); ok {
		limit = c.Start(s.Points) // the clairvoyant knows from the first sample on
	}
	asked := s.Points[0].Unix
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
			asked = point.Unix
			limit = r.apply(p.Limit(at, limit), limit)
			continue
		}
		r.hold(limit, request(p, limit), point.Bytes, point.Unix-s.Points[0].Unix, float64(duration(s.Points, i)))
		p.Observe(at, point.Bytes, limit)
		if point.Unix-asked >= askEvery {
			asked = point.Unix
			limit = r.apply(p.Limit(at, limit), limit)
		}
	}
	return r
}

func unixTime(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

// request is what a policy requests under the effective limit: the limit, unless it says otherwise.
func request(p Policy, limit int64) int64 {
	if r, ok := p.(requester); ok {
		return r.Request(limit)
	}
	return limit
}

// hold counts what is held and used from a point on, at so many seconds since the first, for so many seconds.
func (r *Result) hold(limit, request, use, since int64, seconds float64) {
	r.Slack += float64(limit-use) * seconds
	r.Demand += float64(use) * seconds
	r.Request += float64(request) * seconds
	r.Seconds += seconds
	d := r.day(since)
	d.Limit += float64(limit) * seconds
	d.Use += float64(use) * seconds
}

// apply changes the limit when the change is worth it.
func (r *Result) apply(want, limit int64) int64 {
	if want <= 0 || max(want, limit)-min(want, limit) < limit*leastChange/100 {
		return limit
	}
	r.Changes++
	return want
}

// duration is how many seconds point i stands for: until the next one, at most an hour, so that a hole in the trace
// does not count as use. The last point stands for as long as the one before it.
func duration(points []Point, i int) int64 {
	switch {
	case i+1 < len(points):
		return min(points[i+1].Unix-points[i].Unix, askEvery)
	case i > 0:
		return min(points[i].Unix-points[i-1].Unix, askEvery)
	}
	return 0
}
