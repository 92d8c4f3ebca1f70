// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"math"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// Model has the constants for the size of a container; the settings of owners are in [Policy]. Users cannot configure
// them: they are fields so that the backtest can vary each of them (see the table in docs/design/sizing.md).
type Model struct {
	// OldFrom is the age from which the limit minimizes the expected cost. A younger container has too few days for that.
	OldFrom period.Evidence
	// Records and Excess are the prior for records of use: the number of records, and the total by which they exceed
	// earlier use.
	Records float64
	Excess  memory.Bytes
	// ExcessShare bounds Excess to a share of use; otherwise a small container would get several times its need.
	ExcessShare float64
	// DayHalfLife is the age in days at which a day, or the excess of a kill over known use, has half its weight.
	DayHalfLife float64
	// Alike is the relative difference of peaks up to which two days are similar.
	Alike float64
	// Unlike is the weight of a day if the day before it was not similar to the last 24 hours.
	Unlike float64
	// LowerLimit and LowerKill are the cost of lowering a limit: a share of the limit per day, and once a share of the
	// price of a kill, because the lower limit may cause one. So a limit does not follow each change of use.
	LowerLimit, LowerKill float64
	// LowerYoung is the minimum decrease of a young container's limit. Its headroom for bursts shrinks every hour, and
	// each decrease needs a canary.
	LowerYoung memory.Bytes

	// KillBeyondPercent is the assumed need of a container on the day of a kill, in percent of the limit at the kill.
	KillBeyondPercent int32
	// MinHeadroom is the least headroom: a container of 20Mi needs more than one allocation above its peak.
	MinHeadroom memory.Bytes

	// BurstPerDoubling is the headroom for unseen bursts that a young container gets for each time that its age can double
	// before it reaches Young. The probability of a new record in the next hour falls with the age, and sizes of bursts
	// are distributed exponentially, so the optimal headroom is logarithmic in the age.
	BurstPerDoubling memory.Bytes
	// Young is the age at which the headroom for unseen bursts ends, with Balanced. For other prices of a kill it is
	// multiplied by (price/Balanced)^YoungPower, because the probability of a record falls with a root of the age.
	Young      period.Evidence
	YoungPower float64
	// BurstUse is the use up to which bursts do not depend on use: a fork or a library loaded late is as large in a
	// process of 10Mi as in one of 60Mi. Above BurstUse, the headroom falls linearly to 0 at BurstEnds.
	BurstUse, BurstEnds memory.Bytes
	// BurstShare is the least headroom for bursts per doubling, as a share of use. It is for large containers: on the
	// tuning half of nezha-pods, containers of 450Mi exceeded their record and headroom by 4.6 % of use.
	BurstShare float64

	// StepHalfLife is the age at which a step of a young container has half its weight. Memory first grows in steps
	// (caches fill, code is compiled, a large request arrives), so the headroom includes another step of that size.
	StepHalfLife period.Evidence

	// UsedMarginPercent is a share of a young container's headroom, or of an older container's margin. If less than that
	// share is left, even a raise smaller than minChangePercent is made.
	UsedMarginPercent int32

	// RepeatPercent is the growth after a kill within an hour of a kill at a lower limit, instead of the policy's factor:
	// doubling finds a need of 64 times the limit within 7 kills.
	RepeatPercent int32
	// RememberedPercent bounds the raise after a kill towards an earlier peak, which may be out of date.
	RememberedPercent int32
	// GuessPercent bounds the raise above the limit at a kill, in percent of that limit. It also bounds the headroom for
	// bursts of a young container after a kill (with Cautious only in its first hour).
	GuessPercent int32
}

// DefaultModel returns the constants that memfit uses.
func DefaultModel() Model {
	return Model{
		OldFrom: 2 * period.Day, Records: 3, Excess: 120 * memory.MiB, ExcessShare: 0.15,
		DayHalfLife: 30, Alike: 0.2, Unlike: 0.2,
		LowerLimit: 0.05, LowerKill: 0.008, LowerYoung: 28 * memory.MiB,

		KillBeyondPercent: 115, MinHeadroom: 8 * memory.MiB,
		BurstPerDoubling: 23 * memory.MiB, Young: 2 * period.Day, YoungPower: 1.4,
		BurstUse: 64 * memory.MiB, BurstEnds: 400 * memory.MiB, BurstShare: 0.03,
		StepHalfLife: 5 * period.Hour, UsedMarginPercent: 33,
		RepeatPercent: 200, RememberedPercent: 400, GuessPercent: 300,
	}
}

// young returns the age at which the headroom for unseen bursts ends, for a price of a kill.
func (m *Model) young(price memory.Bytes) period.Evidence {
	return period.Evidence(float64(m.Young) * math.Pow(float64(price)/float64(Balanced), m.YoungPower))
}
