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
	// Limit is the effective limit of the container; 0: none.
	Limit memory.Bytes
}

// Prediction is what a container that keeps growing comes to.
type Prediction struct {
	Sample

	// PerSecond is how much demand grows; 0: it does not.
	PerSecond memory.Bytes
	// Left is how long until the limit is reached.
	Left time.Duration
}

const (
	// kept samples are a minute at the slowest interval near a limit, and 3 s at the fastest.
	kept = 64
	// longSpan is the time over which growth is computed: ten readings at the fastest interval, so that one step of an
	// allocator (64 MiB arenas, slabs of a database) does not look like a ramp.
	longSpan = 500 * time.Millisecond
	// shortIntervals is how many intervals in a row must grow alike to be growth before longSpan has passed. A ramp of
	// 400 MiB/s takes 512Mi in 1.3 s, and half a second of it is a third of that.
	shortIntervals = 3
	// spanMost is how far back slow growth is looked for.
	spanMost = 10 * time.Second
	// gainLeast is growth at all. Single pages come and go.
	gainLeast = memory.MiB
	// The kernel charges memory in batches of up to 256 KiB for each processor, so the last reserveMost of a limit, or
	// 1/reserveShare of a small one, are not there to grow into.
	reserveMost  = 2 * memory.MiB
	reserveShare = 64
)

// Watch follows one instance of a container and raises an alarm once for each time that it is needed. Its zero value is
// ready. It takes about 2 KiB.
type Watch struct {
	ring  [kept]reading
	next  int // where the next one goes
	count int
	turns turns
	// last is the last alarm, zero if there was none.
	last Prediction
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
	w.next, w.count = (w.next+1)%kept, min(w.count+1, kept)
	w.turns.add(at, s.Demand, s.Limit)
}

// Killed forgets what a kill made look like memory that was given back.
func (w *Watch) Killed() { w.turns, w.count = turns{}, 0 }

// back is the reading so many before the newest one.
func (w *Watch) back(i int) reading { return w.ring[(w.next-1-i+2*kept)%kept] }

// Predict returns what the container comes to if it keeps growing. limit is the effective one; 0: none.
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

// Due returns the prediction, and reports whether an alarm is due: the limit is reached within the horizon, and that
// was not raised yet, or the limit or the expected kill has changed much since. ceiling is what the container needs at
// most by what is known of its runtime; 0: nothing is.
func (w *Watch) Due(limit, ceiling memory.Bytes, horizon time.Duration) (Prediction, bool) {
	if !w.near(limit) {
		return Prediction{Left: never}, false
	}
	p := w.Predict(limit)
	fits := 0 < ceiling && ceiling <= limit && p.Demand <= ceiling
	return p, p.within(horizon) && !fits && !w.turns.turned(&p) && !w.raised(&p)
}

func (w *Watch) near(limit memory.Bytes) bool { return w.count > 0 && Near(w.back(0).demand, limit) }

// Soon reports whether the limit may be reached within a time: by the growth that [Watch.Due] uses, or by that of the
// last interval alone, which may be a step. It decides how often to read.
func (w *Watch) Soon(limit memory.Bytes, within time.Duration) bool {
	var gained memory.Bytes // in the last interval
	if w.count > 1 {
		gained = w.back(0).demand.Minus(w.back(1).demand)
	}
	if limit <= 0 || gained < gainLeast && !w.near(limit) {
		return false
	}
	p := w.Predict(limit)
	if gained >= gainLeast {
		p.PerSecond = max(p.PerSecond, perSecond(gained, w.back(0).at.Sub(w.back(1).at)))
	}
	return p.within(within)
}

// Raise takes note of an alarm that is sent.
func (w *Watch) Raise(p Prediction) { w.last = p }

// Forget makes the last alarm one that is due again after alarmEvery: it could not be sent.
func (w *Watch) Forget() { w.last.Limit = 0 }

// within reports whether the limit is reached within the horizon.
func (p *Prediction) within(horizon time.Duration) bool {
	if p.PerSecond <= 0 {
		return false
	}
	room := p.Limit.Minus(p.Demand).Minus(min(reserveMost, p.Limit/reserveShare))
	return timeTo(room, p.PerSecond) <= horizon
}

const (
	// alarmEvery is the least time between two alarms of a container.
	alarmEvery = time.Second
	// needEnds is how long after the expected kill an alarm is about a new need: growth had stopped.
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
	return !now.Before(expected.Add(-last.Left / 2)) // a kill that comes in half the time is another prediction
}

// growth returns how much demand grows in a second: over longSpan or, if that is less than gainLeast, over as long as
// that takes, or over the last few intervals if they are alike, whichever is more.
func (w *Watch) growth() memory.Bytes {
	return max(w.steady(), w.long())
}

// long is the growth over longSpan, or over a longer time if there was little. What came before a fall does not count.
func (w *Watch) long() memory.Bytes {
	now := w.back(0)
	for i := 1; i < w.count; i++ {
		r := w.back(i)
		took := now.at.Sub(r.at)
		gained := now.demand.Minus(r.demand)
		switch {
		case took > spanMost && i > 1:
			return 0
		case took >= longSpan && gained >= gainLeast:
			return perSecond(gained, took)
		case r.demand.Minus(now.demand) >= gainLeast:
			return 0
		}
	}
	return 0
}

// steady is the growth over the last shortIntervals, if each of them has at least half of the mean.
func (w *Watch) steady() memory.Bytes {
	if w.count <= shortIntervals {
		return 0
	}
	now, first := w.back(0), w.back(shortIntervals)
	rate := perSecond(now.demand.Minus(first.demand), now.at.Sub(first.at))
	if now.demand.Minus(first.demand) < gainLeast {
		return 0
	}
	for i := range shortIntervals {
		to, from := w.back(i), w.back(i+1)
		if perSecond(to.demand.Minus(from.demand), to.at.Sub(from.at)) < rate/2 {
			return 0
		}
	}
	return rate
}

func perSecond(gained memory.Bytes, took time.Duration) memory.Bytes {
	if took <= 0 {
		return 0
	}
	return memory.Bytes(min(float64(gained)/took.Seconds(), float64(memory.Max/2)))
}
