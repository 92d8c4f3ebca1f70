// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"testing"
	"time"
)

// TestDebts: together they are paid at the share, and a small one does not wait for a large one.
func TestDebts(t *testing.T) {
	start := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	d := debts{paid: start}
	d.charge("cheap", maxSharedTime, start)
	d.charge("hostile", 5*time.Second, start)
	d.charge("shop", 400*time.Millisecond, start)
	free := map[string]time.Duration{}
	for passed := time.Duration(0); passed < time.Hour; passed += TickEvery {
		d.pay(start.Add(passed), maxInspect)
		for _, namespace := range []string{"cheap", "hostile", "shop"} {
			if _, known := free[namespace]; !known && d.owed[namespace] <= 0 {
				free[namespace] = passed.Round(time.Second)
			}
		}
	}
	// 0.4 s twice, because two pay, and 5.4 s in all
	for namespace, want := range map[string]time.Duration{
		"cheap": 0, "shop": 160 * time.Second, "hostile": 1080 * time.Second,
	} {
		if got := free[namespace]; got < want-time.Second || got > want+time.Second {
			t.Errorf("%s pays for %s, want %s", namespace, got, want)
		}
	}
}

// TestRest: after an inspection that took long, only an urgent one begins soon, and the remainder is left to its
// namespace.
func TestRest(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	var a allowance
	if !a.urgent.rested(now) || !a.normal.rested(now) {
		t.Error("it rests before the first inspection")
	}
	a.charge("shop", time.Hour, time.Hour, now)
	for after, want := range map[time.Duration][2]bool{
		0: {false, false}, 2*time.Second - 1: {false, false}, 2 * time.Second: {true, false},
		20*time.Second - 1: {true, false}, 20 * time.Second: {true, true},
	} {
		if got := [2]bool{a.urgent.rested(now.Add(after)), a.normal.rested(now.Add(after))}; got != want {
			t.Errorf("after %s rested: %v, want %v", after, got, want)
		}
	}
	if a.normal.owed["shop"] == 0 || a.urgent.owed["shop"] == 0 || a.normal.owed["bank"] > 0 {
		t.Error("the namespace that cost an hour owes nothing, or another one does")
	}
}

// TestRestLeavesTheAgentItsShare: inspections take half a percent of a core, and less where the rest of the agent takes
// more than it should.
func TestRestLeavesTheAgentItsShare(t *testing.T) {
	const took = 10 * time.Millisecond
	for others, want := range map[float64]float64{0: 0.5, 0.3: 0.5, 0.6: 0.3, 3: minInspect} {
		var a allowance
		now, agent := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC), time.Second // what it took to start does not count
		for range 40 {
			a.charge("shop", took, agent, now)
			if urgently := a.urgent.next.Sub(now); urgently != 20*took {
				t.Errorf("what is urgent waits %s after %s", urgently, took)
			}
			normally := a.normal.next.Sub(now)
			now, agent = a.normal.next, agent+took+time.Duration(others/100*float64(normally))
		}
		a.charge("shop", took, agent, now)
		if got := 100 * float64(took) / float64(a.normal.next.Sub(now)); got < want-0.02 || got > want+0.02 {
			t.Errorf("inspections take %.2f %% beside %.1f %% for anything else, want %.2f", got, others, want)
		}
	}
}
