// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

func TestARestartAndAnEvictionForSizeShareOneBudget(t *testing.T) {
	c := newCluster(t, 4, big)
	c.in.Policy.Evict, c.in.Policy.Cooldown = true, 0
	for i := range c.in.Pods {
		c.app(i).FrozenHeap, c.app(i).Overhead = 192*mib, 20*mib // so that a lower limit takes an eviction
	}
	c.wants(small, false)
	c.quick = false
	c.passes(time.Hour)
	c.in.Restart = &Candidate{Pod: "web-4", UID: "uid-4", Why: "container app climbs"}
	c.reconcile()
	if c.evictions() != 1 || !c.told("restarted web-4") {
		t.Errorf("want the pod in danger and no other: %v", c.log)
	}
	c.in.Restart = &Candidate{Pod: "web-3", UID: "uid-3", Why: "container app climbs, too"}
	c.reconcile()
	if c.evictions() != 1 || !strings.Contains(c.last.RestartBlocked, "web-4 was evicted at 2026-03-02T09:00:00Z") {
		t.Errorf("a second one before the first is replaced: %q, %v", c.last.RestartBlocked, c.log)
	}
	c.in.Restart = nil
	c.in.Pods[3].Ready = true
	c.passes(time.Second)
	c.evictsTheCanary()
	if c.evictions() != 2 {
		t.Errorf("the first is replaced, and no size is carried out: %s %s", c.last.Reason, c.last.Message)
	}
}

// TestARestartIsNotForgottenForARefusedResize: of the same pod, which was asked for before.
func TestARestartIsNotForgottenForARefusedResize(t *testing.T) {
	s := State{Restart: &Step{Pod: "web-1", UID: "uid-1", Phase: Evicting}}
	s.Note(Action{Pod: "web-1", UID: "uid-1"}, Outcome{Kind: OutcomeRefused, Why: "QoS class"}, start)
	if s.Restart == nil {
		t.Error("another pod may be evicted beside it")
	}
	s.Note(Action{Pod: "web-1", UID: "uid-1", Evict: true, Restart: true}, Outcome{Kind: OutcomeBudget}, start)
	if s.Restart != nil {
		t.Error("it was refused, and counts")
	}
}

// TestWhatAPodHeldAtItsRestartIsRememberedForAWeek: it shows whether a restart helped.
func TestWhatAPodHeldAtItsRestartIsRememberedForAWeek(t *testing.T) {
	c := newCluster(t, 2, big)
	held := RestartDemand{Container: "app", Demand: 200 * mib}
	c.in.Restart = &Candidate{Pod: "web-1", UID: "uid-1", Cause: held}
	c.reconcile()
	c.in.Restart, c.in.Pods[0].Ready = nil, true
	for _, later := range []struct {
		by   time.Duration
		want int
	}{{0, 1}, {6 * 24 * time.Hour, 1}, {24 * time.Hour, 0}} {
		c.passes(later.by)
		c.died = true
		c.reconcile()
		if past := c.written.PastRestarts; len(past) != later.want || later.want > 0 && past[0].Cause != held {
			t.Errorf("at %s: %+v", c.in.Now, past)
		}
	}
}

func TestARestartWaitsForTheCanary(t *testing.T) {
	c := newCluster(t, 3, big)
	c.lowersTheCanary()
	c.expectReason(v1alpha1.ReasonWatching)
	c.in.Restart = &Candidate{Pod: "web-3", UID: "uid-3"}
	c.reconcile()
	if c.evictions() != 0 || !strings.Contains(c.last.RestartBlocked, "maxUnavailable is 1") {
		t.Errorf("%q %v", c.last.RestartBlocked, c.log)
	}
}

func (c *cluster) evictions() (n int) {
	for _, l := range c.log {
		if strings.HasPrefix(l, "evicted ") || strings.HasPrefix(l, "restarted ") {
			n++
		}
	}
	return n
}

