// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// The thresholds of a stall. Each excludes another situation; docs/design/ledger.md shows how far each number can move
// on the recorded cases.
const (
	// stallAnonPercent is the least share of anonymous memory in the limit: a database or a reader of big files, with
	// mostly page cache, is healthy at its limit. Stalls were seen at 91 and 92 %.
	stallAnonPercent = 85
	// stallUsagePercent is the least usage: below, the kernel drops no pages, so reads from disk are first reads. Reclaim
	// keeps usage within 1 % below the limit, and within 2 % of memory.high if the kubelet sets it.
	stallUsagePercent = 95
	// stallFaults is the least rate of major faults per second. A stall has hundreds on an idle disk, and 7 to 14 on a
	// busy one, where each took 60 to 100 ms. A healthy container has at most one in ten seconds, also at its limit and
	// while it reads files; see the recordings.
	stallFaults = 3
	// stallTimesKnown: the rate is this many times the instance's highest rate away from its limit.
	stallTimesKnown = 3
	// stallPressure is the percentage of time in which all tasks waited (PSI memory full) that shows a stall even without
	// faults.
	stallPressure = 10
	// stallTime and stallIntervals are the least length of a stall. A burst of faults, for example when a library is
	// loaded, is shorter.
	stallTime      = time.Minute
	stallIntervals = 3
	// stallStart is how long a starting process loads its program and data.
	stallStart = 2 * time.Minute
	// stallOver and stallOverIntervals: a stall has ended when no interval has shown it for this long.
	stallOver          = time.Minute
	stallOverIntervals = 2
	// stallVerify is how long after a raise faults may continue before the raise is reported as ineffective.
	stallVerify = 5 * time.Minute
	// stallGap is the longest time between two samples that are compared.
	stallGap = 5 * time.Minute
	// averageSpan is the period of the kernel's avg300.
	averageSpan = 5 * time.Minute
	// minFaultBytes is the least memory that one major fault reads; most read more, because of readahead.
	minFaultBytes = 4 * memory.KiB
)

// StallWatch finds a stall in the samples of one container. The zero value is ready. Each running container has one; it
// takes about 100 bytes, and 250 more for a stall.
type StallWatch struct {
	last stallSample
	// known is the highest rate of major faults per second away from the limit, over the duration of a stall.
	known float32
	away  away
	// run is a series of intervals with the same result for the phase: a stall, its end, or an ineffective raise; nil:
	// none.
	run   *run
	stall *memory.Stall // the last stall
	phase phase
	// raised is the time of the first sample with the higher limit.
	raised memory.Instant
}

// away is a period away from the limit, not yet in known. A single interval is not enough: memory pressure on the node
// also makes the kernel drop page cache, which is read back at the rate of a stall.
type away struct {
	seconds, faults float32
	n               int32 // intervals
}

// learn updates the usual rate of faults of this instance.
func (w *StallWatch) learn(i interval) {
	if i.full() {
		w.away = away{}
		return
	}
	w.away = away{w.away.seconds + float32(i.lasted().Seconds()), w.away.faults + float32(i.faults()), w.away.n + 1}
	if a := w.away; a.seconds >= float32(stallTime.Seconds()) && a.n >= stallIntervals {
		w.known, w.away = max(w.known, a.faults/a.seconds), away{}
	}
}

type phase uint8

const (
	calm      phase = iota // no stall; stall is the last one, if any
	stalled                // stall continues
	relieving              // the limit was raised; the stall may continue
)

// Resume continues a recorded stall without a known end, after a restart of memfit.
func (w *StallWatch) Resume(s memory.Stall) {
	if !w.last.at.IsZero() || !s.Ended.IsZero() {
		return
	}
	if w.stall, w.phase = &s, stalled; s.RaisedTo > 0 {
		w.phase = relieving
	}
}

// Stall returns the current or the last stall; ok is false if there was none.
func (w *StallWatch) Stall() (s memory.Stall, ok bool) {
	if w.stall == nil {
		return memory.Stall{}, false
	}
	return *w.stall, true
}

// Report adds the agent's report, and returns whether it changed [StallWatch.Stall]. The agent reads a container at its
// limit several times a second, and detects a stall earlier than samples. Samples decide about its end and the effect
// of a raise; without fault counts, the agent reports the end. The same report may be added repeatedly.
func (w *StallWatch) Report(a AgentStall, bounds StallBounds, now time.Time) bool {
	started := a.Started.UTC()
	switch {
	case w.phase != calm:
		return w.last.blind() && !a.Ended.IsZero() && started.Equal(w.stall.Since) && w.end(a.Ended)
	case !a.Ended.IsZero() || a.Limit == 0 ||
		a.Limit.Minus(bounds.Limit)+bounds.Limit.Minus(a.Limit) > memory.CgroupRounding:
		return false // the stall is over, or began before the limit changed
	case w.last.at.IsZero() || started.Before(w.last.started.Time()) || started.After(now.Add(ahead)):
		return false // the stall was in an instance that ended
	case w.stall != nil && !started.After(w.stall.Ended):
		return false // already recorded
	}
	usage := bounds.Limit
	if a.High > 0 {
		usage = a.High
	}
	w.stall = &memory.Stall{
		Container: a.Container, Limit: bounds.Limit, Since: started, Known: now, Anon: a.Anon, Usage: usage,
		Faults: a.Faults, PressurePercent: a.PressurePercent,
	}
	w.phase, w.run = stalled, nil
	return true
}

