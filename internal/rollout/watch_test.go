// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// withSidecar is a cluster whose pods have a sidecar besides.
func withSidecar(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, 2, big)
	for i := range c.in.Pods {
		pod := &c.in.Pods[i]
		pod.Containers = append(pod.Containers, Container{
			Name: "proxy", Spec: small, Actual: small, Started: c.in.Now.Add(-time.Hour), Ready: true,
		})
	}
	c.passes(time.Hour)
	return c
}

// watched is one whose first pod runs with a lower limit.
func watched(t *testing.T) *cluster {
	t.Helper()
	c := withSidecar(t)
	c.lowersTheCanary()
	c.expectLimits("100Mi 256Mi")
	return c
}

// TestTheWatchAsksForTheContainerWhoseLimitIsLower: what happens to its sidecar or to its node is not for its limit.
func TestTheWatchAsksForTheContainerWhoseLimitIsLower(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(c *cluster, pod *Pod)
		says    string // of the rollback; empty: there is none
	}{
		"its node restarts": {func(c *cluster, pod *Pod) {
			for i := range pod.Containers {
				pod.Containers[i].Restarts++
			}
		}, ""},
		"its sidecar crashes": {func(c *cluster, pod *Pod) { pod.Containers[1].Restarts += 5 }, ""},
		"its sidecar is not ready": {func(c *cluster, pod *Pod) {
			c.apart, pod.Ready, pod.Containers[1].Ready = true, false, false
		}, ""},
		"its node is lost": {func(c *cluster, pod *Pod) { c.apart, pod.Ready = true, false }, ""},
		"it ends by itself": {func(c *cluster, pod *Pod) {
			pod.Containers[0].Restarts += 3
			pod.Containers[0].EndedWell = true
		}, ""},
		"it crashes": {func(c *cluster, pod *Pod) { pod.Containers[0].Restarts += 2 },
			"container app of pod web-1 restarted 2 times"},
		"it is not ready": {func(c *cluster, pod *Pod) {
			c.apart, pod.Ready, pod.Containers[0].Ready = true, false, false
		}, "pod web-1 has not been ready since 2026-03-02T09:01:05Z, and was ready before that limit"},
		"it starts anew": {func(c *cluster, pod *Pod) {
			c.apart, pod.Ready, pod.Containers[0].Ready = true, false, false
			pod.Containers[0].Restarts, pod.Containers[0].Started = 1, c.in.Now
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := watched(t)
			c.passes(time.Minute)
			tc.happens(c, &c.in.Pods[0])
			for range 6 {
				c.reconcile()
				c.passes(30 * time.Second)
			}
			if c.told("Reverted") != (tc.says != "") || !c.told(tc.says) {
				t.Errorf("want %q: %v", tc.says, c.log)
			}
		})
	}
}

// TestAWatchedPodOfALostNodeProvesNothing: that nothing is heard of it is no proof.
func TestAWatchedPodOfALostNodeProvesNothing(t *testing.T) {
	c := watched(t)
	c.apart, c.in.Pods[0].Ready = true, false
	for range 30 {
		c.passes(time.Minute)
		c.reconcile()
	}
	if proven := c.written.Proven("app", ""); proven != (memory.Size{}) {
		t.Errorf("proven is %s", proven)
	}
	c.in.Pods[0].Ready = true
	c.reconcile()
	c.passes(time.Second)
	c.reconcile()
	c.expectLimits("100Mi 100Mi")
}

// TestOnlyTheContainerThatCrashesGetsItsLimitBack: two of a pod were lowered, and one of them crashes.
func TestOnlyTheContainerThatCrashesGetsItsLimitBack(t *testing.T) {
	c := newCluster(t, 2, big)
	for i := range c.in.Pods {
		pod := &c.in.Pods[i]
		pod.Containers = append(pod.Containers, Container{
			Name: "worker", Spec: big, Actual: big, Started: c.in.Now.Add(-time.Hour), Demand: 50 * mib,
		})
	}
	c.wants(small, false)
	c.in.Desired[Key{Container: "worker"}] = c.in.Desired[Key{Container: "app"}]
	c.node = func(p *Pod) {
		for i := range p.Containers {
			p.Containers[i].Actual = p.Containers[i].Spec
		}
	}
	for range 2 {
		c.reconcile()
		c.passes(5 * time.Second)
	}
	c.in.Pods[0].Containers[1].Restarts += restartsToRollBack
	c.reconcile()
	if !c.told("Limit 100Mi of container worker is rolled back") || c.told("of container app is rolled back") {
		t.Error(c.log)
	}
}