// Whatever pods do, whatever is wanted, however clocks differ and wherever memfit dies: no more pods are kept from
// serving at a time than the owner allows, those counted that do not serve for reasons of their own.
func TestNoMorePodsAreDisruptedThanTheOwnerAllows(t *testing.T) {
	disrupted := 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 7))
		c := newCluster(t, 2+rng.IntN(6), big)
		c.quick, c.slow, c.bug = rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0
		c.setClock(time.Duration(rng.IntN(3)-1) * time.Duration(rng.IntN(100)) * time.Second)
		wanted := len(c.in.Pods)
		if rng.IntN(2) == 0 {
			c.wanted = wanted
		}
		c.in.Policy.MaxUnavailable, c.in.Policy.Evict = int32(1+rng.IntN(3)), rng.IntN(3) > 0
		for i := range c.in.Pods {
			c.app(i).RestartsOnResize = rng.IntN(3) == 0
			if rng.IntN(3) == 0 {
				c.app(i).FrozenHeap = 192 * mib
			}
		}
		c.wants(small, false)
		for step := range 300 {
			c.passes(time.Duration(rng.IntN(400)) * []time.Duration{time.Millisecond, time.Second}[rng.IntN(2)])
			c.lives(rng)
			if rng.IntN(30) == 0 {
				sizes := []memory.Size{small, big, {Request: 90 * mib, Limit: 130 * mib}, {Request: 300 * mib, Limit: 400 * mib}}
				c.wants(sizes[rng.IntN(len(sizes))], rng.IntN(2) == 0)
			}
			c.in.Restart = nil
			if len(c.in.Pods) > 0 && rng.IntN(4) == 0 {
				i := rng.IntN(len(c.in.Pods))
				c.in.Restart = &Candidate{Pod: c.in.Pods[i].Name, UID: c.in.Pods[i].UID, Why: "it climbs"}
			}
			before, log := c.serving(), len(c.log)
			c.reconcileAndDie(rng.IntN(4) - 1)
			lost := before - c.serving()
			disrupted += lost
			if away := wanted - c.serving(); lost > 0 && away > int(c.in.Policy.MaxUnavailable) {
				t.Fatalf("seed %d step %d: %d of %d pods do not serve, maxUnavailable is %d; just now: %v",
					seed, step, away, wanted, c.in.Policy.MaxUnavailable, c.log[log:])
			}
		}
	}
	if disrupted < 500 {
		t.Errorf("only %d pods were disrupted at all: the test asks too little", disrupted)
	}
}

func (c *cluster) serving() (n int) {
	for i := range c.in.Pods {
		if c.in.Pods[i].serves() {
			n++
		}
	}
	return n
}

// lives lets pods be created, become ready, crash, recover, be deleted.
func (c *cluster) lives(rng *rand.Rand) {
	for len(c.awaited) > 0 {
		late := c.wanted == 0 && c.in.Now.Sub(c.awaited[0].since) > successorTimeout/4 // else only that number would tell
		if !late && rng.IntN(3) > 0 {
			break
		}
		c.in.Pods = append(c.in.Pods, c.pod(c.awaited[0].size))
		c.in.Pods[len(c.in.Pods)-1].Ready = c.quick
		c.awaited = c.awaited[1:]
	}
	for i := range c.in.Pods {
		p := &c.in.Pods[i]
		switch what := rng.IntN(40); {
		case what == 0:
			c.dies(i, time.Duration(rng.IntN(60))*time.Second)
		case what == 1 && (c.wanted > 0 || !c.slow): // else nobody could tell it from the successor of another
			*p = c.pod(p.Containers[0].Spec) // drained, and made again elsewhere
			p.Ready = false
		case what == 2:
			c.killed(i)
		case what < 25:
			p.Ready = true
			if p.Containers[0].Started.IsZero() {
				c.runs(i)
			}
		}
	}
}

// Seen in `make chaos`: a pod was created, ready, and the next one evicted within one second, of which it was taken for
// the successor, too; a third was evicted while the real one was not created yet.
func TestOneSuccessorIsNotThatOfTwo(t *testing.T) {
	for _, ahead := range []time.Duration{0, -time.Hour, time.Hour} { // the API server's clock
		c := newCluster(t, 3, small)
		c.setClock(ahead)
		c.in.Policy.Evict, c.slow = true, true
		c.node = func(p *Pod) { p.Resize = Resize{Infeasible: true, Message: "too small"} }
		c.wants(big, true)
		for range 3 {
			c.reconcile()
			c.passes(200 * time.Millisecond)
		}
		created := func() {
			c.in.Pods = append(c.in.Pods, c.pod(c.awaited[0].size))
			c.awaited = c.awaited[1:]
		}
		c.passes(time.Minute)
		created()
		for range 6 {
			c.reconcile()
		}
		if c.evictions() != 2 || !c.told("Pod web-4 runs instead of web-1") || c.told("instead of web-2") {
			t.Fatalf("%s: want the second evicted, and not replaced: %s", ahead, strings.Join(c.log, "\n"))
		}
		created()
		for range 6 {
			c.reconcile()
		}
		if c.evictions() != 3 || !c.told("Pod web-5 runs instead of web-2") {
			t.Errorf("%s: want the third evicted: %s", ahead, strings.Join(c.log, "\n"))
		}
	}
}

