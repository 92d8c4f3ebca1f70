// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"math"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// window is one day of demand, counted back from now.
type window struct {
	age    int // days
	peak   memory.Bytes
	weight float64
}

// monthFrom and monthTo are the ages in days at which a lone high day is expected again: months have 28 to 31 days, and
// jobs of the first or last working day move by a day or two.
const monthFrom, monthTo = 27, 32

// demandLimit sizes by the peaks of the days kept: the cheapest limit, when memory held and kills to be expected are
// added up.
func (e *evaluation) demandLimit() memory.Bytes {
	var buf [history.DaysKept + 1]window
	days := e.windows(buf[:0])
	costs := e.costs(days)
	level := costs.cheapest(e.plusHeadroom)
	recent := days[0].peak
	e.sayPeaks(level, recent)
	level = max(level, recent, e.firstLimit())
	limit := e.plusHeadroom(level)
	e.say("%s + %s headroom = %s", level, e.headroomWords(level), limit)
	if month := e.monthly(days, limit); month > 0 {
		e.say("raised for a monthly job: %s was needed about a month ago and on no other day", month)
		limit = e.plusHeadroom(month)
	}
	limit = max(limit, e.youngLimit(limit))
	limit = max(limit, e.recordLimit(limit))
	limit = e.notEaten(limit, recent)
	if e.age() >= e.model.BurstSpan { // before, days say little
		e.say("%s", costs.words(limit, recent, e.Policy.Posture))
	}
	return limit
}

// sayPeaks adds the reason that the size is based on.
func (e *evaluation) sayPeaks(level, recent memory.Bytes) {
	ev := e.rec.Evidence
	highest := max(ev.PeakDemand, recent)
	e.say("%s over %s (%s)", e.peakWords(), format.InWords(ev.Window), e.basis())
	if e.certainty != history.Exact {
		e.say("%s", inexactWords(e.certainty))
	}
	if ev.PeakSwap > 0 {
		e.say("up to %s was swapped out, which is part of demand", ev.PeakSwap)
	}
	if rest := highest.Minus(ev.PeakRSS.Plus(ev.PeakSwap)); ev.PeakRSS > 0 && rest > e.headroom(highest) {
		e.say("peak RSS %s: the rest of demand is shared memory (tmpfs, /dev/shm) and kernel memory", ev.PeakRSS)
	}
	if ev.PeakWorkingSet > e.plusHeadroom(highest) {
		e.say("peak working set %s: the rest of it is page cache, which the kernel reclaims at the limit", ev.PeakWorkingSet)
	}
	if need := max(level, recent); need < highest && e.plusHeadroom(need) < highest {
		e.say(
			"sized for %s: holding the rare peak of %s would cost more than the kills it may cause (posture %s)", need, highest,
			e.Policy.Posture,
		)
	}
}

// peakWords is the highest demand of the days kept, as far as it is known.
func (e *evaluation) peakWords() string {
	peak := e.rec.Evidence.PeakDemand
	switch e.certainty {
	case history.Exact:
		return sprintf("peak demand %s", peak)
	case history.WorkingSetOnly:
		return sprintf("peak demand at most %s", peak)
	case history.RSSOnly, history.Unknown:
	}
	return sprintf("peak demand at least %s", peak)
}

// inexactWords returns why demand is an estimate.
func inexactWords(c history.Certainty) string {
	if c == history.WorkingSetOnly {
		return "demand is an estimate by the working set, which contains page cache: a limit is not lowered by it"
	}
	return "demand is an estimate by RSS, without shared memory: a limit is not lowered until the kubelet's " +
		"/metrics/cadvisor has been read for a day (--kill-counters-interval, RBAC nodes/metrics)"
}

// keepUnlessExact keeps the limit of a container where its demand is an estimate, which shared memory or swap may
// exceed.
func (e *evaluation) keepUnlessExact(limit memory.Bytes) memory.Bytes {
	have := e.Current.Limit
	if e.certainty == history.Exact || limit >= have {
		return limit
	}
	e.say("limit stays at %s although %s would hold what is known: %s", have, limit.CeilTo(memory.MiB),
		inexactWords(e.certainty))
	return have
}

