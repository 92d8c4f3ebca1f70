// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rescue"
)

// lends writes a loan to the first pod down, and sends it unless the leader ends before.
func (c *cluster) lends(to memory.Bytes, sent bool) {
	c.t.Helper()
	state := c.state()
	pod := &c.in.Pods[0]
	app := &pod.Containers[0]
	size := memory.Size{Request: app.Spec.Request, Limit: to}
	state.AddLoan(rescue.Loan{
		Pod: pod.Name, UID: pod.UID, Node: "node-1", Container: "app", From: app.Spec, To: size, At: c.in.Now, Sequence: 1,
	}, "it grew", true)
	c.store(&state)
	if sent {
		app.Spec, app.Actual = size, size
	}
}

// uses is what a container needs as of now.
func (c *cluster) uses(i int, demand memory.Bytes) {
	app := &c.in.Pods[i].Containers[0]
	app.Demand, app.Measured = demand, c.in.Now
}

var lendable = memory.Size{Request: 64 * mib, Limit: 128 * mib}

// TestALoanForgetsNoRestartThatWasSent: nor what it took of the change budget.
func TestALoanForgetsNoRestartThatWasSent(t *testing.T) {
	for phase, kept := range map[Phase]bool{Evicting: false, AwaitingSuccessor: true} {
		at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		state := State{
			Restart: &Step{Pod: "web-1", UID: "uid-1", At: at, Phase: phase},
			Spent:   []Spent{{At: at, UID: "uid-1", Pods: 1}},
		}
		state.AddLoan(rescue.Loan{Pod: "web-1", UID: "uid-1", Container: "app", At: at.Add(time.Second)}, "it grew", false)
		if got := state.Restart != nil; got != kept || got != (len(state.Spent) > 0) {
			t.Errorf("%s: the restart is %+v, spent is %+v", phase, state.Restart, state.Spent)
		}
	}
}

func TestALoanIsKeptAndReturnedAfterAnHourBelow(t *testing.T) {
	c := newCluster(t, 2, lendable)
	c.wants(lendable, false)
	c.desired(func(d *Desired) {
		d.Recommendation.Evidence.Window = 2 * time.Hour // too little to lower a limit
		d.WindowPeak = 150 * mib
	})
	c.lends(256*mib, true)
	for range 7 {
		c.passes(5 * time.Minute)
		c.uses(0, 150*mib)
		c.uses(1, 50*mib)
		c.reconcile()
	}
	c.expectLimits("256Mi 128Mi")
	c.expectReason(v1alpha1.ReasonUpToDate, "128Mi on loan (sizing.rescue), the last to pod web-1 at")
	if c.told(string(ConflictingWriter)) {
		t.Errorf("the loan is taken for another writer: %v", c.log)
	}
	for range 14 {
		c.passes(5 * time.Minute)
		c.uses(0, 60*mib)
		c.uses(1, 50*mib)
		c.reconcile()
	}
	c.expectLimits("128Mi 128Mi")
	if !c.told(v1alpha1.EventLoanReturned) {
		t.Errorf("people are not told that the loan ended: %v", c.log)
	}
}

// TestALoanGoesBackToWhatIsRecommended: the container needs more than before its loan and always will, and far less
// than it was lent. Above what is recommended, the loan goes on.
func TestALoanGoesBackToWhatIsRecommended(t *testing.T) {
	for demand, want := range map[memory.Bytes]string{180 * mib: "256Mi", 300 * mib: "512Mi"} {
		c := newCluster(t, 1, lendable)
		c.wants(memory.Size{Request: 64 * mib, Limit: 256 * mib}, false)
		c.desired(func(d *Desired) { d.Recommendation.Evidence.Window = 2 * time.Hour }) // too little to lower a limit
		c.lends(512*mib, true)
		for range 11 {
			c.passes(5 * time.Minute)
			c.uses(0, demand)
			c.reconcile()
		}
		c.expectLimits("512Mi")
		for range 10 {
			c.passes(5 * time.Minute)
			c.uses(0, demand)
			c.reconcile()
		}
		c.expectLimits(want)
		if l := c.state().Loans[0]; l.Returned.IsZero() != (want == "512Mi") || l.Superseded {
			t.Errorf("%s in use: %+v", demand, l)
		}
		if c.told("demand stayed below 256Mi for") != (want == "256Mi") {
			t.Errorf("%s in use, and people are told %v", demand, c.log)
		}
	}
}

