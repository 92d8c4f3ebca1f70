// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
)

// beside is what another container of the pod has, which memfit leaves alone.
var beside = memory.Size{Request: 50 * mib, Limit: 64 * mib}

// whole is a workload whose pods have a size as a whole: all that its containers may take, and what they request.
func whole(t testing.TB, n int, size memory.Size) *cluster {
	c := newCluster(t, n, size)
	for i := range c.in.Pods {
		c.asAWhole(&c.in.Pods[i])
	}
	return c
}

func (c *cluster) asAWhole(pod *Pod) {
	have := pod.Containers[0].Spec
	w := &Whole{Spec: memory.Size{Request: have.Request + beside.Request, Limit: have.Limit + beside.Limit}}
	w.Actual = w.Spec
	uid := pod.UID
	w.Follow = func(sizes, parts map[string]memory.Size) (memory.Size, Verdict) {
		p := c.find(uid)
		now, app := p.Whole.Spec, p.Containers[0].Spec
		to := now
		if s, asked := sizes["app"]; asked && s.Limit > 0 {
			to.Request = now.Request - app.Request + s.Request
			to.Limit = max(now.Limit, s.Limit+beside.Limit)
		}
		if s, shares := parts["app"]; shares {
			to.Limit = max(now.Limit, s.Limit+beside.Limit)
		}
		return to, Verdict{}
	}
	pod.Whole = w
}

// doWhole is what the API server and the kubelet make of the size as a whole.
func (c *cluster) doWhole(pod *Pod, a Action) {
	if to, asked := a.Sizes[WholePod]; asked && pod.Whole != nil {
		pod.Whole.Spec = to
		if c.node == nil || a.Undo {
			pod.Whole.Actual = to
		}
	}
}

// consistent is what the API server asks of a pod with a size as a whole, at every moment.
func (c *cluster) consistent() {
	c.t.Helper()
	for _, p := range c.in.Pods {
		if w, app := p.Whole, p.Containers[0].Spec; w != nil &&
			(app.Limit > w.Spec.Limit || app.Request+beside.Request > w.Spec.Request || w.Spec.Request > w.Spec.Limit) {
			c.t.Errorf("pod %s has %+v as a whole, and %+v in app: %v", p.Name, w.Spec, app, c.log)
		}
	}
}

func (c *cluster) expectWhole(i int, want memory.Size) {
	c.t.Helper()
	if got := c.in.Pods[i].Whole.Spec; got != want {
		c.t.Errorf("as a whole %+v, want %+v; %s: %s\n%v", got, want, c.last.Reason, c.last.Message, c.log)
	}
}

func grown(app memory.Size) memory.Size {
	return memory.Size{Request: app.Request + beside.Request, Limit: app.Limit + beside.Limit}
}

func TestAPodAsAWholeGrowsWithItsContainers(t *testing.T) {
	c := whole(t, 2, small)
	c.wants(big, true)
	for range 4 {
		c.reconcile()
		c.consistent()
		c.passes(2 * time.Second)
	}
	c.expectLimits("256Mi 256Mi")
	c.expectWhole(0, grown(big))
	c.expectWhole(1, grown(big))
	c.expectReason(v1alpha1.ReasonUpToDate)
	if !c.told("limit of the whole pod 164Mi to 320Mi (request 120Mi to 250Mi), limit of container app 100Mi to 256Mi") {
		t.Error(c.log)
	}
}

// A kubelet that gives the container its limit and leaves the pod as it was has done nothing that helps.
func TestWhatThePodHasNotIsNotEffectiveAndIsRolledBack(t *testing.T) {
	c := whole(t, 1, small)
	c.node = func(p *Pod) { p.Containers[0].Actual = p.Containers[0].Spec }
	c.wants(big, true)
	c.reconcile()
	c.passes(time.Minute)
	c.reconcile()
	c.expectReason(v1alpha1.ReasonApplying)
	if c.told("Resized") {
		t.Errorf("effective, although the pod has its old limit: %v", c.log)
	}
	c.passes(resizeTimeout)
	c.reconcile()
	c.consistent()
	c.expectWhole(0, grown(small))
	c.reconcile()
	c.expectReason(v1alpha1.ReasonNotActuated)
}

func TestARollbackOfADecreaseNeverLowersThePod(t *testing.T) {
	c := whole(t, 2, big)
	c.lowersTheCanary()
	c.expectLimits("100Mi 256Mi")
	c.expectWhole(0, memory.Size{Request: grown(small).Request, Limit: grown(big).Limit})
	c.killed(0)
	c.passes(time.Second)
	for range 3 {
		c.reconcile()
		c.consistent()
		c.passes(time.Second)
	}
	c.expectLimits("256Mi 256Mi")
	c.expectWhole(0, grown(big))
	c.expectWhole(1, grown(big))
}

