// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// Sample is one reading of a container.
type Sample struct {
	At     time.Time
	Demand memory.Bytes
	Limit  memory.Bytes // the effective limit of the container; 0: none
}

// Prediction is the prediction for a growing container.
type Prediction struct {
	Sample
	PerSecond memory.Bytes  // the growth of demand; 0: none
	Left      time.Duration // the time until the limit is reached
}

const (
	// kept is the number of samples: a minute at the slowest interval near a limit, and 3 s at the fastest.
	kept = 64
	// longSpan is the time for growth: ten readings at the fastest interval, so that an allocator's step is not a ramp.
	longSpan = 500 * time.Millisecond
	// shortIntervals of similar growth suffice earlier: a ramp of 400 MiB/s fills 512Mi in 1.3 s.
	shortIntervals = 3
	// maxSpan is the longest period for slow growth.
	maxSpan = 10 * time.Second
	// minGain is the least growth, above noise of single pages.
	minGain = memory.MiB
	// The kernel charges memory in batches of up to 256 KiB for each processor, so the last maxReserve of a limit, or
	// 1/reserveShare of a small one, cannot be used.
	maxReserve   = 2 * memory.MiB
	reserveShare = 64
)

// Watch follows one instance of a container, and raises one alarm for each need. Its zero value is ready.
type Watch struct {
	ring  [kept]reading
	next  int // index of the next
	count int
	grows memory.Bytes // the growth that the ring shows, if known
	known bool
	turns turns
	last  Prediction // the last alarm, or zero
}

type reading struct {
	at     memory.Instant
	demand memory.Bytes
}

// Add takes a sample that is not older than the previous one. A sample of the same time replaces it.
func (w *Watch) Add(s Sample) {
	at := memory.InstantOf(s.At)
	if w.count > 0 {
		switch newest := w.back(0).at; {
		case at < newest:
			return
		case at == newest:
			w.next, w.count = (w.next-1+kept)%kept, w.count-1
		}
	}
	w.ring[w.next] = reading{at, s.Demand}
	w.next, w.count, w.known = (w.next+1)%kept, min(w.count+1, kept), false
	w.turns.add(at, s.Demand, s.Limit)
}

// Killed drops samples, because a kill would appear as returned memory.
func (w *Watch) Killed() { w.turns, w.count, w.known = turns{}, 0, false }

// back returns the i-th reading before the newest one.
func (w *Watch) back(i int) reading { return w.ring[(w.next-1-i+2*kept)%kept] }

// Predict returns the prediction if the container keeps growing. limit is the effective one; 0: none.
func (w *Watch) Predict(limit memory.Bytes) Prediction {
	if w.count == 0 {
		return Prediction{Left: never}
	}
	now := w.back(0)
	p := Prediction{Sample: Sample{now.at.Time(), now.demand, limit}, Left: never}
	if p.PerSecond = w.growth(); p.PerSecond > 0 && limit > 0 {
		p.Left = timeTo(limit.Minus(now.demand), p.PerSecond)
	}
	return p
}

// Due returns the prediction, and reports whether an alarm is due: the limit is reached within the horizon, and there
// was no alarm yet, or the limit or the expected kill has changed much since. ceiling is the maximum need of the
// container's runtime; 0: unknown.
func (w *Watch) Due(limit, ceiling memory.Bytes, horizon time.Duration) (Prediction, bool) {
	if !w.near(limit) {
		return Prediction{Left: never}, false
	}
	p := w.Predict(limit)
	fits := 0 < ceiling && ceiling <= limit && p.Demand <= ceiling
	return p, p.within(horizon) && !fits && !w.turns.turned(&p) && !w.raised(&p)
}

func (w *Watch) near(limit memory.Bytes) bool { return w.count > 0 && Near(w.back(0).demand, limit) }

// Soon reports whether the limit may be reached within a time: by the growth in [Watch.Due], or by the growth in the
// last interval, which may be a step. It determines the interval of readings.
func (w *Watch) Soon(limit memory.Bytes, within time.Duration) bool {
	var gained memory.Bytes // in the last interval
	if w.count > 1 {
		gained = w.back(0).demand.Minus(w.back(1).demand)
	}
	if limit <= 0 || gained < minGain && !w.near(limit) {
		return false
	}
	p := w.Predict(limit)
	if gained >= minGain {
		p.PerSecond = max(p.PerSecond, w.back(0).perSecond(w.back(1)))
	}
	return p.within(within)
}

// Raise records a sent alarm.
func (w *Watch) Raise(p Prediction) { w.last = p }

// Forget makes the last alarm due again after alarmEvery, because it could not be sent.
func (w *Watch) Forget() { w.last.Limit = 0 }

// within reports whether the limit is reached within the horizon.
func (p *Prediction) within(horizon time.Duration) bool {
	if p.PerSecond <= 0 {
		return false
	}
	left := p.Limit.Minus(p.Demand).Minus(min(maxReserve, p.Limit/reserveShare))
	return timeTo(left, p.PerSecond) <= horizon
}

const (
	// alarmEvery is the least time between two alarms of a container.
	alarmEvery = time.Second
	// needEnds is how long after the expected kill an alarm counts as a new need, because growth had stopped.
	needEnds = 10 * time.Second
)

// raised reports whether an alarm would repeat the last one.
func (w *Watch) raised(p *Prediction) bool {
	last := &w.last
	since := p.At.Sub(last.At)
	if last.At.IsZero() || since < 0 { // or the node's clock was set back
		return false
	}
	expected, now := last.At.Add(last.Left), p.At.Add(p.Left)
	switch {
	case since < alarmEvery:
		return true
	case p.Limit != last.Limit || p.At.Sub(expected) > needEnds:
		return false
	}
	return !now.Before(expected.Add(-last.Left / 2)) // a kill in half the time is a new prediction
}

// growth returns the growth per second that the readings show; 0: none. [Watch.Due] and [Watch.Soon] ask for the same.
func (w *Watch) growth() memory.Bytes {
	if !w.known {
		w.grows, w.known = max(w.steady(), w.long()), true
	}
	return w.grows
}

// long returns the growth over longSpan, or over a longer period if there was little, since the last fall.
func (w *Watch) long() memory.Bytes {
	now := w.back(0)
	for i := 1; i < w.count; i++ {
		r := w.back(i)
		took := now.at.Sub(r.at)
		switch {
		case took > maxSpan && i > 1:
			return 0
		case took >= longSpan && now.demand.Minus(r.demand) >= minGain:
			return now.perSecond(r)
		case r.demand.Minus(now.demand) >= minGain:
			return 0
		}
	}
	return 0
}

// steady returns the growth over the last shortIntervals, if each has at least half of the mean.
func (w *Watch) steady() memory.Bytes {
	if w.count <= shortIntervals {
		return 0
	}
	now, first := w.back(0), w.back(shortIntervals)
	rate := now.perSecond(first)
	if now.demand.Minus(first.demand) < minGain {
		return 0
	}
	for i := range shortIntervals {
		if w.back(i).perSecond(w.back(i+1)) < rate/2 {
			return 0
		}
	}
	return rate
}

// perSecond returns the growth since an earlier reading; 0: none.
func (r reading) perSecond(since reading) memory.Bytes {
	gained, took := r.demand.Minus(since.demand), r.at.Sub(since.at)
	if took <= 0 {
		return 0
	}
	return memory.Bytes(min(float64(gained)/took.Seconds(), float64(memory.Max/2)))
}
