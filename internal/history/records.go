// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

const (
	// RecordHours is how many hours back an hour must exceed all others to be a record: a day, because most use has a
	// daily rhythm.
	RecordHours = 24
	// RecordHalfLife is the age at which records count half: about as long as days are kept.
	RecordHalfLife = 30 * period.Day
)

// Records are statistics of the hours in which a container used more than in the day before. The zero value is without
// data.
type Records struct {
	// Seen is the number of records. Other hours count with the expected number of records: after n equal hours, the next
	// one is a record with a chance of 1/(n+1).
	Seen float32
	// Excess is the total of bytes by which records exceeded the day before, or another kept day.
	Excess float32
}

// Records returns the statistics of records up to the last full hour.
func (c *Container) Records() Records { return c.records }

// learn records whether the newest, finished hour was a record: compared with the day before it or, if that has no
// hours, with the kept days.
func (c *Container) learn() {
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

// beyond returns how far the newest hour exceeded the nearest known level: the day before's, or the peak of
// another day.
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

// valid reports whether a writer could have written these values.
func (r *Records) valid() bool {
	return r.Seen >= 0 && r.Seen <= math.MaxFloat32 && r.Excess >= 0 && r.Excess <= math.MaxFloat32
}
