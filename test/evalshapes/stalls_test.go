// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package evalshapes

import (
	"cmp"
	"math"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
)

// knownWithin is the bound in docs/design/ledger.md: two minutes for the start of a process, one for detection, and a
// sample or two of a kubelet on a busy node.
const knownWithin = 4 * time.Minute

// stallSamples returns the samples of one recorded container and its memory bounds.
func stallSamples(t *testing.T, name string) ([]memory.Sample, oom.StallBounds) {
	t.Helper()
	rows, err := tableFile(filepath.Join("../recordings/stalls", name+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	var samples []memory.Sample
	var bounds oom.StallBounds
	var waited int64
	for i, row := range rows {
		n := map[string]int64{}
		for column, text := range row {
			if n[column], err = strconv.ParseInt(text, 10, 64); err != nil {
				t.Fatalf("%s, row %d: %v", name, i+2, err)
			}
		}
		bounds = oom.StallBounds{
			Limit: memory.Bytes(n["limit_mib"]) * memory.MiB, High: memory.Bytes(n["high_kib"]) * memory.KiB,
		}
		now := memory.Sample{
			Container: memory.ContainerRef{Pod: name, UID: "u", Container: "app"},
			Time:      startTime.Add(time.Duration(n["second"]) * time.Second),
			Started:   startTime.Add(time.Duration(n["started"]) * time.Second),
			RSS:       memory.Bytes(n["anon_kib"]) * memory.KiB, HasRSS: true, Exact: true,
			WorkingSet: memory.Bytes(n["working_set_kib"]) * memory.KiB,
			Usage:      memory.Bytes(n["usage_kib"]) * memory.KiB, MajorFaults: n["major_faults"], HasMajorFaults: true,
		}
		if i > 0 {
			now.WaitedPercent = average(samples[i-1], now, time.Duration(n["waited_ms"]-waited)*time.Millisecond)
		}
		samples, waited = append(samples, now), n["waited_ms"]
	}
	return samples, bounds
}

// average computes the kernel's average of five minutes, which was not recorded, for waiting at a constant rate between
// two samples.
func average(before, now memory.Sample, waited time.Duration) float64 {
	lasted := now.Time.Sub(before.Time)
	if lasted <= 0 || waited < 0 {
		return before.WaitedPercent
	}
	left := math.Exp(-lasted.Minutes() / 5)
	return before.WaitedPercent*left + 100*float64(waited)/float64(lasted)*(1-left)
}

func TestStallsAreDistinguishedFromSimilarLoad(t *testing.T) {
	cases, err := tableFile("../recordings/stalls/labels.csv")
	if err != nil || len(cases) < 10 {
		t.Fatalf("%d recorded cases: %v", len(cases), err)
	}
	for _, c := range cases {
		t.Run(c["name"], func(t *testing.T) {
			var w oom.StallWatch
			samples, bounds := stallSamples(t, c["name"])
			for _, s := range samples {
				w.Add(s, bounds)
			}
			got, found := w.Stall()
			switch c["stalls"] {
			case "true":
				if late := got.Confirmed.Sub(samples[0].Started); !found || !got.Ended.IsZero() || late > knownWithin {
					t.Errorf("found %v, %s after the start, want within %s: %+v", found, late, knownWithin, got)
				}
			case "false":
				if found {
					t.Errorf("a false alarm: %+v", got)
				}
			default:
				t.Logf("found %v: %+v", found, got)
			}
		})
	}
}

// TestShapesAreNoStalls checks all recorded shapes under bad conditions: page cache fills the rest of the limit, a
// start has 500 major faults a second for two minutes, a library is loaded every quarter of an hour, and there is a
// fault every second. Once with the recorded limit, and once with a limit just above the peak.
func TestShapesAreNoStalls(t *testing.T) {
	recs, err := recordings("../recordings")
	if err != nil {
		t.Fatal(err)
	}
	near := 0
	for _, rec := range recs {
		near += checkNoisy(t, rec, 0)
		var peak memory.Bytes
		for _, row := range rec.samples {
			peak = max(peak, row.memory)
		}
		near += checkNoisy(t, rec, peak.Percent(104))
	}
	if near < 5000 {
		t.Errorf("only %d samples are close to their limit, want 5000", near)
	}
	t.Logf("%d recordings, %d samples close to the limit, no false alarm", len(recs), near)
}

// checkNoisy fails on a false alarm, and returns the number of samples close to the limit. Limit 0: the recorded one.
func checkNoisy(t *testing.T, rec recording, limit memory.Bytes) (near int) {
	t.Helper()
	watches, states := map[int]*oom.StallWatch{}, map[int]*memory.Sample{}
	for _, row := range rec.samples {
		w, s := watches[row.replica], states[row.replica]
		at, under := startTime.Add(time.Duration(row.second)*rec.second), cmp.Or(limit, row.limit)
		if w == nil {
			w = &oom.StallWatch{}
			s = &memory.Sample{Container: memory.ContainerRef{Pod: rec.name}, HasRSS: true, Exact: true, HasMajorFaults: true}
			watches[row.replica], states[row.replica] = w, s
		}
		if instance := strconv.Itoa(row.instance); s.Container.Container != instance { // another process
			s.Container.Container, s.Started, s.MajorFaults = instance, at.Add(-rec.second/2), 0
		}
		s.Time, s.RSS, s.Usage = at, min(row.memory, under), under
		s.MajorFaults += int64(rec.second.Seconds())
		if at.Sub(s.Started) < 2*time.Minute {
			s.MajorFaults += 500 * int64(rec.second.Seconds())
		}
		if row.second%15 == 0 {
			s.MajorFaults += 9000
		}
		if row.memory >= under.Percent(85) {
			near++
		}
		w.Add(*s, oom.StallBounds{Limit: under})
		if stall, found := w.Stall(); found {
			t.Fatalf("%s, replica %d: a false alarm: %+v", rec.name, row.replica, stall)
		}
	}
	return near
}
