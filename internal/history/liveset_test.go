// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

func TestLows(t *testing.T) {
	at := func(minute int, rss memory.Bytes) memory.Sample {
		return memory.Sample{
			Time: start.Add(time.Duration(minute) * time.Minute), RSS: rss, HasRSS: true, WorkingSet: rss + 50*mib,
		}
	}
	// sawtooth is six hours and a bit of a heap that is collected every 90 minutes.
	sawtooth := func(l *Lows, from, to int) {
		for m := from; m < to; m++ {
			l.Add(at(m, 200*mib+memory.Bytes(m%90)*2*mib), start)
		}
	}
	for name, tc := range map[string]struct {
		do        func(l *Lows)
		want      memory.Bytes
		wantWhole bool
	}{
		"nothing":                      {do: func(*Lows) {}},
		"too soon":                     {do: func(l *Lows) { sawtooth(l, 0, 60) }},
		"an hour":                      {do: func(l *Lows) { sawtooth(l, 0, 89) }, want: 220 * mib},
		"the first minutes are no low": {do: func(l *Lows) { l.Add(at(1, mib), start); sawtooth(l, 9, 80) }, want: 220 * mib},
		"six hours":                    {do: func(l *Lows) { sawtooth(l, 0, 6*60+30) }, want: 200 * mib, wantWhole: true},
		"the last six hours, not all": {
			do: func(l *Lows) { l.Add(at(20, 50*mib), start); sawtooth(l, 21, 13*60) }, want: 200 * mib, wantWhole: true,
		},
		"late and double samples": {do: func(l *Lows) {
			sawtooth(l, 0, 89)
			l.Add(at(50, mib), start)
			l.Add(at(88, mib), start)
		}, want: 220 * mib},
		"nobody knows since when": {do: func(l *Lows) {
			for m := range 65 {
				l.Add(at(m, memory.Bytes(100+m)*mib), time.Time{})
			}
		}},
		"a source without RSS": {do: func(l *Lows) {
			for m := 10; m < 80; m++ {
				l.Add(memory.Sample{Time: start.Add(time.Duration(m) * time.Minute), WorkingSet: 300 * mib}, start)
			}
		}, want: 300 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			var l Lows
			tc.do(&l)
			got, whole := l.Low()
			if got < tc.want || got > tc.want+mib || whole != tc.wantWhole {
				t.Errorf("%s (whole: %t), want %s (%t)", got, whole, tc.want, tc.wantWhole)
			}
		})
	}
}

func TestALiveSetRisesAtOnceAndFallsSlowly(t *testing.T) {
	day := func(n int) time.Time { return start.AddDate(0, 0, n) }
	s := LiveSet{}.With(0, day(0))
	if s != (LiveSet{}) {
		t.Fatalf("out of nothing: %+v", s)
	}
	s = s.With(420*mib, day(0))
	if s.Bytes < 420*mib || s.Bytes > 432*mib {
		t.Fatalf("%s, want 420Mi and a little", s.Bytes)
	}
	high := s.Bytes
	for d := 1; d <= 8; d++ {
		if s = s.With(200*mib, day(d)); s.Bytes != high {
			t.Fatalf("after %d days of 200Mi: %s, want %s", d, s.Bytes, high)
		}
	}
	s = s.With(200*mib, day(9))
	if want := high.Percent(75); s.Bytes < want || s.Bytes > want+8*mib {
		t.Errorf("after nine days: %s, want three quarters of %s", s.Bytes, high)
	}
	if s = s.With(430*mib, day(9)); s.Bytes < 430*mib {
		t.Errorf("back at 430Mi: %s", s.Bytes)
	}
	if s = s.With(0, day(400)); s.Bytes < 430*mib {
		t.Errorf("nothing was seen for a year, and that says nothing: %s", s.Bytes)
	}
}

// TestALiveSetKeepsStill: low points of a steady workload move by a few percent, and the reported live set does not.
func TestALiveSetKeepsStill(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s LiveSet
	var moved int
	for hour := range 60 * 24 {
		next := s.With(300*mib+memory.Bytes(r.Int64N(int64(12*mib))), start.Add(time.Duration(hour)*time.Hour))
		if next.Bytes != s.Bytes {
			moved++
		}
		if next.Bytes < s.Bytes {
			t.Fatalf("hour %d: it fell from %s to %s", hour, s.Bytes, next.Bytes)
		}
		s = next
	}
	if moved > 4 {
		t.Errorf("it moved %d times in two months", moved)
	}
}
