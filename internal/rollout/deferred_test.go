// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// fillsFor fills the node of one pod.
func (c *cluster) fillsFor(name string) {
	c.fills()
	full := c.node
	c.node = func(p *Pod) {
		if p.Name == name {
			full(p)
			return
		}
		p.Resize = Resize{}
		for i := range p.Containers {
			p.Containers[i].Actual = p.Containers[i].Spec
		}
	}
}

// TestARequestThatWaitsKeepsNoOtherPodAtALowerLimit: nine of ten pods are lowered, which is over, and need more a day
// later.
func TestARequestThatWaitsKeepsNoOtherPodAtALowerLimit(t *testing.T) {
	c := newCluster(t, 10, big)
	c.fillsFor("web-7")
	c.in.Policy.MaxUnavailable = 3
	c.wants(size(240*mib, big.Limit), false)
	c.reconcile()
	c.in.Desired[Key{Container: "app", Outdated: true}] = c.in.Desired[Key{Container: "app"}]
	c.app(6).Outdated = true // its target stays
	c.passes(2 * time.Hour)
	c.wants(small, false)
	for range 10 {
		c.reconcile()
		c.passes(c.in.Policy.Watch)
	}
	lowered := strings.TrimSpace(strings.Repeat("100Mi ", 6) + "256Mi" + strings.Repeat(" 100Mi", 3))
	c.expectLimits(lowered)
	if c.written.underWay() || len(c.written.Steps) != 1 {
		t.Errorf("a change is under way: %+v", c.written)
	}
	c.passes(24 * time.Hour)
	c.wants(size(70*mib, 140*mib), false)
	for range 3 {
		c.reconcile()
		c.passes(time.Minute)
	}
	c.expectLimits(strings.ReplaceAll(lowered, "100Mi", "140Mi"))
}

// TestAPodThatKeepsAHigherLimitKeepsNoOtherAtALowerOne: it cannot be lowered, and others need more by now.
func TestAPodThatKeepsAHigherLimitKeepsNoOtherAtALowerOne(t *testing.T) {
	c := newCluster(t, 3, big)
	c.app(2).FrozenHeap = 240 * mib
	c.wants(small, false)
	for range 6 {
		c.reconcile()
		c.passes(c.in.Policy.Watch)
	}
	c.expectLimits("100Mi 100Mi 256Mi")
	c.wants(size(70*mib, 140*mib), false)
	c.passes(2 * time.Hour)
	for range 3 {
		c.reconcile()
		c.passes(time.Minute)
	}
	c.expectLimits("140Mi 140Mi 256Mi")
}

// TestALowerTargetThanThatOfTheChangeUnderWayBeginsWithOnePod: no pod is on its way to the earlier one any more.
func TestALowerTargetThanThatOfTheChangeUnderWayBeginsWithOnePod(t *testing.T) {
	c := newCluster(t, 3, big)
	c.in.Policy.MaxUnavailable = 3
	for i := range 2 {
		c.app(i + 1).FrozenHeap = 240 * mib
	}
	c.wants(size(90*mib, 130*mib), false)
	for range 3 {
		c.reconcile()
		c.passes(c.in.Policy.Watch)
	}
	c.expectLimits("130Mi 256Mi 256Mi")
	for i := range 2 {
		c.app(i + 1).FrozenHeap = 0
	}
	c.wants(small, false)
	c.passes(2 * time.Hour)
	for range 3 {
		c.reconcile()
		c.passes(time.Minute)
	}
	c.expectLimits("100Mi 256Mi 256Mi")
}

// TestAWatchThatDoesNotPassKeepsNoPodAtALowerLimit: the pod is not ready because of another container.
func TestAWatchThatDoesNotPassKeepsNoPodAtALowerLimit(t *testing.T) {
	c := newCluster(t, 2, big)
	c.apart = true
	for i := range c.in.Pods {
		c.app(i).Ready = true
	}
	c.lowersTheCanary()
	c.in.Pods[0].Ready = false
	for range 10 {
		c.reconcile()
		c.passes(5 * time.Minute)
	}
	c.expectLimits("100Mi 256Mi")
	c.wants(size(70*mib, 140*mib), false)
	c.passes(time.Hour)
	c.reconcile()
	c.expectLimits("140Mi 256Mi")
}

