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
	d.charge("cheap", SharedMost)
	d.charge("hostile", 5*time.Second)
	d.charge("shop", 400*time.Millisecond)
	free := map[string]time.Duration{}
	for passed := time.Duration(0); passed < time.Hour; passed += TickEvery {
		d.pay(start.Add(passed), InspectMost)
		for _, namespace := range []string{"cheap", "hostile", "shop"} {
			if _, known := free[namespace]; !known && !d.owes(namespace) {
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