// StallBounds are the bounds of a container's memory, in bytes. 0: no bound.
type StallBounds struct {
	// Limit is the effective limit.
	Limit memory.Bytes
	// High is memory.high, or its value if the node enables it (see [Observation.High]).
	High memory.Bytes
}

// Add adds one sample under these bounds, and reports whether it changed [StallWatch.Stall]. It skips late and repeated
// samples.
func (w *StallWatch) Add(sample memory.Sample, bounds StallBounds) bool {
	s, before := stallSampleOf(sample), w.last
	if s.at <= before.at {
		return false
	}
	w.last = s
	seen := !before.at.IsZero()
	another := seen && (!before.started.IsZero() && s.started > before.started || s.faults < before.faults)
	changed := w.noteLimit(s, bounds.Limit, another)
	starting := !s.started.IsZero() && before.at.Sub(s.started) < stallStart
	if !seen || another || starting || s.at.Sub(before.at) > stallGap {
		w.run, w.away = nil, away{}
		return changed
	}
	i := interval{before, s, bounds}
	if w.phase == calm {
		w.learn(i)
	}
	what := w.about(i)
	if w.phase == calm && what != stallSignal {
		w.run = nil
		return changed
	}
	if w.run == nil {
		w.run = &run{}
	}
	w.run.add(what, i)
	return w.conclude(i, sample.Container) || changed
}

// noteLimit records events that may end a stall: a higher limit, or another process.
func (w *StallWatch) noteLimit(s stallSample, limit memory.Bytes, another bool) (changed bool) {
	switch {
	case w.phase == calm:
		if another {
			w.known = 0
		}
	case limit > w.stall.Limit && limit != w.stall.RaisedTo:
		w.phase, w.raised, w.run, w.stall.RaisedTo = relieving, s.at, nil, limit
		return true
	case w.phase == stalled && another:
		return w.end(s.at.Time())
	case w.phase == relieving && (another || w.raised.IsZero()): // also a process that was restarted for the raise
		w.raised = s.at
	}
	return false
}

// about returns what an interval shows in this phase.
func (w *StallWatch) about(i interval) signal {
	waits := i.rate() >= max(stallFaults, stallTimesKnown*float64(w.known)) || i.pressure() >= stallPressure
	switch {
	case w.phase != calm && i.to.blind():
		return noSignal
	case w.phase == stalled && i.full() && !w.below(i): // half of its rate is enough: the speed of disks varies
		return stallSignal
	case w.phase != stalled && i.full() && waits:
		return stallSignal
	case w.phase != relieving || w.below(i):
		return calmSignal
	case i.readsBack(), i.rate() < stallFaults: // or it waits without reading
		return ineffectiveSignal
	}
	return noSignal // it reads pages that fit the higher limit
}

// below reports whether less than half of the stall's rate is left.
func (w *StallWatch) below(i interval) bool {
	return i.rate() <= float64(w.stall.Faults)/2 &&
		i.pressure() <= max(float64(w.stall.PressurePercent), stallPressure)/2
}

// conclude changes the phase when a run is long enough.
func (w *StallWatch) conclude(i interval, c memory.ContainerRef) (changed bool) {
	r := w.run
	switch {
	case r.signal == stallSignal && w.phase != stalled && r.atLeast(stallTime, stallIntervals):
		w.begin(i, c)
		return true
	case r.signal == calmSignal && w.phase != calm && r.atLeast(stallOver, stallOverIntervals):
		w.stall.FaultsAfter = r.rate()
		return w.end(r.since.Time())
	case r.signal == ineffectiveSignal && r.atLeast(stallTime, stallIntervals) && i.to.at.Sub(w.raised) >= stallVerify:
		w.stall.FaultsAfter, w.stall.NotRelieved = r.rate(), true
		return w.end(i.to.at.Time())
	}
	return false
}

func (w *StallWatch) begin(i interval, c memory.ContainerRef) {
	w.stall = &memory.Stall{
		Container: c, Limit: i.bounds.Limit, Since: w.run.since.Time(), Known: i.to.at.Time(), Anon: i.to.rss,
		Usage:  i.to.usage,
		Faults: w.run.rate(), PressurePercent: int32(100*w.run.waited/w.run.lasted.Seconds() + 0.5),
	}
	w.phase = stalled
}

func (w *StallWatch) end(at time.Time) bool {
	w.stall.Ended, w.phase, w.run = at, calm, nil
	return true
}
