// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// TestPublishedVPAFigures compares the simulator with an independent one: same rules, packages, traces and figures.
func TestPublishedVPAFigures(t *testing.T) {
	dir := os.Getenv("TRACES")
	if dir == "" {
		t.Skip("no traces: set TRACES to their directory")
	}
	for _, want := range []struct {
		set   string
		floor float64
		kills int
		slack float64 // as published: three digits
	}{{"nezha-pods", 250, 4, 0.394}, {"nezha-pods", 0, 13, 0.298}, {"bitbrains-a", 250, 4533, 5.52}} {
		path := filepath.Join(dir, want.set+".csv.gz")
		if _, err := os.Stat(path); err != nil {
			t.Skipf("no %s in TRACES", path)
		}
		set, err := ReadSet(path)
		if err != nil {
			t.Fatal(err)
		}
		o := Run(set, contender{"vpa", func() Policy { return newVPA(flags{0.9, 0.15, want.floor}) }})
		digits := 1000.
		if want.slack > 1 {
			digits = 100
		}
		if got := math.Round(o.SlackTotal()*digits) / digits; o.Kills() != want.kills || got != want.slack {
			t.Errorf(
				"%s, floor %v: %d kills, slack %v; published are %d and %v", want.set, want.floor, o.Kills(), got, want.kills,
				want.slack,
			)
		}
	}
}

// TestClaimsStillHold judges the sets that need no downloaded traces as `make backtest` does.
func TestClaimsStillHold(t *testing.T) {
	before, err := readHeld("held.txt")
	if err != nil {
		t.Fatal(err)
	}
	recorded, ok, err := ReadRecordings("../../recordings")
	if err != nil || !ok {
		t.Fatalf("the recordings cannot be read: %v", err)
	}
	for _, set := range []Set{recorded, Generate(1)} {
		if len(before[set.Name]) == 0 {
			t.Errorf("held.txt has no claim for %s", set.Name)
		}
		_, half := Halves(set)
		for _, lost := range before.lost(Judge(set.Name, RunAll(half, io.Discard))) {
			t.Error(lost)
		}
	}
}

// TestOnlyVPARatchets closes a loop that traces do not have: a runtime that fills 95 % of any limit.
func TestOnlyVPARatchets(t *testing.T) {
	const gib = int64(1) << 30
	follow := func(p Policy) int64 {
		limit, at := gib, time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
		for range 10 * 24 * 12 { // ten days, a sample every five minutes, a decision every hour
			at = at.Add(5 * time.Minute)
			p.Observe(at, limit*95/100, limit)
			if at.Minute() == 0 {
				if want := p.Limit(at, limit); want > 0 && (want-limit)*10 > limit {
					limit = want
				}
			}
		}
		return limit
	}
	if got := follow(newVPA(vpaFlagDefaults)); got < 3*gib/2 {
		t.Errorf("VPA ended at %d MiB, although it raises the limit without bound here: is the loop closed?", got>>20)
	}
	m := newMemfit(recommend.Balanced)
	m.traits = recommend.Traits{Name: "JVM", FollowsLimit: true, HeapPercent: 75}
	if got := follow(m); got != gib {
		t.Errorf("memfit ended at %d MiB, want the first 1024", got>>20)
	}
}

func TestGeneratedSetsAreReproducibleAndReadable(t *testing.T) {
	a, b := Generate(3), Generate(3)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Fatal("the same seed gives different sets")
	}
	if cmp.Equal(a.Series[5], Generate(4).Series[5]) {
		t.Error("different seeds give the same series")
	}
	a.Series = a.Series[:2]
	path := filepath.Join(t.TempDir(), a.Name+".csv.gz")
	if err := WriteSet(path, a); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSet(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, got); diff != "" {
		t.Errorf("written and read again (-want +got):\n%.500s", diff)
	}
}

func TestTracesAreReadInAnyOrder(t *testing.T) {
	got, err := parse(bytes.NewBufferString("series,unix_seconds,bytes\nb,60,2\na,b,60,4\nb,0,1\n\n"))
	want := []Series{{"a,b", []Point{{60, 4}}}, {"b", []Point{{0, 1}, {60, 2}}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("err %v, series (-want +got):\n%s", err, diff)
	}
	if _, err := parse(bytes.NewBufferString("series,unix_seconds,bytes\nb;60;2\n")); err == nil {
		t.Error("a line without commas was read")
	}
}

// TestTheBacktestObservesOnlyWhatAClusterDoes: no sample above the limit enters the history, and the ledger keeps as
// many kills as the product's.
func TestTheBacktestObservesOnlyWhatAClusterDoes(t *testing.T) {
	m := newMemfit(recommend.Balanced)
	s := Generate(1).Series[17] // a spiky one
	high := int64(0)
	limits := Simulate(s, m, true)
	for i, p := range s.Points {
		if p.Bytes <= limits.Limits[i] {
			high = max(high, p.Bytes)
		}
	}
	if got := m.history.PeakRSS(); got > memory.Bytes(high)+memory.Bytes(high)/1000 {
		t.Errorf("the history's peak is %s, the highest sample below the limit %s", got, memory.Bytes(high))
	}
	if len(m.kills) > ledgerDetail || m.history.Samples() != int64(len(s.Points)-limits.Kills) {
		t.Errorf("%d kills kept, %d of %d samples recorded", len(m.kills), m.history.Samples(), len(s.Points))
	}
	var restored history.Container
	data, err := m.history.MarshalBinary()
	if err != nil || restored.UnmarshalBinary(data) != nil {
		t.Errorf("the history of a long replay cannot be checkpointed: %v", err)
	}
}