// TestALoanIsNotTakenOverByWhatOthersGet: a pod with earlier numbers of its owner gets what is recommended for those.
func TestALoanIsNotTakenOverByWhatOthersGet(t *testing.T) {
	c := newCluster(t, 2, lendable)
	c.wants(memory.Size{Request: 64 * mib, Limit: 512 * mib}, false)
	earlier := c.in.Desired[Key{Container: "app"}]
	earlier.Recommendation.Size = lendable
	c.in.Desired[Key{Container: "app", Outdated: true}] = earlier
	c.app(0).Outdated = true
	c.lends(512*mib, true)
	for range 3 {
		c.passes(time.Minute)
		c.uses(0, 400*mib)
		c.reconcile()
	}
	if l := c.state().Loans[0]; l.Superseded || !l.Returned.IsZero() || l.Enough != 0 {
		t.Errorf("the loan of a pod that is to have 128Mi is %+v", l)
	}
	c.app(0).Outdated = false
	c.passes(time.Minute)
	c.reconcile()
	if l := c.state().Loans[0]; !l.Superseded {
		t.Errorf("all pods are to have 512Mi, and the loan is %+v", l)
	}
}

// TestALoanEndsAlsoWhereNothingIsLowered: what decrease: Never protects is the size without the loan.
func TestALoanEndsAlsoWhereNothingIsLowered(t *testing.T) {
	c := newCluster(t, 2, lendable)
	c.app(1).Spec.Limit, c.app(1).Actual.Limit = 192*mib, 192*mib // an older pod that has more
	c.wants(lendable, false)
	c.desired(func(d *Desired) { d.Policy.DecreaseNever = true })
	c.lends(512*mib, true)
	c.returns(128 * mib)
	c.expectLimits("128Mi 192Mi")
	c.passes(time.Hour)
	c.reconcile()
	if c.expectReason(v1alpha1.ReasonUpToDate); c.writes() != 1 {
		t.Errorf("one resize ends a loan: %v", c.log)
	}
}

// returns lets time go by, with 60Mi in use, until the first pod has its limit without the loan: three hours at most.
func (c *cluster) returns(limit memory.Bytes) {
	c.t.Helper()
	for range 36 {
		if c.app(0).Spec.Limit == limit {
			break
		}
		c.passes(5 * time.Minute)
		c.uses(0, 60*mib)
		c.reconcile()
	}
	c.passes(time.Minute)
	c.reconcile()
}

// TestTheEndOfALoanIsNoDecrease: it is not watched, no pod waits for it, and the next loan does not speak against it,
// which gave all pods four times their limit for a week.
func TestTheEndOfALoanIsNoDecrease(t *testing.T) {
	c := newCluster(t, 2, lendable)
	c.wants(lendable, false)
	c.lends(512*mib, true)
	c.returns(128 * mib)
	if s := c.state(); len(s.Lowerings) != 0 || s.underWay() {
		t.Errorf("lowerings %+v, a change under way %+v", s.Lowerings, s.Rollout)
	}
	c.passes(time.Minute)
	c.lends(512*mib, true)
	for range 3 {
		c.passes(time.Minute)
		c.uses(0, 300*mib)
		c.reconcile()
	}
	c.expectLimits("512Mi 128Mi")
	if c.told(string(Reverted)) {
		t.Errorf("the end of the first loan is rolled back: %v", c.log)
	}
}

// TestNoPodIsEvictedToEndALoan: a rescue never restarts. Where the heap that a process began with during its loan does
// not fit the previous limit, the loan lasts as long as the pod.
func TestNoPodIsEvictedToEndALoan(t *testing.T) {
	c := newCluster(t, 2, lendable)
	c.in.Policy.Evict = true
	c.wants(lendable, false)
	c.lends(512*mib, true)
	c.app(0).FrozenHeap, c.app(0).Overhead = 384*mib, 32*mib
	c.returns(128 * mib)
	c.expectLimits("512Mi 128Mi")
	if c.evictions() != 0 {
		t.Errorf("evicted: %v", c.log)
	}
}

