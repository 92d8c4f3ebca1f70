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
	// stallAnonPercent is the least anonymous memory, in percent of the limit. Stalls had 91 and 92 %. A database or a
	// reader of big files has mostly page cache, and is healthy at its limit.
	stallAnonPercent = 85
	// stallUsagePercent is the least usage, in percent of the limit. Below, the kernel drops no pages. Reclaim keeps usage
	// within 1 % of the limit, and within 2 % of memory.high if the kubelet sets it.
	stallUsagePercent = 95
	// stallFaults is the least number of major faults per second. Stalls had hundreds on an idle disk, and 7 to 14 on a
	// busy one, where each took 60 to 100 ms. Healthy containers had at most one in ten seconds, also at the limit and
	// while they read files; see the recordings.
	stallFaults = 3
	// stallTimesUsual is the least rate of major faults as a multiple of the instance's usual rate ([StallWatch]).
	stallTimesUsual = 3
	// stallPressure is the percentage of time in which all tasks waited (PSI memory full) that shows a stall even without
	// faults.
	stallPressure = 10
	// stallTime and stallIntervals are the least duration and number of intervals of a stall. A burst of faults, for
	// example when a process loads a library, is shorter.
	stallTime      = time.Minute
	stallIntervals = 3
	// stallStart is the time after a start in which a process may load its program and data.
	stallStart = 2 * time.Minute
	// stallOver and stallOverIntervals are the duration and number of intervals without signs of a stall after which the
	// stall has ended.
	stallOver          = time.Minute
	stallOverIntervals = 2
	// stallVerify is how long faults must continue after a raise before the raise counts as ineffective.
	stallVerify = 5 * time.Minute
	// stallGap is the longest time between two samples that are compared.
	stallGap = 5 * time.Minute
	// averageSpan is the period of the kernel's avg300.
	averageSpan = 5 * time.Minute
	// minFaultBytes is the least memory that one major fault reads. Most read more, because of readahead.
	minFaultBytes = 4 * memory.KiB
)

// StallWatch finds stalls in the samples of one running container. The zero value is ready. It takes about 100 bytes,
// and 250 more for a stall.
type StallWatch struct {
	last stallSample
	// usualRate is the instance's highest rate of major faults per second in a period of stallTime away from the limit.
	usualRate float32
	away      away
	run       *run          // the current series of intervals; nil: none
	stall     *memory.Stall // the last stall; nil: none
	phase     phase
	raised    memory.Instant // the first sample with the higher limit
}

// away is the current period away from the limit, which updates usualRate when it is long enough. A single interval is
// not enough: memory pressure on the node also makes the kernel drop page cache, which processes then read back.
type away struct {
	seconds, faults float32
	n               int32 // the number of intervals
}

// updateUsualRate adds an interval to the usual rate of faults.
func (w *StallWatch) updateUsualRate(i interval) {
	if i.atLimit() {
		w.away = away{}
		return
	}
	w.away = away{w.away.seconds + float32(i.lasted().Seconds()), w.away.faults + float32(i.faults()), w.away.n + 1}
	if a := w.away; a.seconds >= float32(stallTime.Seconds()) && a.n >= stallIntervals {
		w.usualRate, w.away = max(w.usualRate, a.faults/a.seconds), away{}
	}
}

type phase uint8

const (
	calm      phase = iota // no current stall
	stalled                // the stall continues
	relieving              // the limit was raised; the stall may continue
)

// Resume continues a recorded stall that has not ended, after a restart of memfit.
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

