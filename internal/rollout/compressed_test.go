// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/test/compress"
)

// canary lowers a limit in the first of three pods, which is watched for as long as the profile says; 0: it does not.
func canary(t *testing.T, watch time.Duration) *cluster {
	c := newCluster(t, 3, big)
	c.in.Policy.Watch = cmp.Or(watch, c.in.Policy.Watch)
	c.wants(small, false)
	c.reconcile()
	c.passes(2 * time.Second)
	c.reconcile()
	c.expectLimits("100Mi 256Mi 256Mi")
	c.expectReason(v1alpha1.ReasonWatching)
	return c
}

func TestACanaryPassesAfterTheCompressedWatch(t *testing.T) {
	compress.By(t, 60)
	c := canary(t, 0)
	c.passes(8 * time.Second)
	c.reconcile()
	c.expectLimits("100Mi 256Mi 256Mi")
	c.passes(2 * time.Second)
	c.reconcile()
	c.expectLimits("100Mi 100Mi 256Mi")
}

func TestTheWatchOfAProfileIsRealTime(t *testing.T) {
	compress.By(t, 60)
	c := canary(t, time.Minute)
	c.passes(55 * time.Second)
	c.reconcile()
	c.expectLimits("100Mi 256Mi 256Mi")
	c.passes(5 * time.Second)
	c.reconcile()
	c.expectLimits("100Mi 100Mi 256Mi")
}

func TestARolledBackLimitIsTriedAgainAfterACompressedWeek(t *testing.T) {
	compress.By(t, 60)
	c := canary(t, 0)
	c.killed(0)
	c.passes(time.Second)
	c.reconcile()
	c.expectLimits("256Mi 256Mi 256Mi")
	c.passes((6 * period.Day).Duration()) // 2 h 24 min
	c.reconcile()
	c.expectLimits("256Mi 256Mi 256Mi")
	c.passes((2 * period.Day).Duration())
	c.reconcile()
	c.expectLimits("100Mi 256Mi 256Mi")
}

func TestGatesCountCompressedEvidence(t *testing.T) {
	compress.By(t, 144)
	g := lower()
	g.want.Recommendation.Evidence.Window = 8 * time.Minute
	if why := g.verdict(false).Message; !strings.Contains(why,
		"usage was measured for 8 min, and lowering a limit needs 10 min") {
		t.Errorf("after 19 hours of evidence: %q", why)
	}
	g.want.Recommendation.Evidence.Window = 11 * time.Minute
	if got := g.verdict(false); got != (Verdict{}) {
		t.Errorf("after 26 hours of evidence: %+v", got)
	}
	g.want.WindowPeak = 500 * mib
	if why := g.verdict(false).Message; !strings.Contains(why, "use reached 500Mi within the last 10 min") {
		t.Errorf("%q does not name the real time", why)
	}
	g = raise(false)
	g.d.State.LastChange = start.Add(-20 * time.Second)
	if why := g.verdict(false).Message; !strings.Contains(why, "cooldown 25s") {
		t.Errorf("the cool-down is an hour of evidence: %q", why)
	}
}

func TestMaxPerDayCountsOverACompressedDay(t *testing.T) {
	compress.By(t, 144)
	c := newCluster(t, 2, big)
	c.in.Restart = &Candidate{Pod: "web-1", UID: "uid-1", Measured: start}
	c.in.Policy.RestartsPerDay, c.in.Policy.Cooldown = 1, time.Minute
	c.in.State.PastRestarts = []PastRestart{{Pod: "old", At: start.Add(-9 * time.Minute)}}
	if held := Decide(c.in).RestartBlocked; held != "1 pods were restarted in the last 10m, and drift.maxPerDay is 1" {
		t.Errorf("nine minutes later: %q", held)
	}
	c.in.State.PastRestarts[0].At = start.Add(-10 * time.Minute)
	if got := Decide(c.in); len(got.Actions) != 1 {
		t.Errorf("ten minutes later: %q", got.RestartBlocked)
	}
}