// TestAResizeThatWaitsIsDecidedAnew: what is wanted by the time that its node has memory is what it gets.
func TestAResizeThatWaitsIsDecidedAnew(t *testing.T) {
	for name, tc := range map[string]struct {
		wants memory.Size
		max   memory.Bytes
	}{
		"less is recommended": {wants: size(400*mib, 400*mib)},
		"more is recommended": {wants: size(2048*mib, 2048*mib)},
		"the owner's bound":   {wants: size(600*mib, 600*mib), max: 600 * mib},
		"what it has":         {wants: size(300*mib, 300*mib)},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1, size(300*mib, 300*mib))
			c.in.Pods[0].QoS = "Guaranteed"
			c.fills()
			c.wants(size(1024*mib, 1024*mib), true)
			c.reconcile()
			c.passes(48 * time.Hour)
			c.reconcile()
			if got := c.app(0).Spec.Limit; got != 1024*mib {
				t.Fatalf("the pod asks for %s", got)
			}
			c.wants(tc.wants, false)
			c.desired(func(d *Desired) { d.Policy.LimitMax = tc.max })
			c.reconcile()
			if got := c.app(0).Spec; got != tc.wants {
				t.Errorf("it asks for %s, want %s: %s", got, tc.wants, c.last.Message)
			}
			if len(c.written.Lowerings) > 0 {
				t.Errorf("taken for a lower limit: %+v", c.written.Lowerings)
			}
		})
	}
}

// TestARequestThatWaitsKeepsNoCreatedPodFromItsWatch: the owner has chosen OnCreate meanwhile.
func TestARequestThatWaitsKeepsNoCreatedPodFromItsWatch(t *testing.T) {
	c := newCluster(t, 2, big)
	c.fills()
	c.wants(size(240*mib, big.Limit), false)
	c.reconcile()
	c.passes(time.Minute)
	c.in.Policy.KeepRunningPods = true
	c.in.Pods = append(c.in.Pods, c.pod(small))
	c.app(2).Owner = big
	c.wants(small, false)
	for range 3 {
		c.reconcile()
		c.passes(c.in.Policy.Watch)
	}
	if got := c.written.Proven("app", "").Limit; got != small.Limit {
		t.Errorf("proven is %s: %+v", got, c.written.Steps)
	}
}

// TestARequestThatWaitsKeepsNoLowerLimitFromItsProof: it is that of another container of the watched pod.
func TestARequestThatWaitsKeepsNoLowerLimitFromItsProof(t *testing.T) {
	c := withSidecar(t)
	c.lowersTheCanary()
	c.expectLimits("100Mi 256Mi")
	c.fills()
	more := c.in.Desired[Key{Container: "app"}]
	more.Recommendation.Size, more.Recommendation.UseAboveRequest = size(90*mib, small.Limit), true
	c.in.Desired[Key{Container: "proxy"}] = more
	c.passes(time.Minute)
	c.reconcile()
	if !c.in.Pods[0].Resize.Deferred {
		t.Fatalf("the watched pod asks for no request: %s", c.last.Message)
	}
	c.passes(c.in.Policy.Watch)
	c.reconcile()
	if got := c.written.Proven("app", "").Limit; got != small.Limit {
		t.Errorf("proven is %s: %+v", got, c.written)
	}
}

// waiting is a cluster on full nodes that asks for a size, and is decided for again when the kubelet has deferred that.
func waiting(t *testing.T, n int, have, want memory.Size) *cluster {
	t.Helper()
	c := newCluster(t, n, have)
	c.fills()
	c.wants(want, false)
	c.reconcile()
	c.passes(2 * time.Second)
	c.reconcile()
	if got := c.app(0).Spec; got != want || !c.in.Pods[0].Resize.Deferred {
		t.Fatalf("the first pod asks for %+v: %s", got, c.last.Message)
	}
	return c
}

// small90 is small with more of a request.
var small90 = size(90*mib, 100*mib)

