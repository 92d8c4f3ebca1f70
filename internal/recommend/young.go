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

// youngQuantile of the hours of a young container use no more than what is usual: half of them, which neither its start
// nor a burst that it has shown already moves.
const youngQuantile = 0.5

// youngDemand is for the first two days, in which no limit is lowered below what was used in any of them.
func (e *evaluation) youngDemand(recent memory.Bytes) memory.Bytes {
	level := max(recent, e.highestDay(), e.killsSince(e.model.OldFrom))
	limit := e.plusHeadroom(level)
	e.say("%s + %s headroom = %s", level, e.headroomWords(level), limit)
	limit = max(limit, e.youngLimit(limit))
	limit = max(limit, e.recordLimit(limit))
	return e.notEaten(limit, recent)
}

// youngLimit is usual use with headroom for bursts that a container as young as this one may not have shown yet; 0
// when it is old enough.
func (e *evaluation) youngLimit(limit memory.Bytes) memory.Bytes {
	usual := e.History.Quantile(youngQuantile)
	room := e.tapered(e.burstRoom(), usual)
	if most := e.mostGuess(e.killedAt()); most > 0 {
		room = min(room, most)
	}
	if room == 0 {
		return 0
	}
	young := usual.Plus(room)
	if young > limit {
		e.say(
			"only %s of history: usual %s + %s for bursts not seen yet = %s", format.InWords(e.History.Span()), usual, room,
			young,
		)
	}
	return young
}

// burstRoom is the hazard curve at the age the history has; see [Model]. Nobody is asked in the first hour, so that it
// counts as one.
func (e *evaluation) burstRoom() memory.Bytes {
	if e.age() >= e.model.OldFrom {
		return 0
	}
	age := max(e.age(), enoughSpan)
	doublings := math.Log2(e.model.price(e.Policy.Posture).Young.Hours() / age.Hours())
	return memory.Bytes(max(doublings, 0) * float64(e.model.BurstPerDoubling)).FloorTo(memory.MiB)
}

// tapered is an amount that is due in full up to BurstUse, and from there in a straight line less until it is 0 at
// BurstEnds.
func (e *evaluation) tapered(amount, use memory.Bytes) memory.Bytes {
	full, end := e.model.BurstUse, e.model.BurstEnds
	if use <= full {
		return amount
	}
	return memory.Bytes(float64(amount) * float64(end.Minus(use)) / float64(end-full))
}

// recordLimit holds the next record of a young container; 0 when it is old enough.
func (e *evaluation) recordLimit(limit memory.Bytes) memory.Bytes {
	if e.age() >= e.model.price(e.Policy.Posture).Young {
		return 0
	}
	r := e.records()
	step := e.tapered(max(r.trend, r.step), r.highest)
	roomy := e.plusHeadroom(r.highest).Plus(step)
	if have := e.Current.Limit; step > 0 && roomy > limit && have > 0 && roomy > have {
		roomy = max(roomy, e.leastRaise(have)) // or minChangePercent would keep a small one until nothing is left
	}
	if roomy > limit {
		e.say(
			"only %s of history: record %s + %s for the next step + %s headroom = %s", format.InWords(e.History.Span()),
			r.highest, step, e.headroomWords(r.highest), roomy,
		)
	}
	return roomy
}

// records is how the highest use of a container came about, hour by hour.
type records struct {
	highest memory.Bytes
	// trend is the growth since the hour before the last one, step the largest step of an hour, weighed by age.
	trend, step memory.Bytes
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
