// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/maintenance"
)

// nightly is from 02:00 to 05:00 UTC, and the tests begin at 08:00.
func nightly(t *testing.T) maintenance.Windows {
	t.Helper()
	w, err := maintenance.Parse("0 2 * * *", 3*time.Hour, "")
	if err != nil {
		t.Fatal(err)
	}
	return maintenance.Windows{w}
}

func TestLoweringWaitsForAMaintenanceWindow(t *testing.T) {
	c := newCluster(t, 3, big)
	c.in.Policy.Windows = nightly(t)
	c.wants(small, false)
	c.reconcile()
	c.expectLimits("256Mi 256Mi 256Mi")
	c.expectReason(v1alpha1.ReasonWaitingForWindow, "2026-03-03T02:00:00Z")
	if again := c.last.RequeueAfter; again != 18*time.Hour+time.Second {
		t.Errorf("decides again in %s, and nothing can change before the window opens in 18h", again)
	}
	c.passes(18 * time.Hour)
	c.reconcile()
	c.expectLimits("100Mi 256Mi 256Mi")
	c.passes(5 * time.Second)
	c.reconcile()
	c.passes(2*time.Hour + 58*time.Minute) // 04:58: the canary has borne it
	c.reconcile()
	c.expectLimits("100Mi 100Mi 256Mi")
	c.passes(5 * time.Minute) // 05:03
	c.reconcile()
	c.passes(time.Hour)
	c.reconcile()
	c.expectLimits("100Mi 100Mi 256Mi")
	c.expectReason(v1alpha1.ReasonWaitingForWindow, "2 of 3 pods", "2026-03-04T02:00:00Z")
	c.passes(20 * time.Hour)
	c.reconcile()
	c.expectLimits("100Mi 100Mi 100Mi")
}

// A canary that is killed after the window has closed gets its limit back immediately.
func TestARollBackWaitsForNoWindow(t *testing.T) {
	for _, raises := range []bool{false, true} {
		c := newCluster(t, 3, big)
		c.in.Policy.Windows, c.in.Policy.IncreasesInWindows = nightly(t), raises
		c.wants(small, false)
		c.passes(20*time.Hour + 58*time.Minute) // 04:58
		c.reconcile()
		c.passes(5 * time.Second)
		c.reconcile()
		c.expectLimits("100Mi 256Mi 256Mi")
		c.passes(5 * time.Minute)
		c.killed(0)
		c.reconcile()
		c.expectLimits("256Mi 256Mi 256Mi")
	}
}

// TestARollbackWaitsForNothingWhereMoreIsNeededAsWell: a kill asks for more than the limit before as a rule. That
// waits, and what memfit had taken does not.
func TestARollbackWaitsForNothingWhereMoreIsNeededAsWell(t *testing.T) {
	more := size(200*mib, 330*mib)
	for name, tc := range map[string]struct {
		begins, ends func(in *Input)
		reason       string
	}{
		"a pause": {
			func(in *Input) { in.Paused = "memfit.dev/pause" }, func(in *Input) { in.Paused = "" }, v1alpha1.ReasonPaused,
		},
		"raises in windows": {
			func(in *Input) { in.Policy.Windows, in.Policy.IncreasesInWindows = nightly(t), true },
			func(in *Input) { in.Policy.Windows = nil }, v1alpha1.ReasonWaitingForWindow,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, big)
			c.lowersAll()
			tc.begins(&c.in)
			c.killed(0)
			c.wants(more, true)
			for range 3 {
				c.reconcile()
				c.passes(time.Minute)
				c.expectLimits("256Mi 256Mi 256Mi")
			}
			c.expectReason(tc.reason)
			tc.ends(&c.in)
			c.reconcile()
			c.expectLimits("330Mi 330Mi 330Mi")
		})
	}
}