// TestALimitNeverWaitsForARequest: however little more is requested, also where no kill asks for it, the limit goes
// down, the pod may be evicted, or its container restarts for it.
func TestALimitNeverWaitsForARequest(t *testing.T) {
	for name, tc := range map[string]struct {
		have, want memory.Size
		edit       func(c *cluster)
	}{
		"more":           {have: small, want: big},
		"little request": {have: small, want: size(73*mib, 256*mib)},
		"less":           {have: size(70*mib, 256*mib), want: small90},
		"evicted":        {have: small, want: big, edit: func(c *cluster) { c.in.Policy.Evict = true }},
		"less, evicted":  {have: size(70*mib, 256*mib), want: small90, edit: func(c *cluster) { c.in.Policy.Evict = true }},
		"restarted": {have: small, want: big, edit: func(c *cluster) {
			c.app(0).RestartsOnResize, c.in.Policy.SingleReplicaMayRestart = true, true
		}},
		"used above the request": {have: small, want: big, edit: func(c *cluster) {
			c.desired(func(d *Desired) { d.Recommendation.UseAboveRequest = true })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1, tc.have)
			c.fills()
			if c.wants(tc.want, false); tc.edit != nil {
				tc.edit(c)
			}
			c.reconcile()
			c.passes(2 * time.Second)
			c.reconcile()
			c.passes(statusDelay)
			c.reconcile()
			c.expectLimits(tc.want.Limit.String())
			for range 200 {
				c.passes(time.Minute)
				c.reconcile()
			}
			givenUp := c.app(0).RestartsOnResize // nobody knows when it would restart
			if c.evictions() > 0 || c.told(string(NotResized)) != givenUp || c.told(string(ConflictingWriter)) {
				t.Error(c.log)
			}
			c.expectLimits(tc.want.Limit.String())
		})
	}
}

// TestALimitNeverWaitsForTheRequestOfAnotherContainer: that was asked for earlier, and waits still.
func TestALimitNeverWaitsForTheRequestOfAnotherContainer(t *testing.T) {
	c := withSidecar(t)
	c.fills()
	c.wants(big, false)
	proxy := c.in.Desired[Key{Container: "app"}]
	proxy.Recommendation.Size = size(90*mib, small.Limit)
	c.in.Desired[Key{Container: "proxy"}] = proxy
	c.reconcile()
	c.passes(time.Hour)
	c.reconcile()
	if !c.in.Pods[0].Resize.Deferred {
		t.Fatal(c.last.Message)
	}
	c.killed(0)
	c.wants(size(big.Request, 400*mib), true)
	for range 3 {
		c.passes(statusDelay)
		c.reconcile()
	}
	c.expectLimits("400Mi 400Mi")
}

// TestALowerLimitIsWatchedAlsoWhereItsRequestWaits: its container has restarted meanwhile.
func TestALowerLimitIsWatchedAlsoWhereItsRequestWaits(t *testing.T) {
	c := waiting(t, 2, size(70*mib, 256*mib), size(90*mib, 100*mib))
	c.desired(func(d *Desired) { d.Recommendation.UseAboveRequest = true })
	c.passes(statusDelay)
	c.reconcile()
	c.expectLimits("100Mi 256Mi")
	for range 2 {
		c.passes(time.Second)
		c.reconcile()
	}
	if got := c.app(0).Spec.Request; got != 90*mib {
		t.Fatalf("it asks for a request of %s: %s", got, c.last.Message)
	}
	c.app(0).Restarts, c.app(0).Started = 1, c.in.Now
	c.passes(c.in.Policy.Watch - time.Minute)
	c.reconcile()
	if got := c.written.Proven("app", "").Limit; got != 0 {
		t.Errorf("proven is %s too early", got)
	}
	c.passes(time.Minute)
	c.reconcile()
	if got := c.written.Proven("app", "").Limit; got != small.Limit {
		t.Errorf("proven is %s: %+v", got, c.written)
	}
	for range 4 {
		c.passes(c.in.Policy.Watch)
		c.reconcile()
	}
	c.expectLimits("100Mi 100Mi")
}

// TestAPodWhoseRequestWaitsIsLoweredAsOthersAre: and gets back what they get back.
func TestAPodWhoseRequestWaitsIsLoweredAsOthersAre(t *testing.T) {
	c := newCluster(t, 10, size(70*mib, 256*mib))
	c.fillsFor("web-7")
	c.wants(size(90*mib, 256*mib), false)
	c.reconcile()
	c.passes(2 * time.Hour)
	c.wants(size(90*mib, 100*mib), false)
	for range 60 {
		c.reconcile()
		c.passes(c.in.Policy.Watch / 2)
	}
	c.expectLimits(strings.TrimSpace(strings.Repeat("100Mi ", 10)))
	c.passes(24 * time.Hour)
	c.wants(size(90*mib, 140*mib), false)
	for range 3 {
		c.reconcile()
		c.passes(time.Minute)
	}
	c.expectLimits(strings.TrimSpace(strings.Repeat("140Mi ", 10)))
}

