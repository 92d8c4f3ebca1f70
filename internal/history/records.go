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
	// RecordHalfLife is the age at which what was learned of records counts half: about as long as days are kept.
	RecordHalfLife = 30 * period.Day
)

// Records are what a container has shown of the hours in which it used more than in the day before. The zero value is a
// container that has shown nothing.
type Records struct {
	// Seen is how many there were, and hours that were none count as much as one had to be expected: in n hours that are
	// all alike, the next one is a record with a chance of 1/(n+1).
	Seen float32
	// Excess is how many bytes these went in all beyond what was known: the day before, or any other day kept.
	Excess float32
}

// Records are what is known of records up to the last full hour.
func (c *Container) Records() Records { return c.records }

// learn takes from the newest hour, which is over, whether it was a record: of the day before it or, where that has no
// hours because the program runs less often, of the days kept.
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

// beyond is how far the newest hour went from the nearest level that is known: that of the day before it, or the peak
// of any other day.
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

// fade lets what was learned lose weight for the hours that have passed.
func (r *Records) fade(hours int32) {
	left := float32(math.Exp2(-float64(hours) / RecordHalfLife.Hours()))
	r.Seen, r.Excess = r.Seen*left, r.Excess*left
}

// valid reports whether a writer could have known this.
func (r *Records) valid() bool {
	return r.Seen >= 0 && r.Seen <= math.MaxFloat32 && r.Excess >= 0 && r.Excess <= math.MaxFloat32
}