// TestALoanThatTheKubeletDoesNotGiveEnds: it hid what is asked for after the kill until the hour was over, and nobody
// was told.
func TestALoanThatTheKubeletDoesNotGiveEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		resize Resize
		after  time.Duration
		why    string
	}{
		"infeasible": {Resize{Infeasible: true, Message: "too small"}, statusDelay, "the node cannot hold it: too small"},
		"deferred":   {Resize{Deferred: true, Message: "full"}, loanTimeout, "the node has too little free memory: full"},
		"failed": {
			Resize{InProgress: true, Failed: true, Message: "EBUSY"}, loanTimeout, "the kubelet failed to resize it: EBUSY",
		},
		"not answered": {Resize{}, loanTimeout, "the kubelet has not actuated it"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 2, lendable)
			c.wants(lendable, false)
			c.lends(512*mib, true)
			c.app(0).Actual, c.in.Pods[0].Resize = lendable, tc.resize
			c.passes(tc.after - time.Second)
			c.uses(0, 50*mib)
			c.reconcile()
			if c.app(0).Spec.Limit != 512*mib || c.told(string(NotResized)) {
				t.Errorf("it may be on its way: %v", c.log)
			}
			c.passes(time.Second)
			c.wants(memory.Size{Request: 64 * mib, Limit: 160 * mib}, true) // after the kill
			for range 3 {
				c.reconcile()
				c.passes(statusDelay)
			}
			c.expectLimits("160Mi 160Mi")
			if !c.told(tc.why) || c.told(string(Returned)) {
				t.Errorf("people are not told, or that it was returned: %v", c.log)
			}
			l := c.state().Loans[0]
			if !l.Failed || l.Returned.IsZero() {
				t.Errorf("it is counted as on loan: %+v", l)
			}
		})
	}
}

// TestALoanThatFailedIsTakenBack: also where nothing else is recommended. Another one would fail, too.
func TestALoanThatFailedIsTakenBack(t *testing.T) {
	c := newCluster(t, 1, lendable)
	c.wants(lendable, false)
	c.desired(func(d *Desired) { d.Policy.DecreaseNever = true })
	c.lends(512*mib, true)
	c.app(0).Actual, c.in.Pods[0].Resize = lendable, Resize{Deferred: true, Message: "full"}
	for range 8 {
		c.passes(statusDelay)
		c.reconcile()
	}
	c.expectLimits("128Mi")
	if l := c.state().Loans; len(l) != 1 || !l[0].Failed || l[0].Returned.IsZero() {
		t.Errorf("loans %+v", l)
	}
	c.passes(time.Hour)
	c.reconcile()
	if l := c.state().Loans; len(l) != 0 {
		t.Errorf("it is remembered for longer than an hour: %+v", l)
	}
}

// TestALoanWhoseReturnFailsIsReturnedLater: what was lent became the size that decrease: Never protects, where the
// kubelet could not lower the limit and it was undone.
func TestALoanWhoseReturnFailsIsReturnedLater(t *testing.T) {
	c := newCluster(t, 1, lendable)
	c.wants(lendable, false)
	c.desired(func(d *Desired) { d.Policy.DecreaseNever = true })
	c.lends(512*mib, true)
	c.node = func(p *Pod) { p.Resize = Resize{InProgress: true, Failed: true, Message: "memory is in use"} }
	c.returns(128 * mib)
	for range 7 {
		c.passes(time.Minute)
		c.uses(0, 60*mib)
		c.reconcile()
	}
	if l := c.state().Loans[0]; c.app(0).Spec.Limit != 512*mib || l.Ended.IsZero() || !l.Returned.IsZero() {
		t.Errorf("the return was undone, and the spec has %s: %+v", c.app(0).Spec.Limit, l)
	}
	if c.told(v1alpha1.EventLoanReturned) {
		t.Errorf("people are told of a return that failed: %v", c.log)
	}
	c.node = nil
	c.returns(128 * mib)
	c.expectLimits("128Mi")
	if !c.told(v1alpha1.EventLoanReturned) {
		t.Errorf("people are not told that the loan ended: %v", c.log)
	}
}

