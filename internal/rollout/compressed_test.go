// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/test/compress"
)

// canary lowers a limit in the first of three pods.
func canary(t *testing.T, watch time.Duration) *cluster {
	c := newCluster(t, 3, big)
	c.in.Policy.Watch = watch
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
