// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"math"
	"time"
)

// Instant is a point in time in 8 bytes instead of 24, for a hundred thousand containers. 0 is not a time.
type Instant int64 // Unix nanoseconds

// Times outside this range become its nearest end: 1970 or 2262.
var (
	firstInstant = time.Unix(0, 1)
	lastInstant  = time.Unix(0, math.MaxInt64)
)

// InstantOf converts a time.
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

// IsZero reports whether it is not a time.
func (i Instant) IsZero() bool { return i == 0 }

// Sub returns the duration from another instant to this one. Both must be times.
func (i Instant) Sub(from Instant) time.Duration { return time.Duration(i - from) }