// firstLimit is what the first limit of a container must hold where its demand is an estimate: all of the working set.
// 0: nothing more than its demand.
func (e *evaluation) firstLimit() memory.Bytes {
	if e.certainty == history.Exact || e.Current.Limit > 0 {
		return 0
	}
	return e.rec.Evidence.PeakWorkingSet
}

// windows are the days with samples, newest first: the last 24 hours, and calendar days before. The days do not move
// with the clock, so a peak counts as often now as an hour later, and the limit does not flip. There is at least one.
func (e *evaluation) windows(days []window) []window {
	var peaks [history.DaysKept + 1]memory.Bytes
	var gone [history.DaysKept + 1]bool
	peaks[0] = e.lastDay()
	today := period.DayOf(e.Now)
	var buf [history.DaysKept]history.Day
	for _, d := range e.History.AppendDays(buf[:0]) {
		if age := int(today - period.DayOf(d.Start)); age > 0 && age < len(peaks) {
			peaks[age] = d.Peak
			// Use never came down to the highest of today: it was another release, or another load.
			gone[age] = d.Trough > peaks[0] && peaks[0] > 0
		}
	}
	for _, k := range e.kills {
		age := int(today - period.DayOf(k.Time))
		if age == 0 || e.since(k.Time) < period.Day {
			peaks[0] = max(peaks[0], k.Limit.Percent(e.model.KillBeyondPercent))
		}
		if age > 0 && age < len(peaks) {
			peaks[age] = max(peaks[age], k.Limit.Percent(e.model.KillBeyondPercent))
		}
	}
	for age, peak := range peaks {
		if peak == 0 {
			continue
		}
		halfLife := e.model.DayHalfLife
		if gone[age] {
			halfLife = e.model.GoneHalfLife
		}
		days = append(days, window{age, peak, math.Exp2(-float64(age) / halfLife)})
	}
	if len(days) == 0 {
		days = append(days, window{peak: e.highestDay(), weight: 1})
	}
	return days
}

// lastDay is the peak of the last 24 hours.
func (e *evaluation) lastDay() (peak memory.Bytes) {
	var buf [history.HoursKept]history.Hour
	for _, h := range e.History.AppendHours(buf[:0]) {
		if e.since(h.Start) < period.Day+period.Hour {
			peak = max(peak, h.Peak)
		}
	}
	return peak
}

// monthly is the peak of a lone high day about a month ago that limit would not hold: a monthly job is due again. 0:
// none.
func (e *evaluation) monthly(days []window, limit memory.Bytes) memory.Bytes {
	if e.Policy.Posture == Frugal {
		return 0
	}
	var due memory.Bytes
	highDays := 0
	for _, d := range days {
		if d.peak <= limit {
			continue
		}
		highDays++
		if d.age >= monthFrom && d.age <= monthTo {
			due = max(due, d.peak)
		}
	}
	if highDays > 3 { // it comes more often than once a month: the price decides, see cheapest
		return 0
	}
	return due
}

// notEaten makes a raise large enough to be carried out when use has eaten most of the headroom, or will have within
// the hour if it goes on growing: minChangePercent would otherwise hold it back until nothing is left.
func (e *evaluation) notEaten(limit, recent memory.Bytes) memory.Bytes {
	have := e.Current.Limit
	if have == 0 || limit <= have {
		return limit
	}
	least := max(e.headroom(recent).Percent(e.model.EatenPercent), e.records().trend)
	if have.Minus(recent) >= least {
		return limit
	}
	if least := e.leastRaise(have); least > limit {
		e.say(
			"only %s of the limit left: raised at once by as much as minChangePercent asks for, to %s", have.Minus(recent),
			least,
		)
		return least
	}
	return limit
}

// leastRaise is the smallest limit above have that minChangePercent lets through.
func (e *evaluation) leastRaise(have memory.Bytes) memory.Bytes {
	return have.Percent(101 + e.Policy.MinChangePercent)
}
