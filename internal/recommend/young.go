// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"math"
	"slices"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// youngQuantile is the quantile of hourly peaks that is the usual use of a young container: the median, which neither
// its start nor a single burst changes.
const youngQuantile = 0.5

// youngDemand returns the limit by use in the first two days: at least the highest use with headroom.
func (e *evaluation) youngDemand(recent memory.Bytes) memory.Bytes {
	e.rec.BurstEvidence = e.teaches()
	level := max(recent, e.highestDay(), e.killsSince(e.model.OldFrom))
	limit := e.plusHeadroom(level)
	e.note("%s + %s headroom = %s", level, e.headroomWords(level), limit)
	limit = max(limit, e.youngLimit(limit))
	limit = max(limit, e.recordLimit(limit))
	return e.keepIfClose(e.enlargeRaise(limit, recent))
}

// keepIfClose returns the current limit instead of a lower one, unless the decrease is at least LowerYoung.
func (e *evaluation) keepIfClose(limit memory.Bytes) memory.Bytes {
	have := e.Current.Limit
	if limit >= have || have.Minus(limit) >= e.model.LowerYoung {
		return limit
	}
	e.note("limit stays at %s although %s is enough: a young container's limit is lowered by at least %s, because its "+
		"space for bursts still falls", have, limit.CeilTo(memory.MiB), e.model.LowerYoung)
	return have
}

// youngLimit returns usual use with the headroom for unseen bursts; 0 without such headroom.
func (e *evaluation) youngLimit(limit memory.Bytes) memory.Bytes {
	usual := e.History.Quantile(youngQuantile)
	space, learned := e.burstSpace(usual)
	if most := e.maxBurstSpace(e.highestKilledAt()); most > 0 {
		space = min(space, most)
	}
	if space == 0 {
		return 0
	}
	young := usual.Plus(space)
	if young > limit {
		words := ""
		if learned {
			of := format.Count(e.Prior.Containers, "young container")
			words = sprintf(" (learned from bursts of %s of %s)", of, e.Prior.Image)
		}
		e.note(
			"only %s of history: usual %s + %s for bursts not seen yet%s = %s", format.InWords(e.History.Span()), usual, space,
			words, young,
		)
	}
	return young
}

// burstSpace returns the headroom for unseen bursts at the age of the history (see BurstPerDoubling of [Model]).
// learned reports whether bursts of other containers determined it.
func (e *evaluation) burstSpace(use memory.Bytes) (space memory.Bytes, learned bool) {
	own, others := e.doublings(e.model.young(e.Policy.KillPrice)), e.doublings(e.learned())
	amount := memory.Bytes(max(own, others) * float64(e.model.BurstPerDoubling)).FloorTo(memory.MiB)
	share := memory.Bytes(own * e.model.BurstShare * float64(use)).FloorTo(memory.MiB)
	space = max(e.tapered(amount, use), share)
	return space, others > own && space > share
}

// doublings returns how often the age of a young container can double until it reaches until. An age below an hour
// counts as an hour, because no size is recommended before.
func (e *evaluation) doublings(until period.Evidence) float64 {
	if e.age() >= e.model.OldFrom {
		return 0
	}
	age := max(e.age(), enoughSpan)
	return math.Log2(max(until, age).Hours() / age.Hours())
}

// learned returns the age up to which other containers of the same program needed headroom for bursts: at most that of
// the Cautious posture, so that a wrong prior cannot raise a limit above a posture's. It is 0 after a kill, which shows
// the container's own need.
func (e *evaluation) learned() period.Evidence {
	if len(e.kills) > 0 {
		return 0
	}
	return min(e.Prior.Young, e.model.young(Cautious))
}

// teaches returns the age up to which this container would have needed headroom for its bursts. 0: the headroom of
// every posture was enough, the container is old, or its demand is an estimate.
func (e *evaluation) teaches() (young period.Evidence) {
	if e.age() >= e.model.OldFrom || e.certainty != history.Exact {
		return 0
	}
	var buf [history.HoursKept]history.Hour
	var before [history.HoursKept]memory.Bytes
	hours, peaks := e.History.AppendHours(buf[:0]), before[:0] // peaks: of earlier hours, sorted
	for _, h := range hours {
		peak := max(h.Peak, e.killsWithin(h))
		if n := len(peaks); n > 0 && peak > e.plusHeadroom(peaks[n-1]) {
			age := max(period.Of(h.Start.Sub(hours[0].Start)), enoughSpan)
			young = max(young, e.spaceNeededFor(age, peak.Minus(peaks[(n-1)/2]), peaks[(n-1)/2]))
		}
		i, _ := slices.BinarySearch(peaks, peak)
		peaks = slices.Insert(peaks, i, peak)
	}
	if young <= e.model.young(Frugal) {
		return 0
	}
	return young
}

