// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"math"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// Model holds the constants for the size of a container, besides the settings of owners in [Policy]. They are not
// configurable; they are fields so that the backtest can vary each of them (see the table in docs/design/sizing.md).
type Model struct {
	// OldFrom is the age from which the rule of expected cost decides. A younger container has too few days to compare.
	OldFrom period.Evidence
	// Records and Excess are the first guess of what a container does: so many records, which together went so far
	// beyond what was known, and by no more than ExcessShare of its use: or a small one, of which little is known, would
	// get several times what it needs.
	Records     float64
	Excess      memory.Bytes
	ExcessShare float64
	// DayHalfLife is the age in days at which a day that may repeat counts half, and so does a kill that taught how far
	// use goes beyond what was known.
	DayHalfLife float64
	// Alike is the share by which the peaks of similar days differ.
	Alike float64
	// Unlike is the weight of a day that followed a day that was not similar to the last day.
	Unlike float64
	// LowerLimit and LowerKill are what it costs to lower a limit: a part of the limit for each day, and a part of a kill
	// once, because it may be one. They keep a limit from following each change of use.
	LowerLimit, LowerKill float64
	// LowerYoung is the least by which the limit of a young container is lowered: its space for bursts shrinks with its
	// age, and each step costs a canary.
	LowerYoung memory.Bytes

	// KillBeyondPercent is the assumed need of a killed container, in percent of its limit. It is recorded for that day.
	KillBeyondPercent int32
	// MinHeadroom is the least headroom: a container of 20Mi needs space for more than one allocation above its peak.
	MinHeadroom memory.Bytes

	// BurstPerDoubling is the hazard curve of bursts that have not been seen yet: for every time that the age of a young
	// container can double before it is as old as Young, it gets this much. The chance that the next hour brings a new
	// record falls with the age, and the sizes of bursts are spread exponentially. Then the headroom at which one more MiB
	// costs what it saves is this logarithm, and the age at which it is 0 goes with the price of a kill.
	BurstPerDoubling memory.Bytes
	// Young is how long a container gets space for bursts at the price of Balanced. It goes with the price to the power of
	// YoungPower, because the chance of a record falls as one over that root of the age. That is as near as a power comes
	// to the times that each posture had by itself before: the space at an hour differs by at most 9Mi.
	Young      period.Evidence
	YoungPower float64
	// BurstUse is the use up to which a burst is an amount, not a share: a fork, a batch or a library loaded late is as
	// large in a process of 10Mi as in one of 60Mi. From there the headroom for it falls in a straight line to 0 at
	// BurstEnds, but not below BurstShare of use.
	BurstUse, BurstEnds memory.Bytes
	// BurstShare is that of large containers: on the tuning half of nezha-pods, those of 450Mi went beyond their record
	// and headroom by 4.6 % of use.
	BurstShare float64

	// StepHalfLife is for the headroom that a young container has for its next step, on top of its record: memory moves
	// in steps at first, caches fill, code is compiled, a first large request comes, and the next step tends to be as
	// large as those before it. This is the age at which an earlier one counts half.
	StepHalfLife period.Evidence

	// EatenPercent: when less of a young container's headroom than this is left, or of the margin of an older one, a
	// raise is due even if it is a small one. So it is when less is left than the last one to two hours added to the
	// record of a young one: the next hour may add as much.
	EatenPercent int32

	// RepeatPercent is the growth after a kill that follows one at a lower limit within the hour, instead of the policy's
	// factor: doubling finds a need of 64 times the limit within 7 kills.
	RepeatPercent int32
	// RememberedPercent bounds the raise after a kill towards an earlier peak, which may be out of date.
	RememberedPercent int32
	// GuessPercent bounds what a container gets beyond the limit that it was killed at, in percent of it: by the kill, and
	// as space for bursts while it is young; with Cautious as such only in the first hour.
	GuessPercent int32
}

// DefaultModel returns the model that memfit sizes with.
func DefaultModel() Model {
	return Model{
		OldFrom: 2 * period.Day, Records: 3, Excess: 120 * memory.MiB, ExcessShare: 0.15,
		DayHalfLife: 30, Alike: 0.2, Unlike: 0.2,
		LowerLimit: 0.05, LowerKill: 0.008, LowerYoung: 28 * memory.MiB,

		KillBeyondPercent: 115, MinHeadroom: 8 * memory.MiB,
		BurstPerDoubling: 23 * memory.MiB, Young: 2 * period.Day, YoungPower: 1.4,
		BurstUse: 64 * memory.MiB, BurstEnds: 400 * memory.MiB, BurstShare: 0.03,
		StepHalfLife: 5 * period.Hour, EatenPercent: 33,
		RepeatPercent: 200, RememberedPercent: 400, GuessPercent: 300,
	}
}

// young returns how long a container gets space for bursts that it has not shown, at a price of a kill.
func (m *Model) young(price memory.Bytes) period.Evidence {
	return period.Evidence(float64(m.Young) * math.Pow(float64(price)/float64(Balanced), m.YoungPower))
}
