// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"math"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// The allowance for young containers. A burst that has not been seen yet is about as large in a small process as in a middling one (a
// fork, a batch, a library loaded late), so it is an amount on top of usual use, not a share; large containers have it in their headroom.
const (
	youngAllowance = 128 * memory.MiB // for usual use up to youngUpTo, from there in a straight line down to 0 at youngEnds
	youngUpTo      = 64 * memory.MiB
	youngEnds      = 400 * memory.MiB
	youngTimes     = 8 // and no more than this many times the usual use
	// It is given in full for a while and then fades: soon when the container has been steady, and late when it has shown a burst. Two pods
	// of nezha-pods burst higher after 30 hours; on other data a burst foretells nothing, see docs/sizing.md.
	burstyFull, burstySpan = 36 * time.Hour, 4 * day
	steadyFull, steadySpan = 4 * time.Hour, 10 * time.Hour
	// burstyPercent: a container whose peak is this much above its usual use is bursty.
	burstyPercent = 225
	// Hours that raise the record by gradualFrom to gradualTo percent are those of caches that fill, of leaks and warm-ups: what comes next
	// is then known better, and the allowance shrinks by up to gradualCut percent, by their share of all hours.
	gradualFrom, gradualTo = 1, 50
	gradualCut             = 25
)

// youngLimit is what a container gets while its history is shorter than four days; 0 when it is old enough or the owner is frugal.
func (e *evaluation) youngLimit(limit memory.Bytes) memory.Bytes {
	span, usual := e.History.Span(), e.History.Quantile(0.5)
	if span >= burstySpan || usual >= youngEnds || e.Policy.Posture == Frugal {
		return 0
	}
	allowance := e.fading(tapered(min(youngAllowance, usual*youngTimes), usual, youngEnds))
	if allowance > 0 {
		allowance = allowance.Percent(int32(100 - gradualCut*e.records().gradual))
	}
	young := usual.Plus(allowance)
	if young > limit {
		e.say("only %s of history: usual %s + %s for bursts not seen yet = %s", ago(span), usual, allowance, young)
	}
	return young
}

// tapered is an amount that is due in full up to youngUpTo of use, and from there in a straight line less until it is 0 at end.
func tapered(amount, use, end memory.Bytes) memory.Bytes {
	if use <= youngUpTo {
		return amount
	}
	return memory.Bytes(float64(amount) * float64(end.Minus(use)) / float64(end-youngUpTo))
}

// fading is an allowance at the age the history has.
func (e *evaluation) fading(allowance memory.Bytes) memory.Bytes {
	full, end := steadyFull, steadySpan
	if usual := e.History.Quantile(0.5); e.Policy.Posture == Cautious || len(e.kills) > 0 || max(e.highestDay(), e.lastDay()) >= usual.Percent(burstyPercent) {
		full, end = burstyFull, burstySpan
	}
	switch span := e.History.Span(); {
	case span <= full:
		return allowance
	case span < end:
		return allowance.Percent(int32(100 * (end - span) / (end - full))) //nolint:gosec // 0 to 100
	}
	return 0
}

// What a container gets in its first hours on top of its record: memory moves in steps then - caches fill, code is compiled, a first
// large request comes - and the next step tends to be as large as those before it.
const (
	recordSpan = 12 * time.Hour
	// The next step is what the record grew by since the hour before the last one, or stepPercent of the largest step of an hour, which
	// counts half for every stepHalfLife, and stepRoom percent of the headroom, because steps differ. Like the allowance it is an amount that
	// small containers get in full, and large ones not at all: their headroom holds it.
	stepPercent  = 90
	stepHalfLife = 5 * time.Hour
	stepRoom     = 40
	stepEnds     = 384 * memory.MiB
	// recordPercent: a record limit less than this above the limit in force is not worth a change by itself.
	recordPercent = 8
)

// recordLimit holds the next record of a container in its first hours. 0: it is older, or the owner is frugal.
func (e *evaluation) recordLimit(limit memory.Bytes) memory.Bytes {
	span := e.History.Span()
	if span >= recordSpan || e.Policy.Posture == Frugal {
		return 0
	}
	r := e.records()
	head := e.headroom(r.highest)
	step := tapered(max(r.trend, r.step).Plus(head.Percent(stepRoom)), r.highest, stepEnds)
	roomy := r.highest.Plus(head).Plus(step)
	if have := e.Current.Limit; roomy > limit && have > 0 && roomy > have.Percent(100+recordPercent) {
		roomy = max(roomy, e.leastRaise(have)) // or minChangePercent would keep it until nothing is left
	}
	if roomy > limit {
		e.say("only %s of history: record %s + %s for the next step + %s headroom = %s", ago(span), r.highest, step, e.headroomWords(r.highest), roomy)
	}
	return roomy
}

// records is how the highest use of a container came about, hour by hour.
type records struct {
	highest memory.Bytes
	// trend is the growth since the hour before the last one, step the largest step of an hour, weighed by age.
	trend, step memory.Bytes
	// gradual is the share (0 to 1) of hours that raised the record a little.
	gradual float64
}

func (e *evaluation) records() (r records) {
	var buf [history.HoursKept]history.Hour
	hours := e.History.AppendHours(buf[:0])
	var before memory.Bytes
	gradual := 0
	for i, h := range hours {
		age := e.Now.Sub(h.Start)
		if grown := h.Peak.Minus(r.highest); i > 0 && grown > 0 {
			weight := stepPercent * math.Exp2(-age.Hours()/stepHalfLife.Hours())
			r.step = max(r.step, memory.Bytes(float64(grown)*weight/100))
			if grown > r.highest.Percent(gradualFrom) && grown < r.highest.Percent(gradualTo) {
				gradual++
			}
		}
		r.highest = max(r.highest, h.Peak)
		if age >= 2*time.Hour {
			before = r.highest
		}
	}
	if before > 0 {
		r.trend = r.highest.Minus(before)
	}
	if len(hours) > 1 {
		r.gradual = float64(gradual) / float64(len(hours)-1)
	}
	return r
}