// TestARollbackThatIsRefusedIsNotRepeated: the API server has refused it, and more is needed besides.
func TestARollbackThatIsRefusedIsNotRepeated(t *testing.T) {
	c := newCluster(t, 1, big)
	c.wants(small, false)
	c.reconcile()
	c.passes(c.in.Policy.Watch)
	c.reconcile()
	c.in.Paused = "memfit.dev/pause"
	c.refuse = func(Action) bool { return true }
	c.killed(0)
	c.wants(size(200*mib, 330*mib), true)
	before := len(c.log)
	for range 10 {
		c.reconcile()
		c.passes(time.Minute)
	}
	if asked := strings.Count(strings.Join(c.log[before:], "\n"), "resize web-1"); asked != 1 {
		t.Errorf("asked %d times within 10 minutes: %v", asked, c.log)
	}
}

func TestRaisesAndWindows(t *testing.T) {
	tests := []struct {
		name              string
		urgent, inWindows bool
		restarts          bool
		raised            bool
	}{
		{name: "in place", raised: true},
		{name: "in place, with a restart", restarts: true},
		{name: "after a kill, with a restart", urgent: true, restarts: true, raised: true},
		{name: "in place, and raises wait", inWindows: true},
		{name: "after a kill, and raises wait", urgent: true, inWindows: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, 2, small)
			c.in.Policy.Windows, c.in.Policy.IncreasesInWindows = nightly(t), tc.inWindows
			for i := range c.in.Pods {
				c.app(i).RestartsOnResize = tc.restarts
			}
			c.wants(big, tc.urgent)
			c.reconcile()
			after := "256Mi 256Mi"
			if tc.restarts {
				after = "256Mi 100Mi" // one pod at a time
			}
			if tc.raised {
				c.expectLimits(after)
				return
			}
			c.expectLimits("100Mi 100Mi")
			c.expectReason(v1alpha1.ReasonWaitingForWindow, "2026-03-03T02:00:00Z")
			c.passes(18 * time.Hour)
			c.reconcile()
			c.expectLimits(after)
		})
	}
}

func TestEvictionsAndRestartsWaitForAWindow(t *testing.T) {
	c := newCluster(t, 3, big)
	c.in.Policy.Evict, c.in.Policy.Windows = true, nightly(t)
	for i := range c.in.Pods {
		c.app(i).FrozenHeap, c.app(i).Overhead = 192*mib, 20*mib // so that a lower limit takes an eviction
	}
	c.wants(small, false)
	c.in.Restart = &Candidate{Pod: "web-3", UID: "uid-3", Why: "container app climbs"}
	c.reconcile()
	if c.evictions() != 0 || !strings.Contains(c.last.RestartBlocked, "2026-03-03T02:00:00Z") {
		t.Errorf("evicted outside of the window: %q, %v", c.last.RestartBlocked, c.log)
	}
	c.passes(18 * time.Hour)
	c.reconcile()
	if c.evictions() != 1 || !c.told("restarted web-3") {
		t.Errorf("the window is open, and %v", c.log)
	}
}

// An eviction that was written down and could not be carried out before the window closed is not carried out after it.
func TestWhatTheWindowLeftUndoneIsNotDoneAfterIt(t *testing.T) {
	c := newCluster(t, 2, big)
	c.in.Policy.Evict, c.in.Policy.Windows = true, nightly(t)
	for i := range c.in.Pods {
		c.app(i).FrozenHeap, c.app(i).Overhead = 192*mib, 20*mib
	}
	c.wants(small, false)
	c.passes(20*time.Hour + 59*time.Minute) // 04:59
	c.reconcileAndDie(0)                    // written down, and killed before it is done
	if !c.last.State.underWay() {
		t.Fatalf("nothing was written down: %s %s", c.last.Reason, c.last.Message)
	}
	c.passes(2 * time.Minute)
	c.reconcile()
	if c.evictions() != 0 {
		t.Errorf("evicted after the window: %v", c.log)
	}
	c.expectReason(v1alpha1.ReasonWaitingForWindow)
}