// TestMoreThanALowerLimitThatWaitsIsARaise: it waits for nothing that lowering does, as for a measurement. The pod is
// Guaranteed, and another of its containers requests more, so that the lower limit waits with that.
func TestMoreThanALowerLimitThatWaitsIsARaise(t *testing.T) {
	g := gatedAt(size(300*mib, 300*mib), size(345*mib, 345*mib), 400*mib, 0)
	g.pod.QoS, g.pod.Resize = "Guaranteed", Resize{Deferred: true}
	g.c.Actual = size(512*mib, 512*mib)
	if got := g.verdict(false); got != (Verdict{}) {
		t.Errorf("more than what it asks for: %+v", got)
	}
	g.to = size(280*mib, 280*mib)
	if got := g.verdict(false); got.Reason != v1alpha1.ReasonUsageTooHigh {
		t.Errorf("less than what it asks for: %+v", got)
	}
}

// TestNoPodIsEvictedForARequestBesideALimit: the node cannot hold the request of one container, and page cache holds up
// the lower limit of the other. Neither is worth an eviction.
func TestNoPodIsEvictedForARequestBesideALimit(t *testing.T) {
	c := withSidecar(t)
	c.in.Policy.Evict = true
	c.wants(small, false)
	c.app(0).Usage, c.app(1).Usage = 200*mib, 200*mib
	proxy := c.in.Desired[Key{Container: "app"}]
	proxy.Recommendation.Size = size(90*mib, small.Limit)
	c.in.Desired[Key{Container: "proxy"}] = proxy
	c.node = func(p *Pod) { p.Resize = Resize{Infeasible: true, Message: "Node didn't have enough capacity"} }
	for range 10 {
		c.reconcile()
		c.passes(time.Minute)
		for i := range c.in.Pods {
			if p := &c.in.Pods[i]; p.Containers[len(p.Containers)-1].Spec == small {
				p.Resize = Resize{} // it was taken back
			}
		}
	}
	if !c.told(string(NotResized)) {
		t.Fatal(c.log)
	}
	if c.evictions() > 0 {
		t.Error(c.log)
	}
}

// TestALimitThatGoesAloneNeedsNoOtherPlace: the pods that were begun after it wait for their kubelets.
func TestALimitThatGoesAloneNeedsNoOtherPlace(t *testing.T) {
	c := newCluster(t, maxWatched+8, big)
	c.node = func(p *Pod) {
		app := &p.Containers[0]
		switch p.Resize = (Resize{}); {
		case p.Name != "web-1":
			p.Resize.InProgress = app.Spec != app.Actual
		case app.Spec.Request > app.Actual.Request:
			p.Resize = Resize{Deferred: true, Message: "Node didn't have enough resource: memory"}
		default:
			app.Actual = app.Spec
		}
	}
	c.app(0).Demand = 250 * mib // it comes first
	c.wants(size(300*mib, 400*mib), true)
	for _, after := range []time.Duration{0, 2 * time.Second, statusDelay, 2 * time.Second} {
		c.passes(after)
		c.reconcile()
	}
	if got := c.app(0).Actual.Limit; got != 400*mib {
		t.Errorf("the limit is %s: %s", got, c.last.Message)
	}
}

// TestARequestThatWouldRestartItsContainerWaitsForNoNode: while it waits, it counts as a pod that does not serve.
func TestARequestThatWouldRestartItsContainerWaitsForNoNode(t *testing.T) {
	c := newCluster(t, 2, big)
	for i := range 2 {
		c.app(i).RestartsOnResize = true
	}
	c.node = func(p *Pod) {
		app := &p.Containers[0]
		if p.Resize = (Resize{}); p.Name == "web-1" && app.Spec.Request > app.Actual.Request {
			p.Resize = Resize{Deferred: true, Message: "Node didn't have enough resource: memory"}
			return
		}
		app.Actual = app.Spec
	}
	c.app(1).Spec, c.app(1).Actual = size(300*mib, 400*mib), size(300*mib, 400*mib)
	c.wants(size(300*mib, 400*mib), true)
	for range 60 {
		if c.reconcile(); c.app(0).Actual.Limit == 400*mib && c.in.Pods[0].Resize.Deferred {
			break
		}
		c.passes(15 * time.Second)
	}
	c.app(1).Spec, c.app(1).Actual = big, big // a pod that was created meanwhile
	for range 40 {
		c.reconcile()
		c.passes(15 * time.Second)
	}
	c.expectLimits("400Mi 400Mi")
}

