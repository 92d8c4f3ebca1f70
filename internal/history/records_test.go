// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// hourly is a container that used so many MiB in each hour.
func hourly(peaks ...memory.Bytes) *Container {
	c := New()
	for i, peak := range peaks {
		c.Add(sampleOf("web-1", start.Add(time.Duration(i)*time.Hour), peak*mib), 0)
	}
	return c
}

func about(got float32, want float64) bool { return math.Abs(float64(got)-want) <= 0.01*math.Abs(want) }

// TestRecordsAreCounted: an hour that is not over does not count, and one that is no record counts as much as a record
// was to be expected.
func TestRecordsAreCounted(t *testing.T) {
	if got := hourly(100, 100, 100, 100).Records(); !about(got.Seen, 1./2+1./3) || got.Excess != 0 {
		t.Errorf("two hours that were like the first: %+v", got)
	}
	if got := hourly(100, 130, 100, 900).Records(); !about(got.Seen, 1+1./3) || !about(got.Excess, float64(30*mib)) {
		t.Errorf("a record of 30Mi: %+v", got)
	}
	if got := hourly(100).Records(); got != (Records{}) {
		t.Errorf("an hour that is not over: %+v", got)
	}
}

// TestALevelOfAnotherDayIsKnown: a record of the last 24 hours goes only as far as it is from what another day had.
func TestALevelOfAnotherDayIsKnown(t *testing.T) {
	peaks := []memory.Bytes{500}
	for range 60 {
		peaks = append(peaks, 100)
	}
	before := hourly(peaks...).Records()
	after := hourly(append(peaks, 480, 100)...).Records()
	if got := after.Excess - before.Excess; !about(got, float64(20*mib)) {
		t.Errorf("480Mi where another day had 500Mi: beyond by %v bytes, want 20Mi", got)
	}
}

// TestAWeeklyJobLearns: where the day before has no hours, an hour is compared with the days kept.
func TestAWeeklyJobLearns(t *testing.T) {
	c := New()
	for week, peak := range []memory.Bytes{100, 100, 130, 100} {
		c.Add(sampleOf("web-1", start.Add(time.Duration(week)*7*24*time.Hour), peak*mib), 0)
	}
	// The second run is over a week before the third, and the record of that, by 30Mi, a week before the fourth.
	got := c.Records()
	if got.Seen <= 1 || got.Seen >= 1.5 || got.Excess <= 20*float32(mib) || got.Excess > 30*float32(mib) {
		t.Errorf("a record of 30Mi in three runs: %+v", got)
	}
}

// TestAHistoryOfNothingIsNotRead: samples without a peak are damaged, and would be taken for no use.
func TestAHistoryOfNothingIsNotRead(t *testing.T) {
	c := hourly(100, 100, 100)
	c.days, c.hours = [DaysKept]dayCell{}, [HoursKept]size16{}
	data, err := c.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var read Container
	if read.UnmarshalBinary(data) == nil {
		t.Errorf("read: %+v", read.Days())
	}
}

// TestWhatWasLearnedFades: half of it after 30 days without a sample.
func TestWhatWasLearnedFades(t *testing.T) {
	c := hourly(100, 130, 100, 100)
	before := c.Records()
	c.Add(sampleOf("web-1", start.Add(30*24*time.Hour), 100*mib), 0)
	if got := c.Records(); !about(got.Excess, float64(before.Excess)/2) {
		t.Errorf("%+v became %+v", before, got)
	}
}

// TestAHistoryWithoutRecordsIsRead: they are left out at the end.
func TestAHistoryWithoutRecordsIsRead(t *testing.T) {
	c := hourly(100, 130, 100, 100)
	data, err := c.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	earlier := *c
	earlier.records = Records{}
	short, err := earlier.MarshalBinary()
	if err != nil || !bytes.HasPrefix(data, short) || len(data) == len(short) {
		t.Fatalf("%d bytes with records, %d without (%v): want only them at the end", len(data), len(short), err)
	}
	for _, want := range []*Container{c, &earlier} {
		var read Container
		data, _ := want.MarshalBinary()
		if err := read.UnmarshalBinary(data); err != nil || read.Records() != want.Records() {
			t.Errorf("%+v read as %+v (%v)", want.Records(), read.Records(), err)
		}
	}
	var read Container
	c.records.Excess = float32(math.Inf(1))
	if data, _ := c.MarshalBinary(); read.UnmarshalBinary(data) == nil {
		t.Error("records without a bound were read")
	}
}
