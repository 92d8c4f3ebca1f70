// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	const s, m, perMinute = time.Second, time.Minute, 60 * stepsPerSecond
	for name, tc := range map[string]struct {
		edit                   func(*Timing)
		wantRequeue, wantRests time.Duration
	}{
		"nothing asks": {func(*Timing) {}, 10 * m, m},
		"the earliest that asks": {
			func(t *Timing) {
				t.decide(9 * m)
				t.decide(5 * m)
				t.decide(0)
			}, 5 * m, m,
		},
		"evidence ages":           {func(t *Timing) { t.decide(5 * m) }, 5 * m, m},
		"a restart is held up":    {func(t *Timing) { t.decide(30 * s) }, 30 * s, 30 * s},
		"a window in two days":    {func(t *Timing) { t.decide(48 * time.Hour) }, 10 * m, m},
		"no sooner than":          {func(t *Timing) { t.decide(s) }, 10 * s, 10 * s},
		"hardly known":            {func(t *Timing) { t.Known = m }, 10 * m, 15 * s},
		"not known":               {func(t *Timing) { t.Known = 0 }, 10 * m, 0},
		"history is to be stored": {func(t *Timing) { t.Checkpoint = 20 * s }, 10 * m, 20 * s},
		"history was not stored":  {func(t *Timing) { t.Checkpoint = -s }, 10 * m, m},
		"no interval":             {func(t *Timing) { t.Interval = 0 }, 10 * m, s / stepsPerSecond},
		"as many as fit":          {func(t *Timing) { t.Workloads = perMinute }, 10 * m, m},
		"twice as many":           {func(t *Timing) { t.Workloads = 2 * perMinute }, 10 * m, 2 * m},
		"a hundred times as many": {func(t *Timing) { t.Workloads = 100 * perMinute }, 10 * m, 5 * m},
		"an interval above that":  {func(t *Timing) { t.Interval, t.Workloads = 8*m, 100*perMinute }, 10 * m, 8 * m},
	} {
		t.Run(name, func(t *testing.T) {
			timing := Timing{Known: 24 * time.Hour, Interval: m, Workloads: 1, Checkpoint: time.Hour}
			tc.edit(&timing)
			if requeueAfter, rest := timing.Next(); requeueAfter != tc.wantRequeue || rest != tc.wantRests {
				t.Errorf("due in %s and after a rest of %s, want %s and %s", requeueAfter, rest, tc.wantRequeue, tc.wantRests)
			}
		})
	}
}

func TestWait(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	resting := Arrival{Now: now, SteppedAt: now.Add(-10 * time.Second), RestUntil: now.Add(50 * time.Second), Pods: 2}
	large := Arrival{Now: now, SteppedAt: now.Add(-time.Second), Pods: 1000}
	with := func(a Arrival, edit func(*Arrival)) Arrival {
		edit(&a)
		return a
	}
	for name, tc := range map[string]struct {
		arrival    Arrival
		wantWait   time.Duration
		wantAbsorb bool
	}{
		"samples alone":      {with(resting, func(a *Arrival) { a.OnlySamples = true }), 50 * time.Second, true},
		"something happened": {resting, 0, false},
		"the rest is over": {
			with(resting, func(a *Arrival) { a.OnlySamples, a.RestUntil = true, now }), 0, false,
		},
		"the state is not known": {with(resting, func(a *Arrival) { a.OnlySamples, a.Suspect = true, true }), 0, false},
		"a thousand pods roll":   {large, time.Second, false},
		"and their samples": {
			with(large, func(a *Arrival) { a.OnlySamples, a.RestUntil = true, now.Add(time.Minute) }), time.Second, false,
		},
		"one of them was killed": {with(large, func(a *Arrival) { a.Ended = true }), 0, false},
		"two seconds later":      {with(large, func(a *Arrival) { a.SteppedAt = now.Add(-2 * time.Second) }), 0, false},
		"as many as never rest": {
			with(large, func(a *Arrival) { a.Pods, a.SteppedAt = fewPods-1, now }), 0, false,
		},
		"one more": {with(large, func(a *Arrival) { a.Pods, a.SteppedAt = fewPods, now }), 100 * time.Millisecond, false},
		"no step before": {
			with(large, func(a *Arrival) { a.SteppedAt = time.Time{} }), 0, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if wait, absorb := tc.arrival.Wait(); wait != tc.wantWait || absorb != tc.wantAbsorb {
				t.Errorf("waits %s (absorb %t), want %s (%t)", wait, absorb, tc.wantWait, tc.wantAbsorb)
			}
		})
	}
}