// TestALoanLastsAsFarAsThePodHasIt: also where a further one was not sent, or the owner's limit.max cut it.
func TestALoanLastsAsFarAsThePodHasIt(t *testing.T) {
	for name, tc := range map[string]struct {
		sent  bool
		max   memory.Bytes
		want  string
		loans int
	}{
		"a further loan was not sent": {want: "300Mi", loans: 1},
		"the owner cuts a loan":       {sent: true, max: 400 * mib, want: "400Mi", loans: 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1, lendable)
			c.wants(lendable, false)
			c.desired(func(d *Desired) { d.WindowPeak = 290 * mib })
			c.lends(300*mib, true)
			c.passes(time.Minute)
			c.uses(0, 290*mib)
			c.reconcile()
			c.lends(512*mib, tc.sent)
			c.desired(func(d *Desired) { d.Policy.LimitMax = tc.max })
			for range 10 {
				c.passes(time.Minute)
				c.uses(0, 60*mib)
				c.reconcile()
			}
			c.expectLimits(tc.want)
			if l := c.state().Loans; len(l) != tc.loans {
				t.Errorf("loans %+v", l)
			}
			c.returns(128 * mib)
			c.expectLimits("128Mi")
		})
	}
}

// TestALowerLimitIsNotProvenByTheTimeOfALoan: the canary had more, and nothing shows that it bears the lower limit.
func TestALowerLimitIsNotProvenByTheTimeOfALoan(t *testing.T) {
	c := newCluster(t, 1, big)
	c.wants(small, false)
	c.reconcile()
	c.passes(time.Minute)
	c.reconcile()
	c.expectLimits("100Mi")
	c.lends(192*mib, true)
	c.returns(100 * mib)
	c.expectLimits("100Mi")
	proven := func() bool { s := c.state(); return s.Proven("app", "").Limit > 0 }
	for range 8 {
		c.passes(time.Minute)
		c.reconcile()
	}
	if proven() {
		t.Errorf("it had the lower limit for less than it is watched, which is %s: %v", c.in.Policy.Watch, c.log)
	}
	for range 4 {
		c.passes(time.Minute)
		c.reconcile()
	}
	if !proven() {
		t.Errorf("it is not watched: %+v", c.state().Steps)
	}
}

// TestALoanIsReturnedWhenNoOtherPodIsWatched: what its pods show would not speak against the lower limit.
func TestALoanIsReturnedWhenNoOtherPodIsWatched(t *testing.T) {
	c := newCluster(t, 3, big)
	c.wants(small, false)
	c.lends(512*mib, true)
	for range 13 { // the first of the other two is watched, and then the second
		c.reconcile()
		c.passes(time.Minute)
	}
	c.expectLimits("512Mi 100Mi 100Mi")
	s := c.state()
	s.Loans[0].Ended, s.Loans[0].LastHigh = c.in.Now, c.in.Now.Add(-rescue.Hold)
	c.store(&s)
	c.reconcile()
	if _, watched := c.written.step(c.in.Pods[2].UID); !watched {
		t.Errorf("the second is not watched any more: %v", c.log)
	}
	c.expectLimits("512Mi 100Mi 100Mi")
	for range 12 {
		c.passes(time.Minute)
		c.reconcile()
	}
	c.expectLimits("256Mi 100Mi 100Mi")
}

// TestALoanThatIsBeingReturnedIsFollowedToItsEnd: a lower limit of other pods waits for it.
func TestALoanThatIsBeingReturnedIsFollowedToItsEnd(t *testing.T) {
	c := newCluster(t, 2, lendable)
	c.wants(lendable, false)
	c.lends(512*mib, true)
	c.node = func(p *Pod) { p.Resize = Resize{InProgress: true} }
	c.returns(128 * mib)
	c.app(1).Spec.Limit, c.app(1).Actual.Limit = 256*mib, 256*mib
	c.desired(func(d *Desired) { d.Policy.LimitMax = 200 * mib })
	c.passes(time.Minute)
	c.reconcile()
	if _, begun := c.written.step(c.in.Pods[0].UID); !begun {
		t.Errorf("nobody follows the return: %v", c.log)
	}
	c.expectLimits("512Mi 256Mi")
	c.node = nil
	c.actuates(&c.in.Pods[0])
	for range 3 {
		c.passes(time.Minute)
		c.reconcile()
	}
	c.expectLimits("128Mi 128Mi")
	if !c.told(v1alpha1.EventLoanReturned) {
		t.Errorf("people are not told that the loan ended: %v", c.log)
	}
}

