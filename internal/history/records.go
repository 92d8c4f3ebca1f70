// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

const (
	// RecordHours is the number of previous hours that a record exceeds: a day, because most use has a daily pattern.
	RecordHours = 24
	// RecordHalfLife is the age at which a record has half its weight: about as long as days are kept.
	RecordHalfLife = 30 * period.Day
)

// Records are statistics of hours in which a container used more than in the day before. The zero value has no data.
type Records struct {
	// Seen is the decayed number of records. An hour that is not a record adds 1/(n+1), where n is the number of known
	// hours: the probability that an hour exceeds n similar hours.
	Seen float32
	// Excess is the decayed total, in bytes, by which records exceeded the nearest known level.
	Excess float32
}

// Records returns the statistics of records up to the last full hour.
func (c *Container) Records() Records { return c.records }

// countRecord adds the finished hour to the records. It compares the hour with the day before or, if that day has no
// data, with the kept days.
func (c *Container) countRecord() {
	var top size16
	known := 0
	for h := max(c.hour-RecordHours, 0); h < c.hour; h++ {
		if peak := c.hours[h%HoursKept]; peak != 0 {
			top = max(top, peak)
			known++
		}
	}
	if known == 0 {
		for age := uint32(1); age < DaysKept && age <= c.day; age++ {
			if peak := c.days[(c.day-age)%DaysKept].peak; peak != 0 {
				top = max(top, peak)
				known++
			}
		}
	}
	switch {
	case known == 0 || c.now == 0:
	case c.now <= top:
		c.records.Seen += 1 / float32(known+1)
	default:
		c.records.Seen++
		c.records.Excess += float32(c.beyond(top.bytes()))
	}
}

// beyond returns the distance of the newest hour from the nearest known level: top, or the peak of another day.
func (c *Container) beyond(top memory.Bytes) memory.Bytes {
	peak := c.now.bytes()
	least := peak - top
	for age := uint32(1); age < DaysKept && age <= c.day; age++ {
		if level := c.days[(c.day-age)%DaysKept].peak.bytes(); level > 0 {
			least = min(least, max(peak, level)-min(peak, level))
		}
	}
	return least
}

// fade decays the statistics by the hours that have passed.
func (r *Records) fade(hours int32) {
	left := float32(math.Exp2(-float64(hours) / RecordHalfLife.Hours()))
	r.Seen, r.Excess = r.Seen*left, r.Excess*left
}

// valid reports whether MarshalBinary can have written these values.
func (r *Records) valid() bool {
	return r.Seen >= 0 && r.Seen <= math.MaxFloat32 && r.Excess >= 0 && r.Excess <= math.MaxFloat32
}
