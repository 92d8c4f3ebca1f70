// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"
)

// mostAsked is how often the pod was resized that was resized most often.
func (c *cluster) mostAsked() (most int) {
	asked := map[string]int{}
	for _, line := range c.log {
		if words := strings.Fields(line); words[0] == "resize" {
			asked[words[1]]++
			most = max(most, asked[words[1]])
		}
	}
	return most
}

// TestNoPodIsAskedTwiceWithinAnHour: the API server refuses all of more pods than are changed at a time, and of more
// than are remembered.
func TestNoPodIsAskedTwiceWithinAnHour(t *testing.T) {
	for _, n := range []int{100, maxHeld + 50} {
		c := newCluster(t, n, small)
		c.refuse = func(Action) bool { return true }
		c.wants(big, true)
		for c.in.Now.Sub(start) < 59*time.Minute {
			c.reconcile()
			c.passes(30 * time.Second)
		}
		if most := c.mostAsked(); most != 1 || c.writes() != min(n, maxHeld) {
			t.Errorf("of %d pods one was asked %d times, and all together %d times", n, most, c.writes())
		}
		last := &c.in.Pods[n-1]
		c.app(n - 1).Demand = small.Limit
		if c.reconcile(); !c.told("resize " + last.Name + " ") {
			t.Errorf("of %d pods %s waits for its turn, and is full", n, last.Name)
		}
	}
}

// TestWhatCannotBeResizedKeepsNoOtherPodFromItsTurn: their nodes refuse the fullest pods of a workload.
func TestWhatCannotBeResizedKeepsNoOtherPodFromItsTurn(t *testing.T) {
	c := newCluster(t, 100, small)
	for i := range 64 {
		c.app(i).Demand = 90 * mib
	}
	c.node = func(p *Pod) {
		if p.Resize = (Resize{Infeasible: true}); p.Containers[0].Demand < 90*mib {
			p.Resize, p.Containers[0].Actual = Resize{}, p.Containers[0].Spec
		}
	}
	c.wants(big, true)
	for c.in.Now.Sub(start) < 59*time.Minute {
		c.reconcile()
		c.passes(30 * time.Second)
	}
	c.expectLimits(strings.Repeat("100Mi ", 64) + strings.TrimSpace(strings.Repeat("256Mi ", 36)))
	if most := c.mostAsked(); most > 2 { // and taken back
		t.Errorf("a pod was resized %d times", most)
	}
}

// TestARightThatIsMissingIsOneRefusalForAllPods: there are more of them than are changed at a time.
func TestARightThatIsMissingIsOneRefusalForAllPods(t *testing.T) {
	c := newCluster(t, 100, small)
	c.refuse, c.right = func(Action) bool { return true }, true
	c.wants(big, true)
	for c.in.Now.Sub(start) < rightHold {
		c.reconcile()
		c.passes(30 * time.Second)
	}
	if c.writes() != maxWatched || len(c.written.Refusals) != 1 {
		t.Errorf("asked %d times, and remembered %d times", c.writes(), len(c.written.Refusals))
	}
	c.refuse = nil
	for range 8 {
		c.reconcile()
		c.passes(30 * time.Second)
	}
	c.expectLimits(strings.TrimSpace(strings.Repeat("256Mi ", 100)))
}

// TestPodsThatAreRefusedAreEvictedHoweverManyTheyAre: evictions have to wait for a maintenance window.
func TestPodsThatAreRefusedAreEvictedHoweverManyTheyAre(t *testing.T) {
	c := newCluster(t, maxHeld+22, small)
	c.refuse = func(Action) bool { return true }
	c.in.Policy.Evict, c.in.Policy.Windows = true, nightly(t)
	c.passes(17*time.Hour + 30*time.Minute) // 01:30
	c.wants(big, false)
	for range 55 {
		c.reconcile()
		c.passes(time.Minute)
	}
	if n := c.evictions(); n < 10 {
		t.Errorf("%d pods were evicted in a window: %s", n, c.last.Message)
	}
}

// TestPodsThatWaitForTheirNodesTakeNoPlaceOfOthers: as many as are changed at a time wait, and are remembered.
func TestPodsThatWaitForTheirNodesTakeNoPlaceOfOthers(t *testing.T) {
	c := newCluster(t, maxWatched+8, size(100*mib, 100*mib))
	c.fills()
	full := c.node
	c.node = func(p *Pod) {
		if full(p); c.find(p.UID).Name > "web-38" { // 39, 40, 4 to 9: eight
			p.Resize, p.Containers[0].Actual = Resize{}, p.Containers[0].Spec
		}
	}
	for i := range c.in.Pods {
		c.in.Pods[i].QoS = "Guaranteed"
	}
	c.wants(size(200*mib, 200*mib), true)
	for range 20 {
		c.reconcile()
		c.passes(time.Minute)
	}
	for i, p := range c.in.Pods {
		if got := c.app(i).Actual.Limit; (got == 200*mib) != (p.Name > "web-38") {
			t.Errorf("pod %s has %s: %s", p.Name, got, c.last.Message)
		}
	}
	c.written = c.state()
	if got := len(c.written.Steps); got < maxWatched {
		t.Errorf("%d steps are remembered", got)
	}
}

// TestAHoldOfLowerLimitsOutlastsOneOfAll: the budget refuses an eviction for a kill, for a minute.
func TestAHoldOfLowerLimitsOutlastsOneOfAll(t *testing.T) {
	inVain := Refusal{UID: "uid-1", Evict: true, All: true, OnlyLower: true, Until: start.Add(unsizedHold.Duration())}
	for _, first := range []bool{true, false} {
		var s State
		if first {
			s.refuse(inVain)
		}
		s.Note(Action{UID: "uid-2", Evict: true}, Outcome{Kind: OutcomeBudget}, start)
		if !first {
			s.refuse(inVain)
		}
		for after, want := range map[time.Duration]int{0: 2, budgetHold: 1, unsizedHold.Duration(): 0} {
			later := s.clone()
			if later.forget(nil, nil, start.Add(after)); len(later.Refusals) != want {
				t.Errorf("first: %t, after %s: %+v", first, after, later.Refusals)
			}
		}
	}
}