// TestACreatedPodMayTakeAsLongToStartAsOthersDid: one that loads its index for a quarter of an hour did so with the
// higher limit.
func TestACreatedPodMayTakeAsLongToStartAsOthersDid(t *testing.T) {
	for _, tc := range []struct{ others, most time.Duration }{
		{15 * time.Minute, 25 * time.Minute}, {0, 10 * time.Minute}, {48 * time.Hour, 70 * time.Minute},
	} {
		c := newCluster(t, 3, big)
		c.in.Policy.KeepRunningPods = true
		c.wants(small, false)
		for i := range c.in.Pods {
			if c.app(i).Owner = big; tc.others > 0 {
				c.in.Pods[i].ReadyAt = c.in.Pods[i].Created.Add(tc.others)
			}
		}
		c.passes(72 * time.Hour)
		canary := c.pod(small)
		canary.Ready, canary.Containers[0].Owner, canary.Containers[0].Started = false, big, c.in.Now
		c.in.Pods[0] = canary
		for c.reconcile(); c.in.Now.Sub(canary.Created) <= tc.most; c.reconcile() {
			if c.told("Reverted") {
				t.Fatalf("rolled back before %s have passed, and the others took %s: %v", tc.most, tc.others, c.log)
			}
			c.passes(time.Minute)
		}
		if !c.told("has not been ready since 2026-03-05T08:01:00Z. It is not lowered again") {
			t.Errorf("not rolled back after %s: %v", tc.most, c.log)
		}
	}
}

// hesitant makes the kubelet keep a container's higher limit, because what it uses does not fit into the lower one.
func (c *cluster) hesitant() {
	c.node = func(p *Pod) {
		if app := &p.Containers[0]; app.Spec.Limit < app.Actual.Limit {
			p.Resize = Resize{InProgress: true, Failed: true, Message: "below usage"}
			return
		}
		p.Resize = Resize{}
		for i := range p.Containers {
			p.Containers[i].Actual = p.Containers[i].Spec
		}
	}
}

