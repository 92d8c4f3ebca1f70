// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// TestReadingsReachBack: however long an instance is read, 16 to 32 readings are kept, in order, each with the use of
// its time, and they reach back over its life or, when that is long, two hours.
func TestReadingsReachBack(t *testing.T) {
	start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	var r readings
	for i := range 4 * 60 * 24 * 3 { // three days, every 15 s; the use says when
		at := start.Add(time.Duration(i) * 15 * time.Second)
		r.add(&memory.Sample{Time: at, RSS: memory.Bytes(i) * memory.KiB, HasRSS: true, Exact: true})
		if i < readingsKept {
			continue
		}
		points := r.instance(memory.ContainerRef{}, start).Points
		if n := len(points); n < readingsKept/2 || n > readingsKept {
			t.Fatalf("after %s there are %d readings", at.Sub(start), n)
		}
		for j, p := range points {
			if want := start.Add(time.Duration(p.RSS/memory.KiB) * 15 * time.Second); !p.Time.Equal(want) {
				t.Fatalf("after %s, reading %d of %s has the time %s", at.Sub(start), j, want, p.Time)
			}
			if j > 0 && !p.Time.After(points[j-1].Time) {
				t.Fatalf("after %s, reading %d is not later than the one before it", at.Sub(start), j)
			}
		}
		if reach := at.Sub(points[0].Time); reach < min(at.Sub(start)*9/10, time.Hour) || reach > 5*time.Hour {
			t.Fatalf("after %s they reach back %s", at.Sub(start), reach)
		}
	}
}

// TestReadingsAfterAGap: what was read most of a day ago and what is read now are no series.
func TestReadingsAfterAGap(t *testing.T) {
	start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	for gap, want := range map[time.Duration]int{
		6 * time.Hour: 11, 18 * time.Hour: 11, 19 * time.Hour: 1, 720 * time.Hour: 1,
	} {
		var r readings
		for i := range 10 {
			r.add(&memory.Sample{Time: start.Add(time.Duration(i) * time.Minute), RSS: memory.MiB, HasRSS: true, Exact: true})
		}
		last := start.Add(9*time.Minute + gap)
		r.add(&memory.Sample{Time: last, RSS: 2 * memory.MiB, HasRSS: true, Exact: true})
		points := r.instance(memory.ContainerRef{}, start).Points
		if len(points) != want || !points[len(points)-1].Time.Equal(last) {
			t.Errorf("after a gap of %s there are %d readings, the last of %s; want %d, the last of %s",
				gap, len(points), points[len(points)-1].Time, want, last)
		}
	}
}