// TestTheReturnOfALoanThatIsNeededAgainIsNotSent: it was written down, and the leader ended.
func TestTheReturnOfALoanThatIsNeededAgainIsNotSent(t *testing.T) {
	c := newCluster(t, 1, lendable)
	c.wants(lendable, false)
	c.lends(512*mib, true)
	for range 11 {
		c.passes(5 * time.Minute)
		c.uses(0, 60*mib)
		c.reconcile()
	}
	c.passes(5 * time.Minute)
	c.uses(0, 60*mib)
	c.reconcileAndDie(0)
	if !c.died {
		t.Fatalf("nothing was to be sent: %v", c.log)
	}
	c.passes(time.Minute)
	c.uses(0, 200*mib)
	c.reconcile()
	c.expectLimits("512Mi")
	if c.writes() != 0 {
		t.Errorf("sent: %v", c.log)
	}
}

// TestALoanThatIsNotReturnedKeepsNoOtherContainerFromItsSize: nor the pod from the owner's maximum. Its successor has
// no loan.
func TestALoanThatIsNotReturnedKeepsNoOtherContainerFromItsSize(t *testing.T) {
	for name, tc := range map[string]struct{ side, max memory.Bytes }{
		"another container": {side: 256 * mib}, "the owner's maximum": {side: 64 * mib, max: 256 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 2, lendable)
			c.in.Policy.Evict = true
			c.wants(lendable, false)
			for i := range c.in.Pods {
				pod := &c.in.Pods[i]
				pod.Containers = append(pod.Containers, Container{
					Name: "side", Spec: memory.Size{Request: 64 * mib, Limit: 64 * mib},
					Actual: memory.Size{Request: 64 * mib, Limit: 64 * mib}, Started: start.Add(-time.Hour), Demand: 20 * mib,
				})
			}
			side := c.in.Desired[Key{Container: "app"}]
			side.Recommendation.Size = memory.Size{Request: 64 * mib, Limit: 64 * mib}
			c.in.Desired[Key{Container: "side"}] = side
			c.lends(512*mib, true)
			app := c.app(0)
			app.FrozenHeap, app.Overhead = 384*mib, 32*mib
			c.returns(128 * mib)
			c.expectLimits("512Mi 128Mi")
			side.Recommendation.Size.Limit, side.Recommendation.Urgent = tc.side, true
			c.in.Desired[Key{Container: "side"}] = side
			c.desired(func(d *Desired) { d.Policy.LimitMax = tc.max })
			c.node = func(p *Pod) { p.Resize = Resize{Infeasible: true, Message: "too small"} }
			for range 5 {
				c.passes(time.Minute)
				c.uses(0, 60*mib)
				c.reconcile()
			}
			if !c.told("evicted web-1") {
				t.Errorf("it keeps the size that it must not have; reason %s: %s\n%v", c.last.Reason, c.last.Message, c.log)
			}
		})
	}
}

func TestALoanOfAContainerThatIsNotMeasuredLasts(t *testing.T) {
	c := newCluster(t, 1, lendable)
	c.wants(lendable, false)
	c.unread = true
	c.lends(256*mib, true)
	for range 60 {
		c.passes(5 * time.Minute)
		c.reconcile()
	}
	c.expectLimits("256Mi")
}

func TestALoanThatWasNotSentIsForgotten(t *testing.T) {
	c := newCluster(t, 1, lendable)
	c.wants(lendable, false)
	c.lends(256*mib, false)
	c.passes(loanTimeout / 2)
	c.reconcile()
	if len(c.state().Loans) != 1 {
		t.Error("the next leader does not find a loan that it may have to send")
	}
	c.passes(loanTimeout)
	c.reconcile()
	s := c.state()
	if len(s.Loans)+len(s.Changes)+len(s.Spent) != 0 {
		t.Errorf("loans %v, changes %v, spent %v are left", s.Loans, s.Changes, s.Spent)
	}
	c.expectLimits("128Mi")
}