// Report adds an agent's report, and returns whether it changed [StallWatch.Stall]. The agent reads a container at its
// limit several times a second, so it detects a stall earlier than samples do. Samples show the end of the stall and
// the effect of a raise; only if they have neither faults nor pressure, the agent's report ends the stall. A report may
// be added repeatedly.
func (w *StallWatch) Report(a AgentStall, bounds StallBounds, now time.Time) bool {
	started := a.Started.UTC()
	switch {
	case w.phase != calm:
		return w.last.showsNoStall() && !a.Ended.IsZero() && started.Equal(w.stall.Since) && w.end(a.Ended)
	case !a.Ended.IsZero() || a.Limit == 0 ||
		a.Limit.Minus(bounds.Limit)+bounds.Limit.Minus(a.Limit) > memory.CgroupRounding:
		return false // the stall has ended, or was at another limit
	case w.last.at.IsZero() || started.Before(w.last.started.Time()) || started.After(now.Add(ahead)):
		return false // the stall was in an earlier instance, or the node's clock is wrong
	case w.stall != nil && !started.After(w.stall.Ended):
		return false // already recorded
	}
	usage := bounds.Limit
	if a.High > 0 {
		usage = a.High
	}
	w.stall = &memory.Stall{
		Container: a.Container, Limit: bounds.Limit, Since: started, Confirmed: now, Anon: a.Anon, Usage: usage,
		Faults: a.Faults, PressurePercent: a.PressurePercent,
	}
	w.phase, w.run = stalled, nil
	return true
}

// StallBounds are the bounds of a container's memory, in bytes. 0: no bound.
type StallBounds struct {
	// Limit is the effective limit.
	Limit memory.Bytes
	// High is memory.high if the node enables it (see [Observation.High]).
	High memory.Bytes
}

// Add adds one sample under these bounds, and reports whether it changed [StallWatch.Stall]. It ignores late and
// repeated samples.
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
		w.updateUsualRate(i)
	}
	what := w.classify(i)
	if w.phase == calm && what != stallSignal {
		w.run = nil
		return changed
	}
	if w.run == nil {
		w.run = &run{}
	}
	w.run.add(what, i)
	return w.updatePhase(i, sample.Container) || changed
}

// noteLimit handles a higher limit, which may end a stall, and another instance (another), which ends it.
func (w *StallWatch) noteLimit(s stallSample, limit memory.Bytes, another bool) (changed bool) {
	switch {
	case w.phase == calm:
		if another {
			w.usualRate = 0
		}
	case limit > w.stall.Limit && limit != w.stall.RaisedTo:
		w.phase, w.raised, w.run, w.stall.RaisedTo = relieving, s.at, nil, limit
		return true
	case w.phase == stalled && another:
		return w.end(s.at.Time())
	case w.phase == relieving && (another || w.raised.IsZero()): // the container may restart for the raise
		w.raised = s.at
	}
	return false
}

// classify returns what an interval shows in the current phase.
func (w *StallWatch) classify(i interval) signal {
	waits := i.rate() >= max(stallFaults, stallTimesUsual*float64(w.usualRate)) || i.pressure() >= stallPressure
	switch {
	case w.phase != calm && i.to.showsNoStall():
		return noSignal
	case w.phase == stalled && i.atLimit() && !w.belowHalf(i): // rates vary with the speed of the disk
		return stallSignal
	case w.phase != stalled && i.atLimit() && waits:
		return stallSignal
	case w.phase != relieving || w.belowHalf(i):
		return calmSignal
	case i.readsBack(), i.rate() < stallFaults: // few faults: tasks wait without reading
		return ineffectiveSignal
	}
	return noSignal // the page cache grows under the higher limit
}

// belowHalf reports whether faults and pressure are at most half of the stall's.
func (w *StallWatch) belowHalf(i interval) bool {
	return i.rate() <= float64(w.stall.Faults)/2 &&
		i.pressure() <= max(float64(w.stall.PressurePercent), stallPressure)/2
}

// updatePhase changes the phase when the run is long enough.
func (w *StallWatch) updatePhase(i interval, c memory.ContainerRef) (changed bool) {
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
		Container: c, Limit: i.bounds.Limit, Since: w.run.since.Time(), Confirmed: i.to.at.Time(), Anon: i.to.rss,
		Usage:  i.to.usage,
		Faults: w.run.rate(), PressurePercent: int32(100*w.run.waited/w.run.lasted.Seconds() + 0.5),
	}
	w.phase = stalled
}

func (w *StallWatch) end(at time.Time) bool {
	w.stall.Ended, w.phase, w.run = at, calm, nil
	return true
}
