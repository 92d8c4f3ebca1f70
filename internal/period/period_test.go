// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package period

import (
	"math"
	"testing"
	"time"
)

// compress sets the factor for one test.
func compress(t *testing.T, f int) {
	t.Helper()
	before := Factor()
	if err := Compress(f); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Compress(before) })
}

func TestWithoutCompressionADayTakesADay(t *testing.T) {
	if Compressed() || Factor() != 1 {
		t.Fatalf("factor %d by default, want 1", Factor())
	}
	if Day.Duration() != 24*time.Hour || Of(time.Hour) != Hour {
		t.Errorf("a day takes %s, an hour holds %v", Day.Duration(), Of(time.Hour))
	}
}

func TestACompressedDayTakesMinutes(t *testing.T) {
	compress(t, 144)
	if !Compressed() || Day.Duration() != 10*time.Minute || Hour.Duration() != 25*time.Second {
		t.Errorf("a day takes %s, an hour %s; want 10m and 25s", Day.Duration(), Hour.Duration())
	}
	if got := Of(10 * time.Minute); got != Day {
		t.Errorf("ten minutes hold %s of evidence, want a day", time.Duration(got))
	}
	at := time.Date(2026, 3, 1, 10, 20, 0, 0, time.UTC)
	if a, b := DayOf(at), DayOf(at.Add(10*time.Minute)); b != a+1 {
		t.Errorf("ten minutes later it is day %d, want %d", b, a+1)
	}
	if long, back := Of(math.MaxInt64), Of(math.MinInt64); long < 1000*Day || back > -1000*Day {
		t.Errorf("the longest durations hold %d and %d, want the longest periods", long, back)
	}
}

func TestAFactorDividesAnHour(t *testing.T) {
	for _, f := range []int{-1, 0, 7, 145, 361, 3600} {
		if Compress(f) == nil {
			t.Errorf("a factor of %d is accepted", f)
		}
		if Factor() != 1 {
			t.Fatalf("a refused factor of %d changed the factor to %d", f, Factor())
		}
	}
	for _, f := range []int{1, 60, 144, 360} {
		if err := Valid(f); err != nil {
			t.Errorf("a factor of %d: %v", f, err)
		}
	}
}
