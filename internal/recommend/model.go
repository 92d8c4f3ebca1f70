// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// Price is what one OOM kill is worth: this much memory held for a day. A part is fixed, because a kill costs its owner
// the same whatever the size of the container, and a part is in multiples of the container's own use.
type Price struct {
	Fixed memory.Bytes
	Times float64
}

// Model holds the constants that the size of a container follows from, beside those that owners set in [Policy]. They
// are not configurable; they are values so that the backtest can measure each of them: docs/design/sizing.md has its
// table.
type Model struct {
	// Prices of a kill, by posture. The default was chosen in the middle of those that did well on two trace sets and six
	// generated ones.
	Frugal, Balanced, Cautious Price

	// DayHalfLife is the age in days at which a day's peak counts half. A week and a day: the same weekday still counts
	// half.
	DayHalfLife float64
	// GoneHalfLife is that of days on which use never came down to what is the highest now: after a step down or a fixed
	// leak.
	GoneHalfLife float64
	// KillBeyondPercent: what a container wanted beyond the limit it was killed at is unknown; its day is remembered this
	// much above.
	KillBeyondPercent int32
	// LeastHeadroom is so that a container of 20Mi is not sized within one allocation of its peak.
	LeastHeadroom memory.Bytes

	// BurstPerDoubling and BurstSpan are the hazard curve of bursts that have not been seen yet: for every time that the
	// age of a container can double before it is BurstSpan old, it gets BurstPerDoubling. The chance that the next hour
	// brings a new record falls as one over the age, and the sizes of bursts are spread exponentially. Then the headroom
	// at which one more MiB costs what it saves is this logarithm, and the age at which it is 0 goes with the price of a
	// kill: BurstSpan is for the Balanced one.
	BurstPerDoubling memory.Bytes
	BurstSpan        period.Evidence
	// BurstUse is the use up to which a burst is an amount, not a share: a fork, a batch or a library loaded late is as
	// large in a process of 10Mi as in one of 60Mi. From there the headroom for it falls in a straight line, and from
	// BurstEnds on the ordinary headroom holds it.
	BurstUse, BurstEnds memory.Bytes

	// StepHalfLife is for the headroom that a young container has for its next step, on top of its record: memory moves
	// in steps at first, caches fill, code is compiled, a first large request comes, and the next step tends to be as
	// large as those before it. This is the age at which an earlier one counts half.
	StepHalfLife period.Evidence

	// EatenPercent: when less of the headroom than this is left, a raise is due even if it is a small one. So it is when
	// less is left than the last one to two hours added to the record: the next hour may add as much.
	EatenPercent int32

	// RepeatPercent is the growth after a kill that follows one at a lower limit within the hour, instead of the policy's
	// factor: doubling finds a need of 64 times the limit within 7 kills.
	RepeatPercent int32
	// RememberedPercent bounds how far a kill may jump towards a peak seen before: what was seen long ago is a guess.
	RememberedPercent int32
	// GuessPercent bounds what a container gets after a kill beyond what was seen or asked for, in percent of the limit
	// that it was killed at. Not with Cautious.
	GuessPercent int32
}

// DefaultModel is the model that memfit sizes with.
func DefaultModel() Model {
	return Model{
		Frugal:   Price{Fixed: memory.GiB, Times: 0.5},
		Balanced: Price{Fixed: 7 * memory.GiB, Times: 1},
		Cautious: Price{Fixed: 400 * memory.GiB, Times: 64},

		DayHalfLife: 8, GoneHalfLife: 1, KillBeyondPercent: 115, LeastHeadroom: 8 * memory.MiB,
		BurstPerDoubling: 23 * memory.MiB, BurstSpan: 2 * period.Day, BurstUse: 64 * memory.MiB, BurstEnds: 400 * memory.MiB,
		StepHalfLife: 5 * period.Hour, EatenPercent: 33,
		RepeatPercent: 200, RememberedPercent: 400, GuessPercent: 300,
	}
}

// price of a kill for the owner's posture.
func (m *Model) price(p Posture) Price {
	switch p {
	case Frugal:
		return m.Frugal
	case Cautious:
		return m.Cautious
	case Balanced:
	}
	return m.Balanced
}

// youngFor is how long a container is young, so that it has headroom for what it has not shown: BurstSpan at the price
// of Balanced.
func (m *Model) youngFor(p Posture) period.Evidence {
	return period.Evidence(float64(m.BurstSpan) * float64(m.price(p).Fixed) / float64(m.Balanced.Fixed))
}