// TestALimitGoesAloneWhateverBeganMeanwhile: the pod's spec has it, and only the request that its node has no memory
// for is taken out. More is not asked for.
func TestALimitGoesAloneWhateverBeganMeanwhile(t *testing.T) {
	for name, begins := range map[string]func(in *Input){
		"a pause":                func(in *Input) { in.Paused = "memfit.dev/pause" },
		"another controller":     func(in *Input) { in.Conflict = "VerticalPodAutoscaler web" },
		"the end of a window":    func(in *Input) { in.Policy.Windows, in.Policy.IncreasesInWindows = nightly(t), true },
		"the end, for restarts":  func(in *Input) { in.Policy.Windows = nightly(t) },
		"an hour of large steps": func(in *Input) { in.Allowance = &Allowance{Budget: ChangeBudget{Bytes: mib}} },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1, small)
			c.fills()
			c.wants(big, true)
			c.reconcile()
			begins(&c.in)
			for range 4 {
				c.passes(statusDelay)
				c.reconcile()
			}
			c.expectLimits("256Mi")
			if got := c.app(0).Actual; got != size(small.Request, big.Limit) {
				t.Errorf("it has %+v: %s", got, c.last.Message)
			}
			if strings.HasPrefix(name, "the end, for") {
				return
			}
			asked := c.writes()
			c.wants(size(400*mib, 512*mib), false)
			for range 4 {
				c.passes(time.Hour)
				c.reconcile()
			}
			if c.writes() != asked {
				t.Error(c.log)
			}
		})
	}
}

// TestARequestThatIsWithdrawnRestartsNothing: a container that restarts for its limit is left as it is in a pause.
func TestARequestThatIsWithdrawnRestartsNothing(t *testing.T) {
	c := newCluster(t, 1, small)
	c.fills()
	c.app(0).RestartsOnResize, c.in.Policy.SingleReplicaMayRestart = true, true
	c.wants(big, true)
	c.reconcile()
	c.in.Paused = "memfit.dev/pause"
	for range 4 {
		c.passes(statusDelay)
		c.reconcile()
	}
	c.expectLimits("100Mi")
}

// TestAPauseWithdrawsOnlyWhatHoldsUpALimit: what waits of the request of another container, and no more.
func TestAPauseWithdrawsOnlyWhatHoldsUpALimit(t *testing.T) {
	for name, tc := range map[string]struct {
		asked, wants memory.Bytes
		ratio        int64 // keeps the container's own request with its limit
		limits       string
	}{
		"what waits":          {asked: 90 * mib, wants: 90 * mib, limits: "400Mi 400Mi"},
		"less is recommended": {asked: small.Request, wants: 20 * mib, ratio: 1500, limits: "256Mi 256Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			c := withSidecar(t)
			c.fills()
			c.wants(size(400*mib, 400*mib), true)
			proxy := c.in.Desired[Key{Container: "app"}]
			c.desired(func(d *Desired) { d.Range.Ratio = tc.ratio })
			asks := func(request memory.Bytes) {
				proxy.Recommendation.Size = size(request, small.Limit)
				c.in.Desired[Key{Container: "proxy"}] = proxy
			}
			asks(tc.asked)
			c.reconcile()
			if !c.in.Pods[0].Resize.Deferred {
				t.Fatal(c.last.Message)
			}
			c.in.Paused = "memfit.dev/pause"
			asks(tc.wants)
			for range 4 {
				c.passes(c.in.Policy.Cooldown)
				c.reconcile()
			}
			if got := c.in.Pods[0].Containers[1].Spec.Request; got != small.Request {
				t.Errorf("the other requests %s: %v", got, c.log)
			}
			c.expectLimits(tc.limits)
		})
	}
}
