// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// demandLimit returns a limit by use: the limit with the least expected cost or, in the first two days, the highest use
// with headroom, also for unseen bursts.
func (e *evaluation) demandLimit() memory.Bytes {
	recent := max(e.lastDay(), e.firstLimit())
	e.least = "the last day's peak"
	if start := e.History.PeakStart(); start > recent && len(e.Runs) == 0 { // each run is a start, and counts in its day
		recent, e.least = start, "the startup peak of new pods"
	}
	if recent == 0 {
		recent = e.highestDay()
	}
	e.notePeaks(recent)
	if e.age() < e.model.OldFrom {
		return e.youngDemand(recent)
	}
	return e.boundAfterKill(e.cheapest(recent))
}

// notePeaks adds the peaks that the size is based on to the reasons.
func (e *evaluation) notePeaks(recent memory.Bytes) {
	ev := e.rec.Evidence
	highest := max(ev.PeakDemand, recent)
	e.note("%s over %s (%s)", e.peakWords(), format.InWords(ev.Window), e.basis())
	if e.certainty != history.Exact {
		e.note("%s", inexactWords(e.certainty))
	}
	if ev.PeakSwap > 0 {
		e.note("up to %s was swapped out, which is part of demand", ev.PeakSwap)
	}
	if rest := highest.Minus(ev.PeakRSS.Plus(ev.PeakSwap)); ev.PeakRSS > 0 && rest > e.headroom(highest) {
		e.note("peak RSS %s: the rest of demand is shared memory (tmpfs, /dev/shm) and kernel memory", ev.PeakRSS)
	}
	if ev.PeakWorkingSet > e.plusHeadroom(highest) {
		e.note("peak working set %s: the rest of it is page cache, which the kernel reclaims at the limit", ev.PeakWorkingSet)
	}
}

// peakWords returns the highest demand of the days kept in words, with "at least" or "at most" for an estimate.
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
	return "demand is an estimate, which may lack shared memory or swap: a limit is not lowered until the kubelet's " +
		"/metrics/cadvisor has been read for a day (--kill-counters-interval, RBAC nodes/metrics), or Prometheus has had " +
		"its usage, file pages and, of nodes that swap, container_memory_swap"
}

// keepUnlessExact returns at least the current limit if demand is an estimate. If the demand of some replicas is
// unknown, it returns at least the lower of the current and the last recommended limit.
func (e *evaluation) keepUnlessExact(limit memory.Bytes) memory.Bytes {
	have, why := e.Current.Limit, inexactWords(e.certainty)
	switch {
	case e.certainty != history.Exact:
	case e.UnmeasuredContainer == "":
		return limit
	default:
		why = e.UnmeasuredContainer + ", and no limit is lowered until it is"
		if last := e.Last.Limit; last > 0 && (have == 0 || last < have) {
			have = last
		}
	}
	if limit >= have {
		return limit
	}
	e.note("limit stays at %s although %s is enough for the known demand: %s", have, limit.CeilTo(memory.MiB), why)
	return have
}

// firstLimit returns the least use that the first limit of a container must cover: the peak working set if demand is an
// estimate. It returns 0 if demand is exact, or if the container has a limit.
func (e *evaluation) firstLimit() memory.Bytes {
	if e.certainty == history.Exact || e.Current.Limit > 0 {
		return 0
	}
	return e.rec.Evidence.PeakWorkingSet
}

// lastDay returns the highest use of the last 24 hours, including the use assumed for kills.
func (e *evaluation) lastDay() memory.Bytes {
	var buf [history.HoursKept]history.Hour
	return max(highestOf(e.recent(e.History.AppendHours(buf[:0]))), e.killsSince(period.Day))
}

func highestOf(hours []history.Hour) (peak memory.Bytes) {
	for _, h := range hours {
		peak = max(peak, h.Peak)
	}
	return peak
}

// killsSince returns the highest use assumed for kills within a period.
func (e *evaluation) killsSince(ago period.Evidence) (peak memory.Bytes) {
	for _, k := range e.kills {
		if e.since(k.Time) < ago {
			peak = max(peak, e.beyondKill(k))
		}
	}
	return peak
}

// beyondKill returns the assumed use of a container without the limit that it was killed at.
func (e *evaluation) beyondKill(k memory.OOMKill) memory.Bytes {
	return k.Limit.Percent(e.model.KillBeyondPercent)
}

// recent returns the hours of the last 24 hours, with the current hour.
func (e *evaluation) recent(hours []history.Hour) []history.Hour {
	for i, h := range hours {
		if e.since(h.Start) < (history.RecordHours+1)*period.Hour {
			return hours[i:]
		}
	}
	return nil
}
