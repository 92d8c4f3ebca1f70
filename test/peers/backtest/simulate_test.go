// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

// scripted is a policy that returns the limits in want, and records its calls.
type scripted struct {
	want    []int64
	decided []int64
	kills   []int64
	seen    []int64
}

func (s *scripted) Observe(_ time.Time, use, _ int64) { s.seen = append(s.seen, use) }
func (s *scripted) Killed(_ time.Time, limit int64)   { s.kills = append(s.kills, limit) }
func (s *scripted) Limit(at time.Time, _ int64) int64 {
	s.decided = append(s.decided, at.Unix())
	if len(s.want) == 0 {
		return 0
	}
	want := s.want[0]
	s.want = s.want[1:]
	return want
}

// everyTenMinutes makes a series of MiB values.
func everyTenMinutes(values ...int64) Series {
	s := Series{Name: "s"}
	for i, v := range values {
		s.Points = append(s.Points, Point{int64(i) * 600, v << 20})
	}
	return s
}

func TestTheFirstLimitComesFromTheFirstHour(t *testing.T) {
	if got := FirstLimit(everyTenMinutes(10, 20, 30).Points); got != 64<<20 {
		t.Errorf("small: %d, want 64 MiB", got>>20)
	}
	if got := FirstLimit(everyTenMinutes(100, 100, 100, 100, 100, 100, 200, 900).Points); got != 240<<20 {
		t.Errorf("the first hour includes the sample at 60 minutes, but no later one: %d MiB, want 240", got>>20)
	}
}

func TestAKillIsDecidedOnImmediatelyAndNotCountedAsUse(t *testing.T) {
	p := &scripted{want: []int64{0, 300 << 20}}
	r := Simulate(everyTenMinutes(100, 100, 100, 100, 100, 100, 100, 250, 250, 100), p, true)
	if r.Kills != 1 || len(p.kills) != 1 || p.kills[0] != 120<<20 || len(p.decided) != 2 || p.decided[1] != 4200 {
		t.Fatalf("kills %d at %v, decisions at %v; want a kill at 120 MiB, a decision at 4200 s", r.Kills, p.kills, p.decided)
	}
	if len(p.seen) != 9 || p.seen[7] != 250<<20 {
		t.Errorf("seen %v: want the nine samples below the effective limit", p.seen)
	}
	// Seven times 20 MiB below 120, then 50 and 200 below 300: each for ten minutes.
	if want := float64(7*20+50+200) * 600 * (1 << 20); r.Slack != want {
		t.Errorf("slack %v, want %v", r.Slack/600/(1<<20), want/600/(1<<20))
	}
	if want := float64(7*100+250+100) * 600 * (1 << 20); r.Demand != want {
		t.Errorf("demand %v, want %v", r.Demand, want)
	}
}

func TestSmallChangesAreNotApplied(t *testing.T) {
	values := make([]int64, 20)
	for i := range values {
		values[i] = 100
	}
	p := &scripted{want: []int64{131 << 20, 109 << 20, 132 << 20}}
	r := Simulate(everyTenMinutes(values...), p, true)
	if r.Changes != 1 || r.Limits[len(r.Limits)-1] != 132<<20 {
		t.Errorf("%d changes, last limit %d MiB; want only the change of 10 %%", r.Changes, r.Limits[len(r.Limits)-1]>>20)
	}
	for i := 1; i < len(p.decided); i++ {
		if p.decided[i]-p.decided[i-1] != 3600 {
			t.Errorf("decisions at %v, want hourly", p.decided)
		}
	}
}

func TestAGapCountsAsAnHourAtMost(t *testing.T) {
	s := Series{Points: []Point{{0, 100 << 20}, {86400, 100 << 20}, {86460, 100 << 20}}}
	if r := Simulate(s, &scripted{}, false); r.Demand != float64(3600+60+60)*(100<<20) {
		t.Errorf("demand over a gap of a day: %v seconds, want 3720", r.Demand/(100<<20))
	}
}

func TestTheClairvoyantIsNeverKilled(t *testing.T) {
	for _, s := range Generate(5).Series {
		if r := Simulate(s, &clairvoyant{}, false); r.Kills != 0 || r.Changes != 0 {
			t.Errorf("%s: %d kills, %d changes", s.Name, r.Kills, r.Changes)
		}
	}
}