// TestALowerLimitThatWasNeverInForceIsTakenBack: whatever takes the place of the change in which it was asked for, no
// pod has proven it.
func TestALowerLimitThatWasNeverInForceIsTakenBack(t *testing.T) {
	killed := func(c *cluster) {
		desired := c.in.Desired[Key{Container: "app"}]
		desired.Recommendation.Size, desired.Recommendation.Urgent = big, true
		c.in.Desired[Key{Container: "proxy"}] = desired
	}
	for name, then := range map[string]func(c *cluster){
		"nothing else happens":        func(*cluster) {},
		"another container is killed": killed,
		"another container is killed, and a node has no memory for that": func(c *cluster) {
			killed(c)
			others := c.node
			c.node = func(p *Pod) {
				if proxy := p.Containers[1]; p.Name == "web-2" && proxy.Spec.Request > proxy.Actual.Request {
					p.Resize = Resize{Deferred: true}
					return
				}
				others(p)
			}
		},
		"running pods are to keep their size": func(c *cluster) { c.in.Policy.KeepRunningPods = true },
		"for a while memfit only recommends":  func(c *cluster) { c.written.end(nil) },
		"the pod is lent more, which the API server refuses": func(c *cluster) {
			c.written.replace("uid-1", map[string]memory.Size{"app": {}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := withSidecar(t)
			c.hesitant()
			c.wants(small, false)
			c.reconcile()
			c.passes(time.Minute)
			then(c)
			for range 20 {
				c.reconcile()
				c.passes(time.Minute)
			}
			if proven := c.written.Proven("app", ""); proven != (memory.Size{}) {
				t.Errorf("proven is %s: %v", proven, c.log)
			}
			for i := range c.in.Pods {
				if got := c.app(i).Spec; got != big {
					t.Errorf("the spec of pod %d has %s: %v", i, got, c.log)
				}
				desired, wanted := c.in.Desired[Key{Container: "proxy"}]
				if got := c.in.Pods[i].Containers[1].Spec; wanted && got != desired.Recommendation.Size {
					t.Errorf("the proxy of pod %d has %s: %v", i, got, c.log)
				}
			}
		})
	}
}

// TestALowerLimitIsWatchedFromWhenItIsInForce: the kubelet takes it while no step follows it.
func TestALowerLimitIsWatchedFromWhenItIsInForce(t *testing.T) {
	c := withSidecar(t)
	c.hesitant()
	c.wants(small, false)
	c.reconcile()
	c.written.end(nil)
	c.passes(4 * time.Minute)
	app := c.app(0)
	app.Actual, c.in.Pods[0].Resize, c.node = app.Spec, Resize{}, nil
	for since := c.in.Now; c.in.Now.Sub(since) < c.in.Policy.Watch; c.passes(time.Minute) {
		c.reconcile()
		c.expectLimits("100Mi 256Mi")
	}
	c.reconcile()
	c.reconcile()
	c.expectLimits("100Mi 100Mi")
}

// TestAPodProvesNothingOnceItsImageIsChanged: it is watched for a lower limit, and an image takes the place of the one
// that the limit is for.
func TestAPodProvesNothingOnceItsImageIsChanged(t *testing.T) {
	c := newCluster(t, 2, big)
	for i := range c.in.Pods {
		c.in.Pods[i].Containers[0].Program = "v1"
	}
	c.wants(small, false)
	c.in.Desired[Key{Container: "app", Program: "v1"}] = c.in.Desired[Key{Container: "app"}]
	c.reconcile()
	c.passes(5 * time.Second)
	c.reconcile()
	c.expectLimits("100Mi 256Mi")
	app := &c.in.Pods[0].Containers[0]
	app.Program, app.ImageChanged = "v2", true
	c.passes(2 * c.in.Policy.Watch)
	c.reconcile()
	if proven := c.written.Proven("app", "v1"); proven.Limit > 0 {
		t.Errorf("%s is proven by a pod that runs another image", proven.Limit)
	}
}

// TestARaiseGivesPodsOfAChangedImageWhatIsRecommended: what was proven is raised with the first of them, and explains
// the lower limit of the others no more.
func TestARaiseGivesPodsOfAChangedImageWhatIsRecommended(t *testing.T) {
	c := newCluster(t, 3, small)
	owner := size(200*mib, 1024*mib)
	for i := range c.in.Pods {
		c.app(i).Program, c.app(i).ImageChanged, c.app(i).Owner = "v2", true, owner
	}
	c.written.Lowerings = []Lowering{
		{Container: "app", Program: "v2", From: owner, To: small, At: start.Add(-24 * time.Hour), Proven: true},
	}
	c.wants(size(70*mib, 160*mib), false)
	c.in.Desired[Key{Container: "app", Program: "v2"}] = c.in.Desired[Key{Container: "app"}]
	for range 3 {
		c.reconcile()
		c.passes(time.Minute)
	}
	c.expectLimits("160Mi 160Mi 160Mi")
}

// createdWithLess is a workload whose pods were created with a lower limit weeks ago, which was proven by one of them.
// More is recommended now, and running pods keep their size.
func createdWithLess(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, 3, small)
	for i := range c.in.Pods {
		c.app(i).Owner = big
	}
	c.in.Policy.KeepRunningPods = true
	c.written.Lowerings = []Lowering{{Container: "app", From: big, To: small, At: start, Proven: true}}
	c.passes(3 * 7 * 24 * time.Hour)
	c.wants(size(70*mib, 140*mib), false)
	c.reconcile()
	return c
}

