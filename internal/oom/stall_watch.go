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
	// stallAnonPercent of the limit is anonymous memory: a database or a reader of big files, whose memory is mostly
	// page cache, is at its limit all day and well. What stalls was seen at 91 and 92 %.
	stallAnonPercent = 85
	// stallUsagePercent of the limit is used at all: below, the kernel does not have to drop anything, so what is read
	// from the disk is read for the first time. Reclaim keeps usage within 1 % below the limit, and at memory.high,
	// where the kubelet sets it, within 2 % of that.
	stallUsagePercent = 95
	// stallFaults a second is the least rate of major faults. What stalls has hundreds on an idle disk, and 7 to 14 on
	// a busy one, where each took 60 to 100 ms: it is the disk that bounds it. What is well has one in ten seconds at
	// most, also at its limit and while it reads files; see the recordings.
	stallFaults = 3
	// stallTimesKnown: the rate is so many times the highest that this instance had away from its limit.
	stallTimesKnown = 3
	// stallPressure is the percentage of time in which no task could go on (PSI memory full) that is as good evidence,
	// without counting faults.
	stallPressure = 10
	// stallTime and stallIntervals: a burst of faults, for example when a library is loaded, is over before that.
	stallTime      = time.Minute
	stallIntervals = 3
	// stallStart is how long a process that starts reads its program and its data in.
	stallStart = 2 * time.Minute
	// stallOver and stallOverIntervals: it is over when it has not been seen for so long.
	stallOver          = time.Minute
	stallOverIntervals = 2
	// stallVerify is how long after a raise the faults may go on before the raise is reported as ineffective.
	stallVerify = 5 * time.Minute
	// stallGap is the longest time between two samples from which something follows for the time in between.
	stallGap = 5 * time.Minute
	// averageSpan is that of the kernel's avg300.
	averageSpan = 5 * time.Minute
	// leastPage is the least that one major fault reads: most read more, because the kernel reads ahead.
	leastPage = 4 * memory.KiB
)

// StallWatch looks for a stall in the samples of one container. The zero value is ready. There is one for each running
// container: it takes some 100 bytes, and a stall 250 more.
type StallWatch struct {
	last stallSample
	// known is the highest rate of major faults, a second, of a time away from the limit that lasted as a stall must.
	known float32
	away  away
	// run is the time in which every interval had the same result for the phase: that there is a stall, that it is over,
	// or that a raise did not help. Nil where that leads to nothing: while nothing stalls.
	run   *run
	stall *memory.Stall // the last one
	phase phase
	// raised is when the higher limit was first seen.
	raised memory.Instant
}

// away is a time away from the limit of which known does not tell yet. A single interval is none: where others on the
// node need memory, the kernel drops page cache of what stalls, which reads it back at the rate of a stall.
type away struct {
	seconds, faults float32
	n               int32 // intervals
}

// learn takes note of how many faults are usual for this instance.
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
	calm      phase = iota // nothing is wrong; stall is the last one, if there was one
	stalled                // stall goes on
	relieving              // stall goes on, or not: its limit was raised
)

// Resume continues with a stall that is on file and goes on as far as anybody knows, after a restart of memfit.
func (w *StallWatch) Resume(s memory.Stall) {
	if !w.last.at.IsZero() || !s.Ended.IsZero() {
		return
	}
	if w.stall, w.phase = &s, stalled; s.RaisedTo > 0 {
		w.phase = relieving
	}
}

// Stall is the stall that goes on, or the last one; not ok: there was none.
func (w *StallWatch) Stall() (s memory.Stall, ok bool) {
	if w.stall == nil {
		return memory.Stall{}, false
	}
	return *w.stall, true
}

// Report takes what the agent of the node saw, and returns whether it changed [StallWatch.Stall]. The agent reads a
// container at its limit several times a second, and is certain before the samples here are. What follows, its end or
// whether a higher limit helps, is decided by samples; where those count no faults, the agent reports the end. The same
// report may come again with every step.
func (w *StallWatch) Report(a AgentStall, bounds StallBounds, now time.Time) bool {
	started := a.Started.UTC()
	switch {
	case w.phase != calm:
		return w.last.blind() && !a.Ended.IsZero() && started.Equal(w.stall.Since) && w.end(a.Ended)
	case !a.Ended.IsZero() || a.Limit == 0 ||
		a.Limit.Minus(bounds.Limit)+bounds.Limit.Minus(a.Limit) > memory.CgroupRounding:
		return false // over, or from before its limit changed
	case w.last.at.IsZero() || started.Before(w.last.started.Time()) || started.After(now.Add(ahead)):
		return false // of an instance that is gone
	case w.stall != nil && !started.After(w.stall.Ended):
		return false // on file
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

// StallBounds are what bounds a container's memory, in bytes. 0: there is no such bound.
type StallBounds struct {
	// Limit is the effective limit.
	Limit memory.Bytes
	// High is memory.high, or where it would be if the node had it (see [Observation.High]).
	High memory.Bytes
}

// Add takes one sample, taken under the bounds given, and reports whether it changed [StallWatch.Stall]. Late samples
// and repetitions are skipped.
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
	if w.phase == calm && what != itStalls {
		w.run = nil
		return changed
	}
	if w.run == nil {
		w.run = &run{}
	}
	w.run.add(what, i)
	return w.conclude(i, sample.Container) || changed
}

// noteLimit takes note of what ends a stall or may end it: a higher limit, or another process.
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
	case w.phase == relieving && (another || w.raised.IsZero()): // a process that the raise restarted counts, too
		w.raised = s.at
	}
	return false
}

// about is the result of an interval in this phase.
func (w *StallWatch) about(i interval) says {
	waits := i.rate() >= max(stallFaults, stallTimesKnown*float64(w.known)) || i.pressure() >= stallPressure
	switch {
	case w.phase != calm && i.to.blind():
		return nothing
	case w.phase == stalled && i.full() && !w.below(i): // disks are now faster, now slower
		return itStalls
	case w.phase != stalled && i.full() && waits:
		return itStalls
	case w.phase != relieving || w.below(i):
		return itIsWell
	case i.readsBack(), i.rate() < stallFaults: // or it reads nothing, and waits anyway
		return notRelieved
	}
	return nothing // it reads in what fits now
}

// below: less than half of what the stall showed is left.
func (w *StallWatch) below(i interval) bool {
	return i.rate() <= float64(w.stall.Faults)/2 &&
		i.pressure() <= max(float64(w.stall.PressurePercent), stallPressure)/2
}

// conclude changes the phase when a run is long enough.
func (w *StallWatch) conclude(i interval, c memory.ContainerRef) (changed bool) {
	r := w.run
	switch {
	case r.says == itStalls && w.phase != stalled && r.atLeast(stallTime, stallIntervals):
		w.begin(i, c)
		return true
	case r.says == itIsWell && w.phase != calm && r.atLeast(stallOver, stallOverIntervals):
		w.stall.FaultsAfter = r.rate()
		return w.end(r.since.Time())
	case r.says == notRelieved && r.atLeast(stallTime, stallIntervals) && i.to.at.Sub(w.raised) >= stallVerify:
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
