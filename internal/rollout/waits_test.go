// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rescue"
)

// lowersBesideARaise is a cluster of Guaranteed pods on full nodes: the lower limit of one container waits with the
// raise of the other, and has for a while.
func lowersBesideARaise(t *testing.T, n int) *cluster {
	t.Helper()
	c := newCluster(t, n, size(512*mib, 512*mib))
	for i := range c.in.Pods {
		pod := &c.in.Pods[i]
		pod.QoS = "Guaranteed"
		proxy := pod.Containers[0]
		proxy.Name, proxy.Spec, proxy.Actual = "proxy", size(100*mib, 100*mib), size(100*mib, 100*mib)
		pod.Containers = append(pod.Containers, proxy)
	}
	c.fills()
	c.wants(size(400*mib, 400*mib), false)
	proxy := c.in.Desired[Key{Container: "app"}]
	proxy.Recommendation.Size = size(300*mib, 300*mib)
	c.in.Desired[Key{Container: "proxy"}] = proxy
	for range 20 {
		c.reconcile()
		c.passes(time.Minute)
	}
	if got := c.app(0).Spec.Limit; got != 400*mib || !c.in.Pods[0].Resize.Deferred {
		t.Fatalf("the first pod asks for %s: %s", got, c.last.Message)
	}
	return c
}

// TestAPodThatWaitsForItsNodeKeepsNoOtherFromARestart: it serves with what it has, and so may itself be restarted.
func TestAPodThatWaitsForItsNodeKeepsNoOtherFromARestart(t *testing.T) {
	for i := range 2 {
		c := lowersBesideARaise(t, 3)
		pod := c.in.Pods[i]
		c.in.Restart = &Candidate{Pod: pod.Name, UID: pod.UID, Why: "it climbs"}
		if c.reconcile(); !c.told("restarted " + pod.Name) {
			t.Errorf("pod %s is not restarted: %s", pod.Name, c.last.RestartBlocked)
		}
	}
}

// TestALowerLimitThatWaitsEndsItsChange: the pod is watched when the limit is effective.
func TestALowerLimitThatWaitsEndsItsChange(t *testing.T) {
	c := lowersBesideARaise(t, 1)
	if c.written.underWay() {
		t.Errorf("a change is under way: %+v", c.written.Rollout)
	}
	pod := &c.in.Pods[0]
	pod.Resize = Resize{}
	for i := range pod.Containers {
		pod.Containers[i].Actual = pod.Containers[i].Spec
	}
	for range 3 {
		if got := c.written.Proven("app", "").Limit; got != 0 {
			t.Errorf("proven is %s too early", got)
		}
		c.reconcile()
		c.passes(c.in.Policy.Watch / 2)
	}
	c.reconcile()
	if got := c.written.Proven("app", "").Limit; got != 400*mib {
		t.Errorf("proven is %s: %+v", got, c.written)
	}
}

// TestMoreThanALowerLimitThatWaitsLowersNothing: neither the change nor what is noted of it is a lowering, which would
// end the raises of other pods.
func TestMoreThanALowerLimitThatWaitsLowersNothing(t *testing.T) {
	c := lowersBesideARaise(t, 1)
	c.passes(2 * time.Hour)
	c.desired(func(d *Desired) { d.Recommendation.Size = size(450*mib, 450*mib) })
	c.reconcile()
	if got := c.app(0).Spec.Limit; got != 450*mib {
		t.Fatalf("it asks for %s: %s", got, c.last.Message)
	}
	if c.written.Rollout.Decrease || len(c.written.Lowerings) != 1 || c.written.Lowerings[0].To.Limit != 400*mib {
		t.Errorf("%+v, %+v", c.written.Rollout, c.written.Lowerings)
	}
}

// TestWhatReplacesARaiseThatWaitsWaitsForNoCoolDown: more is recommended before the limit goes without its request, and
// another pod has been changed.
func TestWhatReplacesARaiseThatWaitsWaitsForNoCoolDown(t *testing.T) {
	c := newCluster(t, 2, small)
	c.fillsFor("web-1")
	c.wants(big, false)
	c.reconcile()
	c.passes(2 * time.Second)
	c.reconcile()
	c.wants(size(big.Request, 320*mib), false)
	for range 6 {
		c.passes(statusDelay)
		c.reconcile()
	}
	if got := c.app(0).Actual.Limit; got != 320*mib {
		t.Errorf("the limit is %s: %s", got, c.last.Message)
	}
}

// TestARefusedLimitIsNotAskedForWithARequest: its kubelet fails at the limit without one.
func TestARefusedLimitIsNotAskedForWithARequest(t *testing.T) {
	c := newCluster(t, 1, small)
	c.fills()
	full := c.node
	c.node = func(p *Pod) {
		if app := p.Containers[0]; app.Spec.Request == app.Actual.Request && app.Spec.Limit != app.Actual.Limit {
			p.Resize = Resize{InProgress: true, Failed: true, Message: "cgroup is busy"}
			return
		}
		full(p)
	}
	c.wants(big, true)
	for c.in.Now.Sub(start) < 59*time.Minute {
		c.reconcile()
		c.passes(15 * time.Second)
	}
	if !c.told(string(NotResized)) {
		t.Fatal(c.log)
	}
	if most := strings.Count(strings.Join(c.log, "\n"), "(request 70Mi to 200Mi)"); most != 1 {
		t.Errorf("asked %d times with the request: %v", most, c.log)
	}
}