// TestPodsThatWereWatchedAreNotWatchedAgainForAnotherRecommendation: nor does their checkpoint change.
func TestPodsThatWereWatchedAreNotWatchedAgainForAnotherRecommendation(t *testing.T) {
	c := createdWithLess(t)
	before := string(c.stored())
	for range 10 {
		c.passes(30 * time.Second)
		c.reconcile()
		if after := string(c.stored()); after != before {
			t.Fatalf("the state was %s and is %s", before, after)
		}
	}
	if len(c.written.Lowerings) != 1 || len(c.written.Steps) > 0 || c.written.HasCanary(c.in.Pods) {
		t.Errorf("watched again: %s", before)
	}
	if got := c.written.Proven("app", "").Limit; got != 140*mib {
		t.Errorf("new pods get %s, and 140Mi is needed", got)
	}
}

// TestALimitThatAProofHoldsForIsNoNewLowering: pods with the limit that was proven are no canaries by it.
func TestALimitThatAProofHoldsForIsNoNewLowering(t *testing.T) {
	c := newCluster(t, 2, small)
	s := State{Lowerings: []Lowering{{Container: "app", From: big, To: small, At: start, Proven: true}}}
	s.lower(Lowering{Container: "app", From: big, To: size(70*mib, 140*mib), At: start.Add(time.Hour)})
	if len(s.Lowerings) != 1 || s.HasCanary(c.in.Pods) {
		t.Errorf("lowerings are %+v", s.Lowerings)
	}
}

// TestAKillOfAnEarlierPodTakesItsLowerLimitBack: other pods have got more since.
func TestAKillOfAnEarlierPodTakesItsLowerLimitBack(t *testing.T) {
	c := createdWithLess(t)
	c.passes(time.Hour)
	c.killed(1)
	if c.reconcile(); !c.told("Reverted web-2: Limit 100Mi of container app is rolled back from every pod") {
		t.Error(c.log)
	}
}

// TestAKillRestoresTheFirstLimitOfSeveral: not the last. Without a limit before, no resize gives that back, and the
// first limit held for weeks.
func TestAKillRestoresTheFirstLimitOfSeveral(t *testing.T) {
	for from, want := range map[memory.Bytes]memory.Bytes{
		1024 * mib: 1024 * mib,
		NoLimit:    256 * mib,
	} {
		c := newCluster(t, 1, small)
		c.written.Lowerings = []Lowering{
			{Container: "app", From: size(70*mib, from), To: big, At: start, Proven: true},
			{Container: "app", From: big, To: size(70*mib, 128*mib), At: start, Proven: true},
			{Container: "app", From: size(70*mib, 128*mib), To: small, At: start, Proven: true},
		}
		c.passes(3 * 7 * 24 * time.Hour)
		c.killed(0)
		c.reconcile()
		r, active := c.written.ActiveRevert(Key{Container: "app"}, c.in.Now)
		if !active || r.Restored.Limit != want || r.Tried.Limit != small.Limit {
			t.Errorf("restored %s after %s: %+v", want, from, r)
		}
		if left := len(c.written.Lowerings); (left > 0) != (want < from) {
			t.Errorf("%d lowerings are left", left)
		}
	}
}

// TestALowerLimitThanIsProvenByNowIsTriedInANewPod: it was proven once, and more was needed for a while.
func TestALowerLimitThanIsProvenByNowIsTriedInANewPod(t *testing.T) {
	c := createdWithLess(t)
	c.passes(time.Hour)
	c.wants(small, false)
	c.in.Pods = append(c.in.Pods, c.pod(small))
	c.app(3).Owner = big
	c.reconcile()
	if got := c.written.Proven("app", "").Limit; got != 140*mib || !c.written.HasCanary(c.in.Pods) {
		t.Errorf("proven is %s: %+v", got, c.written.Lowerings)
	}
	c.passes(c.in.Policy.Watch)
	c.reconcile()
	c.reconcile()
	if got := c.written.Proven("app", "").Limit; got != small.Limit {
		t.Errorf("proven is %s: %+v", got, c.written.Steps)
	}
}