// A workload whose pods are all created in one second has more of that second than are remembered.
func TestManyPodsOfOneSecond(t *testing.T) {
	c := newCluster(t, maxPresent+1, small)
	was := presentOf(c.in.Pods)
	next := c.pod(small)
	if len(was.UIDs) != 0 || was.isNewer(&c.in.Pods[0]) || was.isNewer(&next) {
		t.Errorf("%+v takes a pod of that second for a new one", was)
	}
	c.passes(time.Second)
	if next = c.pod(small); !was.isNewer(&next) {
		t.Errorf("%+v does not know a pod of the next second", was)
	}
}

func TestOfTwoEvictionsOneHasAReason(t *testing.T) {
	c := newCluster(t, 5, big)
	c.quick = false
	c.in.Policy.Evict, c.in.Policy.MaxUnavailable = true, 2
	for i := range c.in.Pods {
		c.app(i).FrozenHeap, c.app(i).Overhead = 192*mib, 20*mib
	}
	c.wants(small, false)
	c.passes(time.Hour)
	c.evictsTheCanary()
	c.in.Restart = &Candidate{Pod: "web-5", UID: "uid-5", Why: "container app climbs"}
	c.reconcile()
	if c.evictions() != 1 || !strings.Contains(c.last.RestartBlocked, "another pod is evicted for its size") {
		t.Errorf("whose successor a new pod is could not be told: %q, %v", c.last.RestartBlocked, c.log)
	}
}

// TestARequestThatWaitsKeepsNoOtherPodFromALowerLimit: for days, on a full node, and the pod serves.
func TestARequestThatWaitsKeepsNoOtherPodFromALowerLimit(t *testing.T) {
	c := newCluster(t, 3, big)
	c.node = func(p *Pod) {
		app := &p.Containers[0]
		if p.Resize = (Resize{}); p.Name == "web-1" && app.Spec.Request > app.Actual.Request {
			p.Resize = Resize{Deferred: true, Message: "Node didn't have enough resource: memory"}
			return
		}
		app.Actual = app.Spec
	}
	c.wants(size(240*mib, big.Limit), false)
	c.reconcile()
	c.passes(2 * time.Hour)
	c.reconcile()
	c.wants(small, false)
	for range 4 {
		c.reconcile()
		c.passes(c.in.Policy.Watch + time.Minute)
	}
	c.expectLimits("100Mi 100Mi 100Mi")
}

// TestNoPodIsEvictedAgainAndAgainForASizeThatNewPodsDoNotGet: the webhook leaves new pods as they are for a day,
// because another admission policy refuses what memfit gives, or it does not answer.
func TestNoPodIsEvictedAgainAndAgainForASizeThatNewPodsDoNotGet(t *testing.T) {
	for name, tc := range map[string]struct {
		have, want memory.Size
		urgent     bool
		edit       func(c *Container)
		most       int // within a day
	}{
		"a raise": {have: small, want: big, urgent: true, most: 21, edit: func(c *Container) {
			c.EndedEarly, c.Started = true, time.Time{} // no resize reaches it
			if c.Effective = 0; c.Spec.Limit > small.Limit {
				c.Effective = small.Limit
			}
		}},
		"a lower limit": {have: big, want: small, most: 1, edit: func(c *Container) {
			c.FrozenHeap, c.Overhead = 192*mib, 20*mib
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, tc.have)
			c.in.Policy.Evict, c.unchanged, c.quick = true, tc.have, !tc.urgent
			c.wants(tc.want, tc.urgent)
			days := func(n int) {
				for range n * 24 * 60 {
					for i := range c.in.Pods {
						tc.edit(c.app(i))
					}
					c.reconcile()
					c.passes(time.Minute)
				}
			}
			days(1)
			if n := c.evictions(); n == 0 || n > tc.most {
				t.Errorf("%d pods were evicted in a day, want at most %d", n, tc.most)
			}
			c.expectReason(v1alpha1.ReasonWaitingForNewPods, "was created without it")
			c.unchanged, c.quick = memory.Size{}, true
			tc.edit = func(*Container) {}
			if days(2); c.limits() != strings.TrimSpace(strings.Repeat(tc.want.Limit.String()+" ", 3)) {
				t.Errorf("new pods get the size again, and limits are %s: %s", c.limits(), c.last.Message)
			}
		})
	}
}