// TestALoanThatIsNotSentForARaiseIsForgotten: the pod had got more for another reason a moment before. The loan was
// shown as lent for hours, and the node's account had it.
func TestALoanThatIsNotSentForARaiseIsForgotten(t *testing.T) {
	c := newCluster(t, 2, lendable)
	c.wants(memory.Size{Request: 64 * mib, Limit: 192 * mib}, true)
	c.lends(512*mib, false)
	for i := range c.in.Pods {
		c.app(i).Spec.Limit, c.app(i).Actual.Limit = 192*mib, 192*mib
	}
	c.passes(loanTimeout)
	c.uses(0, 150*mib)
	c.reconcile()
	if s := c.state(); len(s.Loans)+len(s.Changes) != 0 {
		t.Errorf("loans %v, changes %v are left", s.Loans, s.Changes)
	}
	c.expectLimits("192Mi 192Mi")
}

func TestARecommendationTakesALoanOver(t *testing.T) {
	c := newCluster(t, 2, lendable)
	c.lends(256*mib, true)
	c.wants(memory.Size{Request: 64 * mib, Limit: 300 * mib}, true)
	for range 3 {
		c.passes(time.Minute)
		c.reconcile()
	}
	c.expectLimits("300Mi 300Mi")
	if !c.told("it is recommended for all pods now") {
		t.Errorf("people are not told: %v", c.log)
	}
	for i := range c.state().Loans {
		if l := &c.state().Loans[i]; l.Returned.IsZero() {
			t.Errorf("the loan goes on: %+v", l)
		}
	}
}

// TestALoanIsNoRaiseOfAll: a higher request of its pod, which keeps the lent limit, made memfit forget that it had
// lowered the limit of all, so that a kill rolled nothing back.
func TestALoanIsNoRaiseOfAll(t *testing.T) {
	c := newCluster(t, 3, big)
	c.lowersAll()
	c.lends(400*mib, true)
	c.wants(memory.Size{Request: 90 * mib, Limit: 100 * mib}, false)
	c.desired(func(d *Desired) { d.Recommendation.UseAboveRequest = true })
	for range 3 {
		c.passes(time.Minute)
		c.reconcile()
	}
	c.expectLimits("400Mi 100Mi 100Mi")
	if !c.told("Resized web-1: request of container app 70Mi to 90Mi") {
		t.Errorf("its request is as it was: %v", c.log)
	}
	c.killed(1)
	c.reconcile()
	c.expectLimits("400Mi 256Mi 256Mi")
}

func TestALoanThatWasNeededSpeaksAgainstALowerLimit(t *testing.T) {
	c := newCluster(t, 1, memory.Size{Request: 64 * mib, Limit: 256 * mib})
	c.wants(memory.Size{Request: 64 * mib, Limit: 128 * mib}, false)
	for range 30 {
		c.passes(time.Minute)
		c.reconcile()
	}
	c.expectLimits("128Mi")
	c.lends(192*mib, true)
	c.passes(time.Minute)
	c.uses(0, 150*mib)
	c.reconcile()
	c.passes(time.Minute)
	c.uses(0, 150*mib)
	c.reconcile()
	c.expectLimits("256Mi")
	if !c.told("needed more (sizing.rescue)") {
		t.Errorf("the lower limit is not rolled back for it: %v", c.log)
	}
}

func TestALoanOfAPodThatIsGoneEnds(t *testing.T) {
	c := newCluster(t, 2, lendable)
	c.wants(lendable, false)
	c.lends(256*mib, true)
	c.in.Pods = c.in.Pods[1:]
	c.passes(time.Minute)
	c.reconcile()
	if l := c.state().Loans; len(l) != 1 || l[0].Returned.IsZero() {
		t.Errorf("%+v", l)
	}
	c.passes(2 * time.Hour)
	c.reconcile()
	if l := c.state().Loans; len(l) != 0 {
		t.Errorf("it is remembered for ever: %+v", l)
	}
}