// TestWhatTheKubeletWasAskedForIsFollowedWhateverEndsTheChange: both containers of two pods are lowered, of which the
// kubelet refuses one in one pod, and the other is killed.
func TestWhatTheKubeletWasAskedForIsFollowedWhateverEndsTheChange(t *testing.T) {
	c := withSidecar(t)
	c.in.Policy.MaxUnavailable = 2
	c.wants(small, false)
	c.in.Desired[Key{Container: "proxy"}] = c.in.Desired[Key{Container: "app"}]
	for _, name := range []string{"app", "proxy"} {
		proven := Lowering{Container: name, From: big, To: small, At: start, Proven: true}
		c.written.Lowerings = append(c.written.Lowerings, proven)
	}
	for i := range c.in.Pods {
		proxy := &c.in.Pods[i].Containers[1]
		proxy.Spec, proxy.Actual = big, big
	}
	c.node = func(p *Pod) {
		p.Containers[0].Actual = p.Containers[0].Spec
		proxy := &p.Containers[1]
		if p.Resize = (Resize{}); p.Name == "web-2" && proxy.Spec.Limit < proxy.Actual.Limit {
			p.Resize = Resize{InProgress: true, Failed: true, Message: "below usage"}
			return
		}
		proxy.Actual = proxy.Spec
	}
	c.reconcile()
	c.passes(time.Minute)
	c.reconcile()
	c.expectLimits("100Mi 100Mi")
	c.killed(0)
	for range 8 {
		c.reconcile()
		c.passes(time.Minute)
	}
	for i, want := range []memory.Size{small, big} {
		if got := c.in.Pods[i].Containers[1].Spec; got != want {
			t.Errorf("the spec of the other container of pod %d has %s, want %s: %v", i, got, want, c.log)
		}
		if got := c.app(i).Spec; got != big {
			t.Errorf("the spec of pod %d has %s, want %s: %v", i, got, big, c.log)
		}
	}
}

// TestALowerLimitThatIsNotEffectiveYetIsGivenBackAtOnce: another pod is killed with it.
func TestALowerLimitThatIsNotEffectiveYetIsGivenBackAtOnce(t *testing.T) {
	c := newCluster(t, 3, big)
	c.lowersTheCanary()
	c.passes(c.in.Policy.Watch)
	c.node = func(p *Pod) { p.Resize = Resize{InProgress: true} }
	c.reconcile()
	if got := c.app(1).Spec; got != small {
		t.Fatalf("the second pod is to have %s: %s", got, c.last.Message)
	}
	c.killed(0)
	c.reconcile()
	if got := c.app(1).Spec; got != big || !c.told("resize web-2 limit of container app 100Mi to 256Mi") {
		t.Errorf("the second pod is to have %s: %v", got, c.log)
	}
}

// TestWhatIsNotEffectiveIsTakenBackWhenRunningPodsAreToKeepTheirSize: the scheduler reserves memory for it.
func TestWhatIsNotEffectiveIsTakenBackWhenRunningPodsAreToKeepTheirSize(t *testing.T) {
	for _, onlyRecommend := range []bool{false, true} {
		c := newCluster(t, 2, size(300*mib, 300*mib))
		c.in.Pods[0].QoS, c.in.Pods[1].QoS = "Guaranteed", "Guaranteed"
		c.fills()
		c.wants(size(1024*mib, 1024*mib), true)
		c.reconcile()
		c.in.Policy.KeepRunningPods, c.in.Policy.OnlyRecommend, c.in.Desired = true, onlyRecommend, map[Key]Desired{}
		for range 7 {
			c.passes(time.Minute)
			c.reconcile()
		}
		for i := range c.in.Pods {
			if got := c.app(i).Spec; got != size(300*mib, 300*mib) {
				t.Errorf("the spec of pod %d has %s: %v", i, got, c.log)
			}
		}
		if len(c.written.Steps) > 0 || c.written.underWay() {
			t.Errorf("under way: %+v", c.written)
		}
	}
}