// spaceNeededFor returns the value of Young at which the headroom for bursts would have covered burst at this age; at
// most that of Cautious.
func (e *evaluation) spaceNeededFor(age period.Evidence, burst, usual memory.Bytes) period.Evidence {
	perDoubling := e.tapered(e.model.BurstPerDoubling, usual)
	most := e.model.young(Cautious)
	doublings := float64(burst) / float64(max(perDoubling, 1))
	if doublings >= math.Log2(most.Hours()/age.Hours()) {
		return most
	}
	return period.Evidence(float64(age) * math.Exp2(doublings))
}

// killsWithin returns the highest use assumed for kills within an hour.
func (e *evaluation) killsWithin(h history.Hour) (peak memory.Bytes) {
	for _, k := range e.kills {
		if !k.Time.Before(h.Start) && k.Time.Before(h.Start.Add(period.Hour.Duration())) {
			peak = max(peak, e.beyondKill(k))
		}
	}
	return peak
}

// tapered returns amount if use is at most BurstUse, and linearly less above that, down to 0 at BurstEnds.
func (e *evaluation) tapered(amount, use memory.Bytes) memory.Bytes {
	full, end := e.model.BurstUse, e.model.BurstEnds
	if use <= full {
		return amount
	}
	return memory.Bytes(float64(amount) * float64(end.Minus(use)) / float64(end-full))
}

// recordLimit returns a limit that covers the next record of a young container; limit is the limit so far.
func (e *evaluation) recordLimit(limit memory.Bytes) memory.Bytes {
	r := e.records()
	step := e.tapered(r.step, r.highest)
	next := e.plusHeadroom(r.highest).Plus(step)
	if have := e.Current.Limit; step > 0 && next > limit && have > 0 && next > have {
		next = max(next, e.leastRaise(have)) // a smaller raise would wait for minChangePercent
	}
	if next > limit {
		e.note(
			"only %s of history: record %s + %s for the next step + %s headroom = %s", format.InWords(e.History.Span()),
			r.highest, step, e.headroomWords(r.highest), next,
		)
	}
	return next
}

// records describes how the highest use of a container grew, hour by hour.
type records struct {
	highest memory.Bytes
	trend   memory.Bytes // growth of the highest use in the last one to two hours
	step    memory.Bytes // largest growth within an hour, weighted by age
}

func (e *evaluation) records() (r records) {
	var buf [history.HoursKept]history.Hour
	var before memory.Bytes
	for i, h := range e.History.AppendHours(buf[:0]) {
		age := e.since(h.Start)
		if grown := h.Peak.Minus(r.highest); i > 0 && grown > 0 {
			weight := math.Exp2(-age.Hours() / e.model.StepHalfLife.Hours())
			r.step = max(r.step, memory.Bytes(float64(grown)*weight))
		}
		r.highest = max(r.highest, h.Peak)
		if age >= 2*period.Hour {
			before = r.highest
		}
	}
	if before > 0 {
		r.trend = r.highest.Minus(before)
	}
	return r
}

// enlargeRaise enlarges a raise to minChangePercent if most of the headroom is used, or will be within an hour at the
// current growth. A smaller raise would not be made until no headroom is left.
func (e *evaluation) enlargeRaise(limit, recent memory.Bytes) memory.Bytes {
	have := e.Current.Limit
	if have == 0 || limit <= have {
		return limit
	}
	least := max(e.headroom(recent).Percent(e.model.UsedMarginPercent), e.records().trend)
	if have.Minus(recent) >= least {
		return limit
	}
	if least := e.leastRaise(have); least > limit {
		e.note(
			"only %s of the limit left: raised immediately by the least that minChangePercent allows, to %s", have.Minus(recent),
			least,
		)
		return least
	}
	return limit
}

// leastRaise returns the smallest limit above have that minChangePercent permits.
func (e *evaluation) leastRaise(have memory.Bytes) memory.Bytes {
	return have.Percent(101 + e.Policy.MinChangePercent)
}
