// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
)

// counts lets a quota count what pods ask for, as the API server does.
func (c *cluster) counts(hard memory.Bytes) {
	for i := range c.in.Pods {
		hard = hard.Minus(c.app(i).Spec.Limit)
	}
	c.desired(func(d *Desired) { d.Quota = constraints.Quota{Name: "team", Limits: max(hard, constraints.Exhausted)} })
}

// TestAQuotaCountsWhatPodsLack: nine of ten pods have what is recommended, and the quota counts that already.
func TestAQuotaCountsWhatPodsLack(t *testing.T) {
	c := newCluster(t, 10, size(50*mib, 600*mib))
	c.app(9).Spec, c.app(9).Actual = size(50*mib, 64*mib), size(50*mib, 64*mib)
	c.wants(size(50*mib, 600*mib), false)
	c.counts(7000 * mib)
	c.reconcile()
	c.expectLimits(strings.TrimSpace(strings.Repeat("600Mi ", 10)))
}

// TestAQuotaHoldsTheLastPodsOfARaise: 32 of 40 pods are changed at a time, and what is left then is enough for the
// others.
func TestAQuotaHoldsTheLastPodsOfARaise(t *testing.T) {
	c := newCluster(t, 40, small)
	c.wants(size(70*mib, 200*mib), false)
	for range 3 {
		c.counts(40 * 200 * mib)
		c.reconcile()
	}
	c.expectLimits(strings.TrimSpace(strings.Repeat("200Mi ", 40)))
}

// TestAQuotaIsNotKeptForAFirstLimit: a pod that runs without a limit gets none, and takes nothing of the quota for it.
func TestAQuotaIsNotKeptForAFirstLimit(t *testing.T) {
	c := newCluster(t, 3, size(70*mib, 0))
	c.app(0).Spec, c.app(0).Actual = small, small
	c.wants(size(70*mib, 200*mib), false)
	c.counts(200 * mib)
	c.reconcile()
	c.expectLimits("200Mi 0 0")
}

// TestAQuotaThatDoesNotHoldARaiseIsLeftToOthers: no kill asks for it, and new pods need what is left. The requests,
// which no quota counts, are raised, and do not make a pod Guaranteed.
func TestAQuotaThatDoesNotHoldARaiseIsLeftToOthers(t *testing.T) {
	c := newCluster(t, 3, small)
	c.wants(big, false)
	c.counts(600 * mib)
	for range 2 {
		c.reconcile()
		for i := range c.in.Pods {
			if got := c.app(i).Spec; got != size(99*mib, 100*mib) {
				t.Errorf("pod %d has %s, want the limit that it had and a request of 99Mi", i, got)
			}
		}
	}
	c.expectReason(v1alpha1.ReasonResourceQuota, "468Mi more limits.memory for 3 replicas, but quota team leaves 300Mi")
}

// TestTheRequestFollowsWhereAQuotaIsUsedUp: a killed pod took what the quota left, and uses more than it requests.
func TestTheRequestFollowsWhereAQuotaIsUsedUp(t *testing.T) {
	c := newCluster(t, 1, size(68*mib, 140*mib))
	c.app(0).Demand = 102 * mib
	c.wants(size(110*mib, 300*mib), true)
	c.counts(140 * mib)
	c.reconcile()
	if got := c.app(0).Spec; got != size(110*mib, 140*mib) {
		t.Errorf("the pod has %s, want a request of 110Mi", got)
	}
	c.reconcile()
	c.reconcile()
	c.expectReason(v1alpha1.ReasonResourceQuota, "quota team leaves nothing")
}

// TestARollbackTakesWhatTheQuotaLeaves: another team has used what the lower limits had freed. The fullest pod comes
// first, and gets a part of what was rolled back rather than nothing.
func TestARollbackTakesWhatTheQuotaLeaves(t *testing.T) {
	c := newCluster(t, 3, big)
	c.lowersTheCanary()
	for range 4 {
		c.passes(c.in.Policy.Watch)
		c.reconcile()
	}
	c.expectLimits("100Mi 100Mi 100Mi")
	c.killed(1)
	c.app(1).Demand = 99 * mib
	c.counts(500 * mib)
	c.reconcileAndDie(0) // what is written down counts before the quota counts it
	c.reconcile()
	c.expectLimits("144Mi 256Mi 100Mi")
	c.counts(500 * mib)
	c.reconcile()
	c.expectReason(v1alpha1.ReasonResourceQuota, "quota team leaves nothing", "1 of 3 pods")
	c.counts(900 * mib)
	c.reconcile()
	c.expectLimits("256Mi 256Mi 256Mi")
}

