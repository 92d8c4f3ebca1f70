// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"
	"time"
)

func TestInstantKeepsTimes(t *testing.T) {
	for _, at := range []time.Time{
		{}, time.Date(2026, 11, 23, 8, 0, 0, 123456789, time.UTC), time.Date(1970, 1, 1, 0, 0, 0, 1, time.UTC),
	} {
		if got := InstantOf(at).Time(); !got.Equal(at) {
			t.Errorf("%s comes back as %s", at, got)
		}
		if got := InstantOf(at).IsZero(); got != at.IsZero() {
			t.Errorf("IsZero() of %s = %t", at, got)
		}
	}
}

// TestInstantStopsAtItsBounds: a node may send any time, which must neither wrap around nor read as none.
func TestInstantStopsAtItsBounds(t *testing.T) {
	for at, want := range map[time.Time]time.Time{
		time.Date(1066, 1, 1, 0, 0, 0, 0, time.UTC): firstInstant,
		time.Unix(0, 0): firstInstant,
		time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC): lastInstant,
	} {
		if got := InstantOf(at); got.IsZero() || !got.Time().Equal(want) {
			t.Errorf("%s comes back as %s, want %s", at, got.Time(), want)
		}
	}
}