// TestASlowCanaryAndAScaleUp: only the successor of the evicted pod has the lower limit, and it is not ready in time.
// Pods that are added meanwhile have the higher limit, and show nothing about the webhook.
func TestASlowCanaryAndAScaleUp(t *testing.T) {
	for name, tc := range map[string]struct {
		newer   []memory.Size
		refused bool
	}{
		"the canary is slow":                 {newer: []memory.Size{small}},
		"pods are added before it":           {newer: []memory.Size{big, small}},
		"pods are added after it":            {newer: []memory.Size{small, big}},
		"all pods came without a lower size": {newer: []memory.Size{big, big}, refused: true},
	} {
		c := newCluster(t, 1, big)
		c.in.Policy.Evict = true
		c.in.State.Steps = []Step{{
			Pod: "web-0", UID: "uid-0", At: start, Phase: Evicting,
			From: map[string]memory.Size{"app": big}, To: map[string]memory.Size{"app": small},
			Present: presentOf(c.in.Pods),
		}}
		for _, size := range tc.newer {
			pod := c.pod(size)
			pod.Ready = false
			c.in.Pods = append(c.in.Pods, pod)
		}
		c.in.Now = start.Add(successorTimeout)
		if after, _ := Observe(c.in, nil); len(after.Refusals) > 0 != tc.refused {
			t.Errorf("%s: evictions are refused: %v", name, after.Refusals)
		}
	}
}

// TestNoPodIsEvictedForALimitThatTheNextOneDoesNotGet: no node takes what that would request, so the webhook gives its
// template's size.
func TestNoPodIsEvictedForALimitThatTheNextOneDoesNotGet(t *testing.T) {
	for name, tc := range map[string]struct {
		have  memory.Size
		later bool // it is known after the first eviction
		want  int
	}{
		"a raise":                      {have: small},
		"known after an eviction":      {have: small, later: true, want: 1},
		"the template's would be less": {have: size(small.Request, small.Limit+20*mib)},
		"it is more than there is":     {have: size(small.Request, small.Limit-20*mib), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1, tc.have)
			c.in.Policy.Evict, c.in.Policy.SingleReplicaMayRestart, c.unchanged = true, true, small
			c.wants(big, true)
			for range 60 {
				app, pod := c.app(0), &c.in.Pods[0]
				app.EndedEarly, app.Started, app.Effective = true, time.Time{}, 0 // no resize reaches it
				if app.Spec == big {
					app.Effective = small.Limit
					if c.evictions() == 0 {
						app.Effective = tc.have.Limit
					}
				}
				if pod.WebhookSizes = nil; !tc.later || c.evictions() > 0 {
					pod.WebhookSizes = onlySmall
				}
				c.reconcile()
				c.passes(time.Minute)
			}
			if n := c.evictions(); n != tc.want {
				t.Errorf("%d evictions, want %d: %v", n, tc.want, c.log)
			}
			c.expectReason(v1alpha1.ReasonUnschedulable, "would not get the limit: no node took that")
			for _, r := range c.state().Refusals {
				if strings.Contains(r.Why, "was created without it") {
					t.Errorf("refused: %s", r.Why)
				}
			}
		})
	}
	for _, given := range []func(map[string]memory.Size) (map[string]memory.Size, string){nil, onlySmall} {
		c := newCluster(t, 1, small)
		c.in.Policy.Evict, c.in.Policy.SingleReplicaMayRestart, c.in.Pods[0].WebhookSizes = true, true, given
		c.wants(big, true)
		c.in.State.Steps = []Step{{
			Pod: "web-1", UID: "uid-1", At: start, Phase: Evicting,
			From: map[string]memory.Size{"app": small}, To: map[string]memory.Size{"app": big},
		}}
		sent := slices.ContainsFunc(Decide(c.in).Actions, func(a Action) bool { return a.Evict })
		if sent != (given == nil) {
			t.Errorf("an eviction begun before is sent: %v", sent)
		}
		c.in.State.Steps[0].UID, c.in.Now = "uid-0", start.Add(successorTimeout)
		after, _ := Observe(c.in, nil)
		if inVain := len(after.Refusals) > 0; inVain != (given == nil) {
			t.Errorf("the pod was evicted in vain: %v", after.Refusals)
		}
	}
}

func onlySmall(map[string]memory.Size) (map[string]memory.Size, string) {
	return map[string]memory.Size{"app": small}, "no node took that"
}
