// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"math"
	"time"
)

// Instant is a point in time in Unix nanoseconds; 0 is unset. It takes 8 bytes, a [time.Time] takes 24.
type Instant int64

// InstantOf clamps times to this range: 1970 to 2262.
var (
	firstInstant = time.Unix(0, 1)
	lastInstant  = time.Unix(0, math.MaxInt64)
)

// InstantOf converts a time. The zero time becomes 0.
func InstantOf(t time.Time) Instant {
	switch {
	case t.IsZero():
		return 0
	case t.Before(firstInstant):
		return 1
	case t.After(lastInstant):
		return math.MaxInt64
	}
	return Instant(t.UnixNano())
}

// Time returns the time in UTC.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(i)).UTC()
}

// IsZero reports whether i is unset.
func (i Instant) IsZero() bool { return i == 0 }

// Sub returns the duration from another instant to this one. Both must be set.
func (i Instant) Sub(from Instant) time.Duration { return time.Duration(i - from) }
