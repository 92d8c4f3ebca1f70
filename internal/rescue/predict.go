// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// Sample is one reading of a container's memory.
type Sample struct {
	At     time.Time
	Demand memory.Bytes
	Limit  memory.Bytes // the effective limit of the container; 0: none
}

// Prediction is a sample with the expected time until the limit is reached.
type Prediction struct {
	Sample
	PerSecond memory.Bytes  // the growth of demand; 0: none
	Left      time.Duration // the time until the limit is reached
}

const (
	// ringSize is the number of stored readings: a minute at the slowest interval near a limit, and 3 s at the fastest.
	ringSize = 64
	// longSpan is the least period of growth: ten readings at the fastest interval, so that an allocator's step does not
	// count as growth.
	longSpan = 500 * time.Millisecond
	// shortIntervals is the number of intervals that suffice if their growth is similar: at 400 MiB/s, 512Mi are full in
	// 1.3 s.
	shortIntervals = 3
	// maxSpan is the longest period of growth.
	maxSpan = 10 * time.Second
	// minGain is the least growth in a period, above noise of single pages.
	minGain = memory.MiB
	// maxReserve and reserveShare are the unusable end of a limit: 1/reserveShare, at most maxReserve. The kernel charges
	// memory in batches of up to 256 KiB for each processor.
	maxReserve   = 2 * memory.MiB
	reserveShare = 64
)

// Watch follows one instance of a container, and determines when to send an alarm: once for each need. Its zero value
// is ready.
type Watch struct {
	ring  [ringSize]reading
	next  int          // the index of the next reading
	count int          // the number of readings
	grows memory.Bytes // the growth per second that the ring shows, if known is true
	known bool
	turns turns
	last  Prediction // the last alarm; zero: none
}

type reading struct {
	at     memory.Instant
	demand memory.Bytes
}

// Add adds a sample. It ignores one older than the previous sample, and replaces a sample of the same time.
func (w *Watch) Add(s Sample) {
	at := memory.InstantOf(s.At)
	if w.count > 0 {
		switch newest := w.back(0).at; {
		case at < newest:
			return
		case at == newest:
			w.next, w.count = (w.next-1+ringSize)%ringSize, w.count-1
		}
	}
	w.ring[w.next] = reading{at, s.Demand}
	w.next, w.count, w.known = (w.next+1)%ringSize, min(w.count+1, ringSize), false
	w.turns.add(at, s.Demand, s.Limit)
}

// Killed drops all samples after an OOM kill, because it would look as if demand fell by itself.
func (w *Watch) Killed() { w.turns, w.count, w.known = turns{}, 0, false }

// back returns the i-th reading before the newest one.
func (w *Watch) back(i int) reading { return w.ring[(w.next-1-i+2*ringSize)%ringSize] }

// Predict returns when the limit is reached if growth continues. limit is the effective limit; 0: none.
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

// Due returns the prediction, and reports whether an alarm is due: the limit is reached within the horizon, demand is
// not expected to fall by itself, and the alarm would not repeat the last one. ceiling is the most memory that the
// container's runtime uses by its settings; 0: unknown.
func (w *Watch) Due(limit, ceiling memory.Bytes, horizon time.Duration) (Prediction, bool) {
	if !w.near(limit) {
		return Prediction{Left: never}, false
	}
	p := w.Predict(limit)
	fits := 0 < ceiling && ceiling <= limit && p.Demand <= ceiling
	return p, p.within(horizon) && !fits && !w.turns.turned(&p) && !w.repeats(&p)
}

func (w *Watch) near(limit memory.Bytes) bool { return w.count > 0 && Near(w.back(0).demand, limit) }

// MayReach reports whether the limit may be reached within a time, so that the agent reads the container more often.
// Unlike [Watch.Due], it also uses the growth in the last interval, which may be a single step.
func (w *Watch) MayReach(limit memory.Bytes, within time.Duration) bool {
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

// Forget makes the last alarm due again after alarmEvery. Call it if the alarm could not be sent.
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
	// alarmEvery is the least time between two alarms for a container.
	alarmEvery = time.Second
	// needEnds is the time after an expected kill from which an alarm is for a new need.
	needEnds = 10 * time.Second
)

// repeats reports whether an alarm would repeat the last one.
func (w *Watch) repeats(p *Prediction) bool {
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
	return !now.Before(expected.Add(-last.Left / 2)) // an alarm is new if the kill is expected in half the time
}

// growth returns the growth per second that the readings show; 0: none. It stores the result for the next call.
func (w *Watch) growth() memory.Bytes {
	if !w.known {
		w.grows, w.known = max(w.steadyGrowth(), w.longGrowth()), true
	}
	return w.grows
}

// longGrowth returns the growth per second over the shortest period of at least longSpan with minGain; 0: none within
// maxSpan and since the last fall of demand.
func (w *Watch) longGrowth() memory.Bytes {
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

// steadyGrowth returns the growth per second over the last shortIntervals if each has at least half of the mean; 0:
// none.
func (w *Watch) steadyGrowth() memory.Bytes {
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

// perSecond returns the growth per second since an earlier reading; 0: none.
func (r reading) perSecond(since reading) memory.Bytes {
	gained, took := r.demand.Minus(since.demand), r.at.Sub(since.at)
	if took <= 0 {
		return 0
	}
	return memory.Bytes(min(float64(gained)/took.Seconds(), float64(memory.Max/2)))
}