// Killed before any action of any look, memfit asks for the same again, and for no more.
func TestAPodAsAWholeAfterMemfitDiedAnywhere(t *testing.T) {
	for dies := range 8 {
		for after := range 2 {
			for _, lost := range []bool{false, true} {
				c := whole(t, 2, small)
				c.wants(big, true)
				c.lost = lost
				for i := range 12 {
					if i == dies {
						c.reconcileAndDie(after)
					} else {
						c.reconcile()
					}
					c.consistent()
					c.passes(3 * time.Second)
				}
				c.expectLimits("256Mi 256Mi")
				c.expectWhole(0, grown(big))
				c.expectWhole(1, grown(big))
				c.expectReason(v1alpha1.ReasonUpToDate)
			}
		}
	}
}

func TestAPodThatCannotBeResizedAsAWholeIsHeldToIt(t *testing.T) {
	held := func(evict bool) *cluster {
		c := whole(t, 1, small)
		c.in.Pods[0].Whole.FixedBecause = "the gate is off"
		c.in.Pods[0].Containers[0].PodLimit, c.in.Pods[0].Containers[0].PodRequest = 164*mib, 70*mib
		c.in.Policy.Evict, c.in.Policy.SingleReplicaMayRestart = evict, true
		c.wants(big, true)
		for range 3 {
			c.reconcile()
			c.passes(5 * time.Second)
		}
		return c
	}
	c := held(false)
	c.expectLimits("164Mi")
	c.expectWhole(0, grown(small))
	c.expectReason(v1alpha1.ReasonPodLimit, "limit 256Mi, request 200Mi does not fit", "limit 164Mi", "the gate is off")
	if c = held(true); !c.told("evicted web-1") {
		t.Errorf("a new pod has more: %v", c.log)
	}
	c = whole(t, 1, small)
	c.in.Pods[0].Whole.FixedBecause, c.in.Pods[0].Whole.Young = "nobody has told yet", true
	c.in.Pods[0].Containers[0].PodLimit, c.in.Pods[0].Containers[0].PodRequest = 100*mib, 70*mib // all it has
	c.in.Policy.Evict = true
	c.in.Policy.SingleReplicaMayRestart = true
	c.wants(big, true)
	if c.reconcile(); c.told("evicted") {
		t.Errorf("evicted before its kubelet has said what it can: %v", c.log)
	}
}

func TestAContainerWithoutALimitGetsThePodMore(t *testing.T) {
	c := whole(t, 1, small)
	app := &c.in.Pods[0].Containers[0]
	app.Spec, app.Actual, app.Shared = memory.Size{Request: 70 * mib}, memory.Size{Request: 70 * mib}, true
	c.wants(memory.Size{Request: 70 * mib, Limit: 256 * mib}, false)
	for range 3 {
		c.reconcile()
		c.passes(5 * time.Second)
	}
	c.expectWhole(0, memory.Size{Request: grown(small).Request, Limit: grown(big).Limit})
	c.expectReason(v1alpha1.ReasonUpToDate)
	if got := c.in.Pods[0].Containers[0].Spec; got != (memory.Size{Request: 70 * mib}) {
		t.Errorf("the container has %+v", got)
	}
	app.RestartsOnResize = true
	c.wants(memory.Size{Request: 70 * mib, Limit: 512 * mib}, false)
	c.passes(2 * time.Hour)
	c.reconcile()
	c.expectReason(v1alpha1.ReasonSingleReplica)
	c.expectWhole(0, memory.Size{Request: grown(small).Request, Limit: grown(big).Limit})
}

func TestAnOwnerWhoChangesThePodAsAWholeIsLeftAlone(t *testing.T) {
	c := whole(t, 2, big)
	c.wants(small, false)
	c.reconcile()
	c.passes(time.Second)
	c.reconcile()
	c.in.Pods[0].Whole.Spec.Limit = memory.GiB
	c.in.Pods[0].Writer = "kubectl-edit"
	c.passes(time.Second)
	c.reconcile()
	c.expectReason(v1alpha1.ReasonConflict, "field manager kubectl-edit", "the whole pod has limit 1Gi")
	c.expectLimits("100Mi 256Mi")
}

func TestThePodAsAWholeHasToHaveRoom(t *testing.T) {
	for reason, full := range map[string]func(*cluster){
		v1alpha1.ReasonNodeTooSmall: func(c *cluster) { c.in.Pods[0].NodeSize = 240 * mib },
		v1alpha1.ReasonResourceQuota: func(c *cluster) {
			c.desired(func(d *Desired) { d.Quota = constraints.Quota{Name: "mem", Limits: 100 * mib} })
		},
		v1alpha1.ReasonLimitRange: func(c *cluster) {
			c.in.Pods[0].Whole.Follow = func(_, _ map[string]memory.Size) (memory.Size, Verdict) {
				return memory.Size{}, Verdict{Reason: v1alpha1.ReasonLimitRange, Message: "too much"}
			}
		},
	} {
		c := whole(t, 1, small)
		c.wants(big, true)
		full(c)
		c.reconcile()
		c.expectReason(reason, "as a whole (spec.resources)")
		c.expectLimits("100Mi")
		c.expectWhole(0, grown(small))
	}
}
