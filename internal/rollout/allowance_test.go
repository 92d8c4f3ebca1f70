// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// allowed gives the cluster of the test a budget of which others took something ten minutes ago.
func (c *cluster) allowed(budget ChangeBudget, others Spent) {
	others.At = start.Add(-10 * time.Minute)
	c.in.Allowance = &Allowance{Budget: budget, Others: []Spent{others}}
}

// spent is what the state has as taken, as it was written last.
func (c *cluster) spent() (memory.Bytes, int32) {
	c.t.Helper()
	return SumOf(c.state().Spent)
}

func (c *cluster) expectSpent(bytes memory.Bytes, pods int32) {
	c.t.Helper()
	if b, p := c.spent(); b != bytes || p != pods {
		c.t.Errorf("%s and %d pods were taken of the budget, want %s and %d", b, p, bytes, pods)
	}
}

// A pod goes from 100Mi to 256Mi, which takes 156Mi.
func TestARaiseWaitsForTheChangeBudget(t *testing.T) {
	c := newCluster(t, 3, small)
	c.allowed(ChangeBudget{Bytes: 256 * mib}, Spent{Bytes: 50 * mib})
	c.wants(big, false)
	c.reconcile()
	c.passes(5 * time.Second)
	c.reconcile()
	c.expectLimits("256Mi 100Mi 100Mi")
	c.expectSpent(156*mib, 0)
	c.expectReason(
		v1alpha1.ReasonWaitingForBudget, "pod web-2", "206Mi of 256Mi raised", "the change takes 156Mi",
		"2026-03-02T09:00:00Z",
	)
	c.passes(49*time.Minute + 55*time.Second) // what others took counts no more, which is not enough
	c.reconcile()
	c.expectLimits("256Mi 100Mi 100Mi")
	c.expectReason(v1alpha1.ReasonWaitingForBudget, "156Mi of 256Mi raised", "2026-03-02T09:00:00Z")
	if again := c.last.RequeueAfter; again == 0 || again > 10*time.Minute {
		t.Errorf("decides again in %s, and there is room in 10m", again)
	}
	c.passes(10 * time.Minute)
	c.reconcile()
	c.expectLimits("256Mi 256Mi 100Mi")
	c.expectSpent(156*mib, 0)
}

// After a kill a raise in place is sent immediately, and is counted.
func TestARaiseAfterAKillDoesNotWaitForTheBudget(t *testing.T) {
	c := newCluster(t, 3, small)
	c.allowed(ChangeBudget{Bytes: 100 * mib, Pods: 1}, Spent{Bytes: 100 * mib, Pods: 1})
	c.wants(big, true)
	for range 4 {
		c.reconcile()
		c.passes(2 * time.Second)
	}
	c.expectLimits("256Mi 256Mi 256Mi")
	c.expectSpent(3*156*mib, 0)

	c = newCluster(t, 2, small)
	c.allowed(ChangeBudget{Pods: 1}, Spent{Pods: 1})
	for i := range c.in.Pods {
		c.app(i).RestartsOnResize = true
	}
	c.wants(big, true)
	c.reconcile()
	c.expectLimits("100Mi 100Mi")
	c.expectReason(v1alpha1.ReasonWaitingForBudget, "1 of 1 pods disrupted", "156Mi and 1 pod", "2026-03-02T08:50:00Z")
	c.passes(50 * time.Minute)
	c.reconcile()
	c.expectLimits("256Mi 100Mi")
	c.expectSpent(156*mib, 1)
}

// What was taken away is given back regardless of the budget.
func TestARollBackDoesNotWaitForTheBudget(t *testing.T) {
	c := newCluster(t, 3, big)
	c.allowed(ChangeBudget{Bytes: mib}, Spent{Bytes: mib})
	c.lowersTheCanary()
	c.expectLimits("100Mi 256Mi 256Mi")
	c.expectSpent(0, 0) // lowering in place takes nothing
	c.killed(0)
	c.reconcile()
	c.expectLimits("256Mi 256Mi 256Mi")
	c.expectSpent(156*mib, 0)
}

// A memfit that dies between writing and doing takes nothing twice, however often it dies.
func TestACrashLoopTakesTheBudgetOnce(t *testing.T) {
	c := newCluster(t, 3, small)
	c.allowed(ChangeBudget{Bytes: 200 * mib}, Spent{})
	c.wants(big, false)
	for range 10 {
		c.reconcileAndDie(0)
		c.passes(time.Second)
	}
	c.expectLimits("100Mi 100Mi 100Mi")
	c.expectSpent(156*mib, 0)
	c.reconcile()
	c.passes(5 * time.Second)
	c.reconcile()
	c.expectLimits("256Mi 100Mi 100Mi")
	c.expectSpent(156*mib, 0)
	c.expectReason(v1alpha1.ReasonWaitingForBudget)
}

