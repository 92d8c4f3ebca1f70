// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/memfit/memfit/internal/memory"
)

func TestWatchdogNoticesAWorkerThatIsStuck(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	d := NewWatchdog(clock)
	web := memory.WorkloadRef{Kind: "Deployment", Namespace: "shop", Name: "web"}
	done := d.Begin(web)
	for range 20 { // other workers are busy, and come to an end
		clock.SetTime(clock.Now().Add(stuckAfter / 20))
		d.Begin(memory.WorkloadRef{Kind: "Deployment", Namespace: "shop", Name: "api"})()
	}
	if err := d.Check(nil); err == nil ||
		!strings.Contains(err.Error(), "Deployment shop/web since 2026-11-20T12:00:00Z") {
		t.Errorf("got %v, want the workload and since when", err)
	}
	done()
	if err := d.Check(nil); err != nil {
		t.Errorf("nobody is on anything, and the check fails: %v", err)
	}
	var nobody *Watchdog
	nobody.Begin(web)()
}
