// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

const mib = int64(1) << 20

var someDay = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// TestPeersSizeAsDocumented gives each other product a burst of 1000 MiB in a steady use of 400, and checks its limit
// in the same hour, a day later, after a week and after two.
func TestPeersSizeAsDocumented(t *testing.T) {
	for name, c := range map[string]struct {
		make func() Policy
		want [4]int64 // MiB
	}{
		"krr":        {func() Policy { return newKRR() }, [4]int64{1150, 1150, 1150, 460}},
		"cruisekube": {func() Policy { return newCruiseKube() }, [4]int64{2000, 2000, 800, 800}},
	} {
		p := c.make()
		for hour := range 15 * 24 {
			at := someDay.Add(time.Duration(hour) * time.Hour)
			use := 400 * mib
			if hour == 0 {
				use = 1000 * mib
			}
			p.Observe(at, use, 4000*mib)
			for i, checked := range []int{0, 24, 8 * 24, 15*24 - 1} {
				if got := p.Limit(at, 4000*mib); hour == checked && got != c.want[i]*mib {
					t.Errorf("%s after %d hours: %d MiB, want %d", name, hour, got>>20, c.want[i])
				}
			}
		}
	}
	k := newKRR()
	k.Observe(someDay, 20*mib, 64*mib)
	if got := k.Limit(someDay, 64*mib); got != krrLeast {
		t.Errorf("krr: %d for 20 MiB, want its minimum of 100 MB", got)
	}
}

// TestAKillCountsAsUseOfTheLimit: otherwise a peer would be killed at every sample above a limit that it never raises.
func TestAKillCountsAsUseOfTheLimit(t *testing.T) {
	for name, p := range map[string]Policy{"krr": newKRR(), "cruisekube": newCruiseKube(), "attune": &attune{}} {
		p.Observe(someDay, 100*mib, 200*mib)
		p.Killed(someDay.Add(time.Minute), 200*mib)
		if got := p.Limit(someDay.Add(time.Minute), 200*mib); got <= 220*mib {
			t.Errorf("%s after a kill at 200 MiB: %d MiB", name, got>>20)
		}
	}
}

// TestAttuneTakesTheWorstHourOfTheDay: it uses the P99 of that hour, and a step is at most 30 % of the limit.
func TestAttuneTakesTheWorstHourOfTheDay(t *testing.T) {
	a := &attune{}
	for minute := range 3 * 60 {
		use := 100 * mib
		if minute >= 60 && minute < 120 {
			use = 200 * mib
		}
		if minute == 90 {
			use = 2000 * mib
		}
		at := someDay.Add(time.Duration(minute) * time.Minute)
		a.Observe(at, use, 4000*mib)
		if minute%60 == 59 {
			a.Limit(at, 4000*mib)
		}
	}
	at := someDay.Add(3 * time.Hour)
	// of 60 values, rank 58.41: 41 % of the way from 200 MiB to 2000
	if got, want := a.Limit(at, 1000*mib), int64(1218); got/mib < want-2 || got/mib > want+2 {
		t.Errorf("%d MiB, want about %d: (200 + 0.41 x 1800) x 1.3", got/mib, want)
	}
	if got := a.Limit(at, 4000*mib); got != 2800*mib {
		t.Errorf("%d MiB from 4000, want one step of 30 %%", got/mib)
	}
}

// TestCruiseKubeRequestsTheHourOfTheDay: its request depends on the hour of the day, its limit on the week.
func TestCruiseKubeRequestsTheHourOfTheDay(t *testing.T) {
	c := newCruiseKube()
	for hour := range 3 * 24 {
		use := 100 * mib
		if hour%24 == 9 {
			use = 500 * mib
		}
		c.Observe(someDay.Add(time.Duration(hour)*time.Hour), use, 4000*mib)
		if want := use; c.Request(4000*mib) != want {
			t.Fatalf("hour %d: request %d MiB, want %d", hour, c.Request(4000*mib)>>20, want>>20)
		}
	}
	if got := c.Request(64 * mib); got != 64*mib {
		t.Errorf("request %d MiB above the limit of 64", got>>20)
	}
}