// TestNoFullPodIsAskedTwiceWithinAnHour: the API server refuses all of more of them than wait for an hour otherwise.
func TestNoFullPodIsAskedTwiceWithinAnHour(t *testing.T) {
	for n, want := range map[int]int{150: 150, 300: 256} {
		c := newCluster(t, n, small)
		for i := range c.in.Pods {
			c.app(i).Demand = small.Limit
		}
		c.refuse = func(Action) bool { return true }
		c.wants(big, true)
		for c.in.Now.Sub(start) < 30*time.Minute {
			c.reconcile()
			c.passes(time.Minute)
		}
		if most := c.mostAsked(); most != 1 || c.writes() != want {
			t.Errorf("of %d pods one was asked %d times, and all together %d times", n, most, c.writes())
		}
	}
}

// TestARefusedRollbackOfARequestEndsNoWatch: the watched limit has the sizes that are to be restored.
func TestARefusedRollbackOfARequestEndsNoWatch(t *testing.T) {
	asked := map[string]memory.Size{"app": size(90*mib, small.Limit)}
	before := map[string]memory.Size{"app": small}
	s := State{Steps: []Step{
		{UID: "uid-1", Phase: Watching, From: map[string]memory.Size{"app": big}, To: before},
		{UID: "uid-1", Phase: Undoing, From: before, To: asked},
	}}
	s.Note(Action{UID: "uid-1", Sizes: before, Undo: true}, Outcome{Kind: OutcomeRefused}, start)
	if len(s.Steps) != 1 || s.Steps[0].Phase != Watching {
		t.Errorf("%+v", s.Steps)
	}
}

// TestAPodThatWaitsForItsNodeKeepsNoLoan: the loan of another is returned, while limits are being lowered.
func TestAPodThatWaitsForItsNodeKeepsNoLoan(t *testing.T) {
	g := gatedAt(size(64*mib, 256*mib), size(64*mib, 128*mib), 50*mib, 60*mib)
	g.d.State = State{
		Rollout: Rollout{Decrease: true, Targets: map[Key]memory.Size{}},
		Steps: []Step{{
			Pod: "web-2", UID: "uid-2", Phase: "Deferred", From: map[string]memory.Size{"app": small},
			To: map[string]memory.Size{"app": big},
		}},
		Loans: []rescue.Loan{{
			Pod: "web-1", UID: "uid-1", Container: "app", From: size(64*mib, 128*mib), To: size(64*mib, 256*mib),
			At: start.Add(-2 * time.Hour), Ended: start.Add(-time.Minute),
		}},
	}
	if got := g.verdict(false); got != (Verdict{}) {
		t.Errorf("%+v", got)
	}
}

// TestAPodThatNoNodeTakesIsEvictedWhereThatIsAllowed: no resize returns its request. A promise is kept.
func TestAPodThatNoNodeTakesIsEvictedWhereThatIsAllowed(t *testing.T) {
	held := func(r Refusal) func(*Input) {
		r.Reason, r.Why, r.Until = v1alpha1.ReasonRefused, "it is refused", start.Add(time.Hour)
		return func(in *Input) { in.State.Refusals = []Refusal{r} }
	}
	for name, tc := range map[string]struct {
		edit  func(in *Input)
		stays bool
	}{
		"anyhow":                 {edit: func(*Input) {}},
		"a hold of lower limits": {edit: held(Refusal{UID: "uid-1", Evict: true, All: true, OnlyLower: true})},
		"a hold of all":          {edit: held(Refusal{UID: "uid-1", Evict: true, All: true}), stays: true},
		"a hold of another":      {edit: held(Refusal{UID: "uid-1", Evict: true})},
		"its own":                {edit: held(Refusal{UID: "uid-2", Evict: true}), stays: true},
		"a pause":                {edit: func(in *Input) { in.Paused = "memfit.dev/pause" }, stays: true},
		"a Job's run":            {edit: func(in *Input) { in.Waiting[0].Completes = true }, stays: true},
		"a protected pod": {edit: func(in *Input) {
			in.Waiting[0].DoNotDisrupt = `karpenter.sh/do-not-disrupt: "true"`
		}, stays: true},
		"a bare pod": {edit: func(in *Input) { in.Policy.NoEvict = "no controller recreates this pod" }, stays: true},
		"InPlace":    {edit: func(in *Input) { in.Policy.Evict = false }, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Now: start, Policy: ownersDefaults(), Waiting: []Waiting{{
				Name: "web-2", UID: "uid-2", Since: start.Add(-time.Hour), NotResizable: true,
				From: sizes(size(200*mib, 256*mib)), To: sizes(size(100*mib, 0)),
			}}}
			in.Policy.Evict = true
			tc.edit(&in)
			out := Decide(in)
			if got := len(out.Actions) == 0; got != tc.stays {
				t.Errorf("it stays: %t, want %t: %s", got, tc.stays, out.Message)
			}
			if promised := strings.Contains(out.Message, "the pod is evicted"); promised == tc.stays {
				t.Errorf("promised: %t: %s", promised, out.Message)
			}
			in.Waiting[0].NotResizable = false
			if out = Decide(in); len(out.Actions) != 1 || out.Actions[0].Evict {
				t.Errorf("its request is not taken back in place: %s", out.Message)
			}
		})
	}
}
