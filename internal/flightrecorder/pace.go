// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"math"
	"time"

	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/memory"
)

// How often a container is read. The kernel answers from counters, so that a reading costs the target nothing; what it
// costs the agent, the Governor bounds.
const (
	// fastest is while a container is near its limit, and in its first ten seconds: 40 readings before a kill.
	fastest = 250 * time.Millisecond
	// wary is while it may come near within a minute.
	wary = time.Second
	// quiet is the rest. A ramp of 100 MiB/s that begins with 60 % of 512Mi free is noticed before it is over.
	quiet = 2 * time.Second
	// fullEvery is how often more than the usage is read of a container far below its limit, and fullWary of one that may
	// come near: each reading but those of [Alert].
	fullEvery = 10 * time.Second
	fullWary  = wary - fastest
)

// Shares of the limit that cannot be reclaimed, from which on a container is read more often.
const (
	nearPercent = 85
	waryPercent = 60
)

// Times to the limit at the present growth, below which it is the same.
const (
	nearTime = 5 * time.Second
	waryTime = time.Minute
)

// Urgency is how close to its limit a container is.
type Urgency int

// From far below the limit to at the limit.
const (
	Quiet Urgency = iota
	Wary
	Near
)

// Urgency of the container now: by what it holds, and by how fast that grows.
func (r *Recorder) Urgency(now time.Time) Urgency {
	if r.isNew && now.Sub(r.first) < growthWindow { // many die at their start, and how fast they grow is not known yet
		return Near
	}
	limit := min(r.last.Limit, r.podLimit)
	if limit == cgroup.Unlimited || limit <= 0 || r.lastFull.IsZero() {
		return Quiet
	}
	held := r.held()
	left := r.timeLeft(limit.Minus(held), now)
	switch {
	case held >= limit.Percent(nearPercent) || left <= nearTime || r.last.UnderOOM:
		return Near
	case held >= limit.Percent(waryPercent) || left <= waryTime:
		return Wary
	}
	return Quiet
}

// held is what the kernel could not drop, as of now: the page cache of the last full reading is taken to be the same.
func (r *Recorder) held() memory.Bytes { return r.Usage().Minus(r.last.File) }

// growthWindow is how far back growth is looked for to decide how often to read. Longer, and a start that is over
// counts.
const growthWindow = 10 * time.Second

// timeLeft is when usage reaches the limit at the present growth.
func (r *Recorder) timeLeft(room memory.Bytes, now time.Time) time.Duration {
	g := growth(r.points(now, growthWindow))
	if g.PerSecond <= 0 {
		return math.MaxInt64
	}
	return time.Duration(float64(room) / float64(g.PerSecond) * float64(time.Second))
}

// Interval is how long after a reading the next one is due. Those near their limit give way last, and least.
func (g *Governor) Interval(u Urgency) time.Duration {
	interval, stretch := [...]time.Duration{Quiet: quiet, Wary: wary, Near: fastest}[u], g.Stretch()
	if u == Near {
		stretch = min(stretch, nearStretchMost)
	}
	return time.Duration(float64(interval) * stretch)
}

// How often a container is read that may be lent memory, and how many such readings a node takes in a second. They do
// not give way to others, because what is not seen in time is killed: a reading takes 10 to 20 us, so that 110 take
// 0.2 % of a core.
const (
	// hurried is while its limit may be reached within two seconds.
	hurried       = 50 * time.Millisecond
	hurriedSecond = 220
	// alert is the rest: a burst of 400 MiB/s fills 512Mi in 1.3 s. From 56 containers on, each is read less often.
	alert       = 500 * time.Millisecond
	alertSecond = 110
)

// Hurried is how long after a reading the next one is due of so many containers that are about to reach their limits.
func Hurried(containers int) time.Duration { return every(hurried, containers, hurriedSecond) }

// Alert is how long after a reading the next one is due at most of each of so many containers that may be lent memory.
func Alert(containers int) time.Duration { return every(alert, containers, alertSecond) }

func every(least time.Duration, containers, perSecond int) time.Duration {
	return max(least, time.Duration(containers)*time.Second/time.Duration(perSecond))
}

// WantsFull reports whether the reading that is due should be a full one. Usage near the limit may be page cache, which
// only a full reading shows.
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
	// corePercent is the share of one core that reading may take. As much is for inspecting processes.
	corePercent = 0.5
	// stretchMost: a container far below its limit is still read every 16 s.
	stretchMost = 8
	// nearStretchMost: of a container near its limit there are two readings a second, however many there are.
	nearStretchMost = 2
	// settle is how much of a new figure counts immediately; the remainder is history.
	settle = 0.3
)

// Spent takes note of the processor time that readings took in an interval.
func (g *Governor) Spent(spent, elapsed time.Duration) {
	if elapsed <= 0 {
		return
	}
	// what it would have been without stretching
	wanted := g.Stretch() * float64(spent) / float64(elapsed) * 100 / corePercent
	g.stretch = min(max(g.Stretch()*(1-settle)+wanted*settle, 1), stretchMost)
}

// Stretch is the factor for intervals, 1 or more.
func (g *Governor) Stretch() float64 { return max(g.stretch, 1) }
