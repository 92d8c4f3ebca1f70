// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"math"
	"time"

	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/memory"
)

// Intervals between readings of a container. Readings cost only the agent, whose cost the Governor bounds.
const (
	fastest = 250 * time.Millisecond // near the limit, and in the first ten seconds: 40 readings before a kill
	wary    = time.Second            // if usage may come near the limit within a minute
	quiet   = 2 * time.Second        // otherwise: detects a ramp of 100 MiB/s that begins with 60 % of 512Mi free
	// fullEvery is the interval of full readings far below the limit. fullWary is their interval if a container may come
	// near it: then every reading is full, except at [AlertInterval].
	fullEvery = 10 * time.Second
	fullWary  = wary - fastest
)

// Shares of the limit in use, without page cache, from which a container is read more often.
const (
	nearPercent = 85
	waryPercent = 60
)

// Times until usage reaches the limit at its current growth, below which a container is read more often.
const (
	nearTime = 5 * time.Second
	waryTime = time.Minute
)

// Urgency is how close to its limit a container is.
type Urgency int

// The urgencies, from far below the limit to close to it.
const (
	Quiet Urgency = iota
	Wary
	Near
)

// Urgency returns the urgency of the container by its usage and growth.
func (r *Recorder) Urgency(now time.Time) Urgency {
	if r.isNew && now.Sub(r.first) < growthWindow { // many are OOM-killed before their growth is known
		return Near
	}
	limit := min(r.last.Limit, r.podLimit)
	if limit == cgroup.Unlimited || limit <= 0 || r.lastFull.IsZero() {
		return Quiet
	}
	used := r.unreclaimable()
	left := r.timeLeft(limit.Minus(used), now)
	switch {
	case used >= limit.Percent(nearPercent) || left <= nearTime || r.last.UnderOOM:
		return Near
	case used >= limit.Percent(waryPercent) || left <= waryTime:
		return Wary
	}
	return Quiet
}

// unreclaimable returns the unreclaimable usage, assuming the page cache of the last full reading.
func (r *Recorder) unreclaimable() memory.Bytes { return r.Usage().Minus(r.last.File) }

// growthWindow is the period of growth that determines the interval. A longer period would include a completed start.
const growthWindow = 10 * time.Second

// timeLeft returns the time until usage has grown by free at the current growth.
func (r *Recorder) timeLeft(free memory.Bytes, now time.Time) time.Duration {
	g := growth(r.points(now, growthWindow))
	if g.PerSecond <= 0 {
		return math.MaxInt64
	}
	return time.Duration(float64(free) / float64(g.PerSecond) * float64(time.Second))
}

// Interval returns the time from a reading to the next, stretched by the Governor, and least near the limit.
func (g *Governor) Interval(u Urgency) time.Duration {
	interval, stretch := [...]time.Duration{Quiet: quiet, Wary: wary, Near: fastest}[u], g.Stretch()
	if u == Near {
		stretch = min(stretch, maxNearStretch)
	}
	return time.Duration(float64(interval) * stretch)
}

// Intervals of containers that may borrow memory, and bounds of such readings of a node per second. They are not
// stretched, because a late reading means a kill: a reading takes 10 to 20 us, so 110 take 0.2 % of a core.
const (
	// imminent is the interval if the limit may be reached within two seconds.
	imminent       = 50 * time.Millisecond
	imminentSecond = 220
	// alert is the interval otherwise: a burst of 400 MiB/s fills 512Mi in 1.3 s.
	alert       = 500 * time.Millisecond
	alertSecond = 110
)

// ImminentInterval returns the interval if this many containers are about to reach their limits.
func ImminentInterval(containers int) time.Duration {
	return every(imminent, containers, imminentSecond)
}

// AlertInterval returns the longest interval if this many containers may borrow memory.
func AlertInterval(containers int) time.Duration { return every(alert, containers, alertSecond) }

func every(least time.Duration, containers, perSecond int) time.Duration {
	return max(least, time.Duration(containers)*time.Second/time.Duration(perSecond))
}

// WantsFull reports whether the next reading should be full. Only a full reading shows how much usage is page cache.
func (r *Recorder) WantsFull(usage memory.Bytes, now time.Time) bool {
	limit := min(r.last.Limit, r.podLimit)
	since := now.Sub(r.lastFull)
	mayComeNear := limit != cgroup.Unlimited && usage.Minus(r.last.File) >= limit.Percent(waryPercent)
	return r.lastFull.IsZero() || since >= fullEvery || mayComeNear && since >= fullWary || r.Urgency(now) == Near
}

// Governor stretches intervals so that all readings together stay within a share of one core.
type Governor struct {
	stretch float64
}

const (
	corePercent    = 0.5 // of one core for readings; inspections may take as much
	maxStretch     = 8   // a container far below its limit is still read every 16 s
	maxNearStretch = 2   // a container near its limit is always read twice a second
	settle         = 0.3 // weight of a new figure in the moving average of stretch
)

// Spent records how much processor time readings took in an interval.
func (g *Governor) Spent(spent, elapsed time.Duration) {
	if elapsed <= 0 {
		return
	}
	wanted := g.Stretch() * float64(spent) / float64(elapsed) * 100 / corePercent
	g.stretch = min(max(g.Stretch()*(1-settle)+wanted*settle, 1), maxStretch)
}

// Stretch returns the factor for intervals, 1 or more.
func (g *Governor) Stretch() float64 { return max(g.stretch, 1) }

// Growth is a rise of usage that lasts until the last reading.
type Growth struct {
	PerSecond memory.Bytes
	For       time.Duration
}

const (
	// dipPercent is the share of its gain that usage may lose during growth, because a garbage collector returns some
	// memory. A larger loss is a sawtooth: growth then begins after it.
	dipPercent = 25
	minGrowth  = memory.MiB // the least reported growth, above noise of single pages
	// noiseShare: a rise at less than 1/noiseShare of the later rate is not growth. Stepwise growth has flat parts.
	noiseShare = 20
)

// growth returns the growth from the lowest point after which usage did not fall much, to the last point.
func growth(points []point) Growth {
	if len(points) < 2 {
		return Growth{}
	}
	last := points[len(points)-1]
	start := last
	for i := len(points) - 2; i >= 0; i-- {
		p := points[i]
		gained := last.usage.Minus(start.usage)
		if p.usage.Minus(start.usage) > max(gained.Percent(dipPercent), minGrowth/2) {
			break // usage fell from p to start
		}
		if p.usage < start.usage && partOfGrowth(p, start, last) {
			start = p
		}
	}
	took := last.at.Sub(start.at)
	if took <= 0 || last.usage-start.usage < minGrowth {
		return Growth{}
	}
	return Growth{memory.Bytes(float64(last.usage-start.usage) / took.Seconds()), took}
}

// partOfGrowth reports whether usage rose from p to start at a rate that is significant compared with the later rate. A
// slower rise is noise before the growth.
func partOfGrowth(p, start, last point) bool {
	before := float64(start.usage-p.usage) / start.at.Sub(p.at).Seconds()
	after := float64(last.usage-start.usage) / last.at.Sub(start.at).Seconds()
	return start == last || before >= after/noiseShare
}