// Evictions for a size and for leaking memory take of the same budget; what a PodDisruptionBudget refuses takes none.
func TestEvictionsTakePodsOfTheBudget(t *testing.T) {
	c := newCluster(t, 3, big)
	c.in.Policy.Evict = true
	c.allowed(ChangeBudget{Pods: 2}, Spent{Pods: 1})
	for i := range c.in.Pods {
		c.app(i).FrozenHeap, c.app(i).Overhead = 192*mib, 20*mib // so that a lower limit takes an eviction
	}
	refused := 0
	c.evict = func(Action) string {
		if refused++; refused <= 3 {
			return v1alpha1.ReasonDisruptionBudget
		}
		return ""
	}
	c.wants(small, false)
	for range 3 {
		c.evictsTheCanary()
		c.expectSpent(0, 0)
		c.passes(2 * time.Minute)
	}
	c.evictsTheCanary()
	c.expectSpent(0, 1)
	if c.evictions() != 1 {
		t.Errorf("evicted %d pods: %v", c.evictions(), c.log)
	}
	c.passes(11 * time.Minute)
	c.reconcile() // the canary was watched
	c.passes(11 * time.Minute)
	c.reconcile()
	c.in.Restart = &Candidate{Pod: c.in.Pods[2].Name, UID: c.in.Pods[2].UID, Why: "container app climbs"}
	c.reconcile()
	if c.evictions() != 1 ||
		!strings.Contains(c.last.RestartBlocked, "2 of 2 pods disrupted, and the change takes 1 pod") {
		t.Errorf("evicted %d pods, restart held: %q\n%v", c.evictions(), c.last.RestartBlocked, c.log)
	}
	c.passes(25 * time.Minute) // what others took counts no more
	c.reconcile()
	if c.expectSpent(0, 2); c.last.RestartBlocked != "" {
		t.Errorf("restart held: %q", c.last.RestartBlocked)
	}
}

func TestAChangeBeyondTheWholeBudgetSaysSo(t *testing.T) {
	c := newCluster(t, 1, small)
	c.allowed(ChangeBudget{Bytes: 100 * mib}, Spent{})
	c.wants(big, false)
	c.reconcile()
	c.expectLimits("100Mi")
	c.expectReason(v1alpha1.ReasonWaitingForBudget, "takes 156Mi", "whole change budget of 100Mi", "--change-budget-bytes")
}

// Before it is known what was taken, only what waits for no budget is done.
func TestAnUnknownBudgetAllowsNothing(t *testing.T) {
	c := newCluster(t, 2, small)
	c.in.Allowance = &Allowance{Budget: ChangeBudget{Pods: 100, Bytes: 100 * memory.GiB}, Unknown: true}
	c.wants(big, false)
	c.reconcile()
	c.expectLimits("100Mi 100Mi")
	c.expectReason(v1alpha1.ReasonWaitingForBudget, "is still being read")
	c.wants(big, true)
	c.reconcile()
	c.expectLimits("256Mi 256Mi")
}

// TestNoHourHoldsMoreThanTheBudget: over half a day, at whatever moments memfit looks.
func TestNoHourHoldsMoreThanTheBudget(t *testing.T) {
	for _, every := range []time.Duration{time.Minute, 7 * time.Minute, 59 * time.Minute} {
		c := newCluster(t, 12, small)
		c.allowed(ChangeBudget{Bytes: 500 * mib}, Spent{}) // three pods
		c.wants(big, false)
		var raised []time.Time
		for range 12 * time.Hour / every {
			before := strings.Count(c.limits(), "256Mi")
			c.reconcile()
			for range strings.Count(c.limits(), "256Mi") - before {
				raised = append(raised, c.in.Now)
			}
			c.passes(every)
		}
		if len(raised) != 12 {
			t.Errorf("every %s: %d of 12 pods were raised in half a day: %s", every, len(raised), c.last.Message)
		}
		for i := 3; i < len(raised); i++ {
			if raised[i].Sub(raised[i-3]) < time.Hour {
				t.Errorf("every %s: four pods were raised from %s to %s", every, raised[i-3], raised[i])
			}
		}
	}
}

func TestWhatIsKeptOfTheBudgetIsBounded(t *testing.T) {
	var all []Spent
	for i := range 1000 {
		all = append(all, Spent{At: start.Add(time.Duration(i) * time.Second), UID: "x", Bytes: mib, Pods: 1})
	}
	kept := compacted(slices.Clone(all))
	bytes, pods := SumOf(kept)
	if len(kept) != maxSpent || bytes != 1000*mib || pods != 1000 {
		t.Errorf("%d entries of %s and %d pods", len(kept), bytes, pods)
	}
	for _, now := range []time.Duration{time.Hour, time.Hour + 5*time.Minute, 2 * time.Hour} {
		_, exact := SumOf(Recent(all, start.Add(now)))
		if _, less := SumOf(Recent(kept, start.Add(now))); less < exact {
			t.Errorf("after %s %d count, and %d would", now, less, exact)
		}
	}
}

// TestWithoutABudgetNothingIsKept: without a budget nothing is stored for it.
func TestWithoutABudgetNothingIsKept(t *testing.T) {
	c := newCluster(t, 1, small)
	c.wants(big, false)
	c.reconcile()
	if stored := string(c.stored()); strings.Contains(stored, "spent") {
		t.Error(stored)
	}
}

// TestALimitThatGoesWithoutItsRequestIsPaidOnce: the restart that both were to have is that of the limit alone.
func TestALimitThatGoesWithoutItsRequestIsPaidOnce(t *testing.T) {
	pod := Pod{Containers: []Container{{Name: "app", RestartsOnResize: true, Spec: big, Actual: small}}}
	alone := map[string]memory.Size{"app": size(small.Request, big.Limit)}
	pod.Resize.Deferred = true
	if got := pod.cost(alone, false); got.Pods != 0 || got.Bytes != 0 {
		t.Errorf("%+v, want nothing", got)
	}
	pod.Resize.Deferred, pod.Containers[0].Actual = false, size(small.Request, big.Limit)
	if got := pod.cost(map[string]memory.Size{"app": small}, false); got.Pods != 1 {
		t.Errorf("%+v, want a pod", got)
	}
}