// TestALoanOfAPodThatFollowsAnotherProfileLasts: or whose profile leaves the container alone. It is returned when the
// pod is back.
func TestALoanOfAPodThatFollowsAnotherProfileLasts(t *testing.T) {
	for name, away := range map[string]func(*cluster, *Pod){
		"another profile": func(c *cluster, pod *Pod) {
			c.in.Elsewhere = map[types.UID]bool{pod.UID: true}
			c.in.Pods = c.in.Pods[1:]
		},
		"not its container": func(c *cluster, _ *Pod) { c.in.Pods[0].Containers = nil },
	} {
		c := newCluster(t, 2, lendable)
		c.wants(lendable, false)
		c.lends(256*mib, true)
		pods := slices.Clone(c.in.Pods)
		away(c, &pods[0])
		c.passes(time.Minute)
		c.reconcile()
		if l := c.state().Loans; len(l) != 1 || !l[0].Ended.IsZero() || !l[0].Returned.IsZero() {
			t.Errorf("%s: %+v", name, l)
		}
		c.in.Pods, c.in.Elsewhere = pods, nil
		for range 75 {
			c.passes(time.Minute)
			c.uses(0, 50*mib)
			c.reconcile()
		}
		c.expectLimits("128Mi 128Mi")
	}
}

// TestNoLoanIsForgottenWhileItLasts: its limit would be lowered while the container needs it. How many there may be is
// decided before one is written down.
func TestNoLoanIsForgottenWhileItLasts(t *testing.T) {
	var state State
	pod := func(i int) types.UID { return types.UID(fmt.Sprintf("uid-%d", i)) }
	for i := range rescue.MaxWorkloadLoans + 1 {
		state.AddLoan(rescue.Loan{
			Pod: string(pod(i)), UID: pod(i), Container: "app", From: lendable,
			To: memory.Size{Request: lendable.Request, Limit: 256 * mib}, At: time.Unix(0, 0), Sequence: int64(i),
		}, "it grew", true)
	}
	stored, err := json.Marshal(&state)
	if err != nil {
		t.Fatal(err)
	}
	var read State
	if err := json.Unmarshal(stored, &read); err != nil {
		t.Fatal(err)
	}
	for i := range rescue.MaxWorkloadLoans + 1 {
		if _, _, on := read.LoanSizes(pod(i), "app"); !on {
			t.Errorf("the loan of pod %d is forgotten", i)
		}
	}
}

// TestNoLoanIsSpokenOfWhereThereIsNone: the limit of another pod is being lowered, which a raise has not ended.
func TestNoLoanIsSpokenOfWhereThereIsNone(t *testing.T) {
	for lent, says := range map[bool]string{
		false: "the limit of pod web-2 is being lowered", true: "the loan (sizing.rescue) of pod web-2 is being returned",
	} {
		g := lower()
		from, to := map[string]memory.Size{"app": big}, map[string]memory.Size{"app": small}
		g.d.State.Steps = []Step{{Pod: "web-2", UID: "uid-2", Phase: Resizing, From: from, To: to}}
		if lent {
			g.d.State.Loans = []rescue.Loan{{Pod: "web-2", UID: "uid-2", Container: "app", From: small, To: big}}
		}
		if got := g.verdict(false); got.Reason != v1alpha1.ReasonWatching || got.Message != says {
			t.Errorf("%+v, want it to say %q", got, says)
		}
	}
}

// TestALoanForgetsNothingOfOtherContainers: the kubelet does not lower the limit of the sidecar, which is taken out of
// the spec then.
func TestALoanForgetsNothingOfOtherContainers(t *testing.T) {
	c := withSidecar(t)
	c.wants(big, false)
	for i := range c.in.Pods {
		proxy := &c.in.Pods[i].Containers[1]
		proxy.Spec, proxy.Actual, proxy.Demand = big, big, 50*mib
	}
	proxy := c.in.Desired[Key{Container: "app"}]
	proxy.Recommendation.Size = small
	c.in.Desired[Key{Container: "proxy"}] = proxy
	c.node = func(p *Pod) {
		p.Resize = Resize{InProgress: true, Failed: true, Message: "below usage"}
		p.Containers[0].Actual = p.Containers[0].Spec
	}
	c.reconcile()
	if got := c.in.Pods[0].Containers[1].Spec; got != small {
		t.Fatalf("the sidecar asks for %v: %s", got, c.last.Message)
	}
	c.written.Lowerings[0].Proven = true
	c.passes(time.Minute)
	c.lends(512*mib, true)
	for range 6 {
		c.passes(time.Minute)
		c.uses(0, 300*mib)
		c.reconcile()
	}
	c.expectLimits("512Mi 256Mi")
	if got := c.in.Pods[0].Containers[1].Spec; got != big {
		t.Errorf("the sidecar still asks for %v: %v", got, c.log)
	}
}