// TestARollbackTakesWhatALimitRangeAllows: it was added after the limit had been lowered, and pods that run keep what
// they have.
func TestARollbackTakesWhatALimitRangeAllows(t *testing.T) {
	c := newCluster(t, 2, big)
	c.lowersTheCanary()
	for range 3 {
		c.passes(c.in.Policy.Watch)
		c.reconcile()
	}
	c.expectLimits("100Mi 100Mi")
	c.desired(func(d *Desired) { d.Range = constraints.Range{Name: "team", Max: 160 * mib} })
	c.killed(1)
	c.reconcile()
	c.expectLimits("160Mi 160Mi")
	c.reconcile()
	c.reconcile()
	c.expectReason(v1alpha1.ReasonLimitRange, "limit 256Mi is above the maximum of 160Mi in LimitRange team")
	c.refuse = func(Action) bool { return true }
	c.desired(func(d *Desired) { d.Range.Max = 200 * mib })
	for range 5 { // what the API server refuses is the part that was asked for
		c.reconcile()
	}
	if n := strings.Count(strings.Join(c.log, "\n"), "app 160Mi to 200Mi"); n != 2 {
		t.Errorf("asked for %d times, want once for each pod: %v", n, c.log)
	}
}

// TestTheFullestContainerTakesWhatALimitRangeLeavesItsPod: both containers of a pod need more, and a LimitRange bounds
// their sum. One that is killed does not stay at its limit because both do not fit.
func TestTheFullestContainerTakesWhatALimitRangeLeavesItsPod(t *testing.T) {
	for most, want := range map[memory.Bytes][2]memory.Bytes{
		600: {256, 256}, 400: {144, 256}, 300: {100, 200}, 210: {100, 110}, 200: {100, 100},
	} {
		c := newCluster(t, 1, small)
		pod := &c.in.Pods[0]
		pod.Containers = append(pod.Containers, pod.Containers[0])
		pod.Containers[1].Name, pod.Containers[1].Demand = "proxy", 90*mib
		pod.Inadmissible = func(sizes map[string]memory.Size) string {
			var sum memory.Bytes
			for _, running := range c.in.Pods[0].Containers {
				if size, asked := sizes[running.Name]; asked {
					running.Spec = size
				}
				sum += running.Spec.Limit
			}
			if sum > most*mib {
				return "all containers of the pod together: limit " + sum.String()
			}
			return ""
		}
		c.wants(big, true)
		c.in.Desired[Key{Container: "proxy"}] = c.in.Desired[Key{Container: "app"}]
		c.reconcile()
		for i, limit := range want {
			if got := c.in.Pods[0].Containers[i].Spec; got.Limit != limit*mib || got.Request > got.Limit {
				t.Errorf("with %dMi for the pod, container %d has %s, want limit %dMi", most, i, got, limit)
			}
		}
	}
}

// TestARangeBringsSizesWithinIt: a request that equals the limit still does, and one below the ratio is raised.
func TestARangeBringsSizesWithinIt(t *testing.T) {
	for _, tc := range []struct {
		r        constraints.Range
		to, want memory.Size
	}{
		{constraints.Range{Max: 512 * mib}, size(100*mib, 1024*mib), size(100*mib, 512*mib)},
		{constraints.Range{Max: 512 * mib}, size(1024*mib, 1024*mib), size(512*mib, 512*mib)},
		{constraints.Range{Min: 64 * mib}, size(10*mib, 20*mib), size(64*mib, 64*mib)},
		{constraints.Range{Ratio: 2000}, size(10*mib, 100*mib), size(50*mib, 100*mib)},
		{constraints.Range{}, size(10*mib, 100*mib), size(10*mib, 100*mib)},
	} {
		if got := tc.r.Within(tc.to); got != tc.want {
			t.Errorf("%+v brings %s to %s, want %s", tc.r, tc.to, got, tc.want)
		}
	}
}
