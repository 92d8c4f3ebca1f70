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
	// OldFrom is the age from which the limit minimizes the expected cost. A younger one has too few days to compare.
	OldFrom period.Evidence
	// Records and Excess are the prior for records of use: their number, and by how much they exceed the previous ones in
	// total. Excess is at most ExcessShare of use; otherwise a small container with little history would get several
	// times its need.
	Records     float64
	Excess      memory.Bytes
	ExcessShare float64
	// DayHalfLife is the age in days at which a day that may repeat counts half, as does a kill that showed how far use
	// exceeds known use.
	DayHalfLife float64
	// Alike is the share by which the peaks of similar days differ.
	Alike float64
	// Unlike is the weight of a day that followed a day that was not similar to the last day.
	Unlike float64
	// LowerLimit and LowerKill are the cost of lowering a limit: a share of the limit per day, and once a share of a kill,
	// because it may cause one. They keep a limit from following each change of use.
	LowerLimit, LowerKill float64
	// LowerYoung is the minimum decrease of a young container's limit: its headroom for bursts shrinks with its age, and
	// each decrease needs a canary.
	LowerYoung memory.Bytes

	// KillBeyondPercent is the assumed need of a killed container on that day, in percent of its limit.
	KillBeyondPercent int32
	// MinHeadroom is the least headroom: a container of 20Mi needs more than one allocation above its peak.
	MinHeadroom memory.Bytes

	// BurstPerDoubling is the headroom for bursts not seen yet: a young container gets this much for each time that its
	// age can double before it reaches Young. The probability of a new record in the next hour falls with the age, and
	// the sizes of bursts are distributed exponentially, so the headroom at which one more MiB costs what it saves is
	// logarithmic in the age, and the age at which it is 0 depends on the price of a kill.
	BurstPerDoubling memory.Bytes
	// Young is how long a container gets headroom for bursts at the price of Balanced. It is proportional to the price to
	// the power of YoungPower, because the probability of a record falls with the corresponding root of the age. Its space
	// at an hour is within 9Mi of the former space of each posture.
	Young      period.Evidence
	YoungPower float64
	// BurstUse is the use up to which bursts do not grow with use: a fork, a batch or a library loaded late is as large
	// in a process of 10Mi as of 60Mi. Above it, the headroom for bursts falls linearly to 0 at BurstEnds, but not below
	// BurstShare of use.
	BurstUse, BurstEnds memory.Bytes
	// BurstShare is for large containers: on the tuning half of nezha-pods, containers of 450Mi exceeded their record
	// and headroom by 4.6 % of use.
	BurstShare float64

	// StepHalfLife is the age at which an earlier step counts half for a young container's headroom for its next step,
	// on top of its record: at first memory grows in steps (caches fill, code is compiled, a first large request comes),
	// and the next step tends to be as large as the steps before it.
	StepHalfLife period.Evidence

	// EatenPercent: if less than this of a young container's headroom, or of an older container's margin, is left, even a
	// small raise is made. The same applies if less is left than the last one to two hours added to a young container's
	// record: the next hour may add as much.
	EatenPercent int32

	// RepeatPercent is the growth after a kill that follows one at a lower limit within the hour, instead of the policy's
	// factor: doubling finds a need of 64 times the limit within 7 kills.
	RepeatPercent int32
	// RememberedPercent bounds the raise after a kill towards an earlier peak, which may be out of date.
	RememberedPercent int32
	// GuessPercent bounds what a container gets beyond the limit that it was killed at, in percent of it: for the kill,
	// and while young as headroom for bursts (with Cautious only in its first hour).
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

// young returns how long a container gets headroom for bursts not seen yet, at a price of a kill.
func (m *Model) young(price memory.Bytes) period.Evidence {
	return period.Evidence(float64(m.Young) * math.Pow(float64(price)/float64(Balanced), m.YoungPower))
}
