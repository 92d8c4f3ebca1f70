// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/recommend"
)

const mib = memory.MiB

var start = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// cluster is a workload on simulated nodes, and a memfit that may die at any moment.
type cluster struct {
	t  testing.TB
	in Input
	// written is the state as it was written last. A memfit that goes on has it in memory, and one that starts reads it:
	// after one has died, and now and then.
	written State
	died    bool
	steps   int
	kills   []memory.OOMKill
	log     []string
	// node answers a resize; nil makes it effective.
	node func(p *Pod)
	// evict answers an eviction; nil replaces the pod by one with what is recommended.
	evict func(a Action) (reason string)
	// unchanged is the size that the successor gets instead, as where no webhook answers; zero: what is recommended.
	unchanged memory.Size
	// bug: a resize that finds the container down does not reach the pod's cgroup, by container name. late: the container
	// dies before the kubelet comes to it. refuse: the API server does not take it. lost: it does, and the answer never
	// arrives.
	bug    bool
	cgroup map[string]memory.Bytes
	late   func(i int) bool
	refuse func(a Action) bool
	right  bool // what is refused is so for want of a right
	lost   bool
	// unread: no memory is read.
	unread bool
	// apart: containers are ready or not, whatever their pod is.
	apart bool
	// quick: the successor of an evicted pod is ready immediately.
	quick bool
	// slow: it is created some time after the pod is gone. awaited are those that are not created yet.
	slow    bool
	awaited []awaited
	// wanted is how many pods there should be, which is read before one is kept from serving; 0: unknown.
	wanted int
	// ahead is how far the API server's clock is in front of memfit's.
	ahead time.Duration
	last  Transition
	born  int
}

// awaited is a pod that is to be created since then.
type awaited struct {
	size  memory.Size
	since time.Time
}

// effective is the truth.
func (c *cluster) effective(i int) memory.Bytes {
	limit := c.in.Pods[i].Containers[0].Actual.Limit
	if cgroup, held := c.cgroup[c.in.Pods[i].Name]; held {
		return min(cgroup, limit)
	}
	return limit
}

// actuates is a kubelet that gets a resize.
func (c *cluster) actuates(pod *Pod) {
	i := slices.IndexFunc(c.in.Pods, func(p Pod) bool { return p.UID == pod.UID })
	before := c.effective(i)
	if c.late != nil && c.late(i) {
		c.dies(i, time.Minute)
	}
	app := &pod.Containers[0]
	app.Actual, pod.Resize = app.Spec, Resize{}
	if app.RestartsOnResize {
		pod.Ready = c.quick
	}
	if !c.bug {
		return
	}
	if c.cgroup == nil {
		c.cgroup = map[string]memory.Bytes{}
	}
	if c.cgroup[pod.Name] = app.Spec.Limit; app.Started.IsZero() {
		c.cgroup[pod.Name] = before
	}
	if app.Effective = 0; c.cgroup[pod.Name] < app.Actual.Limit {
		app.Effective = c.cgroup[pod.Name]
	}
}

// ownersDefaults are what an empty profile allows.
func ownersDefaults() Policy {
	d := (&profile.Profile{Spec: &v1alpha1.MemoryProfileSpec{}}).Disruption()
	return Policy{
		MaxUnavailable: profile.MaxUnavailable(d, 1), Watch: d.Watch.Duration, Cooldown: d.Cooldown.Duration,
	}
}

// ownersSizes is how an empty profile sizes.
var ownersSizes = sync.OnceValue(func() recommend.Policy {
	app := (&profile.Profile{Spec: &v1alpha1.MemoryProfileSpec{}}).Container("app", nil)
	return app.SizePolicy()
})

func newCluster(t testing.TB, n int, size memory.Size) *cluster {
	c := &cluster{
		t: t, quick: true, in: Input{
			Now: start, Desired: map[Key]Desired{}, Policy: ownersDefaults(),
		},
	}
	c.in.Policy.RestartsPerDay = 100
	for range n {
		c.in.Pods = append(c.in.Pods, c.pod(size))
	}
	return c
}

func (c *cluster) pod(size memory.Size) Pod {
	c.born++
	return Pod{
		Name: fmt.Sprintf("web-%d", c.born), UID: types.UID(fmt.Sprintf("uid-%d", c.born)), Ready: true,
		Created: c.in.Now.Add(c.ahead).Truncate(time.Second), QoS: "Burstable",
		Containers: []Container{{
			Name: "app", Spec: size, Actual: size, Started: c.in.Now.Add(-time.Hour), Demand: 50 * mib, Measured: c.in.Now,
		}},
	}
}

// wants recommends a size on nine days of evidence.
func (c *cluster) wants(size memory.Size, urgent bool) {
	c.in.Desired[Key{Container: "app"}] = Desired{
		Recommendation: recommend.Recommendation{
			Decision: recommend.Keep, Size: size, Urgent: urgent, Evidence: recommend.Evidence{Window: 9 * 24 * time.Hour},
			Summary: "limit " + size.Limit.String() + ": nine days of evidence",
		},
		Policy:     ownersSizes(),
		WindowPeak: 60 * mib,
	}
}

// desired changes what is recommended, or its surroundings.
func (c *cluster) desired(edit func(*Desired)) {
	desired := c.in.Desired[Key{Container: "app"}]
	edit(&desired)
	c.in.Desired[Key{Container: "app"}] = desired
}

// reconcile is one: the state is read as it was written, and written before anything is done.
func (c *cluster) reconcile() {
	c.t.Helper()
	c.reconcileAndDie(-1)
}

// reconcileAndDie is a reconcile that ends after so many actions, as if killed; -1: it does not.
func (c *cluster) reconcileAndDie(after int) {
	c.t.Helper()
	in := c.in
	in.State = c.written
	for i := range in.Pods {
		for j := range in.Pods[i].Containers {
			app := &in.Pods[i].Containers[j]
			if !c.unread {
				app.Measured = in.Now
			}
			if !c.apart {
				app.Ready = in.Pods[i].Ready
			}
		}
	}
	if c.steps++; c.died || c.steps%8 == 0 {
		in.State, c.died = c.state(), false
	}
	if c.in.Restart != nil { // its memory is read again and again
		candidate := *c.in.Restart
		candidate.Measured, in.Restart = in.Now, &candidate
	}
	observed, findings := Observe(in, c.kills)
	for _, f := range findings {
		c.log = append(c.log, fmt.Sprintf("%s %s: %s", f.Kind, f.Pod, f.Message))
	}
	in.State = observed
	in.Desired = map[Key]Desired{}
	for name, desired := range c.in.Desired {
		if r, active := observed.ActiveRevert(name, in.Now); active {
			desired.Recommendation = r.Override(desired.Recommendation, memory.Size{})
		}
		in.Desired[name] = desired
	}
	d := Decide(in)
	c.last = d
	c.store(&d.State)
	for i, a := range d.Actions {
		if i == after {
			c.died = true
			return
		}
		c.do(a, &d.State)
	}
	if len(d.Actions) > 0 && !c.lost {
		c.store(&d.State)
	}
}

// lowersTheCanary recommends small, and gives it to the first pod.
func (c *cluster) lowersTheCanary() {
	c.t.Helper()
	c.wants(small, false)
	c.reconcile()
	c.passes(5 * time.Second)
	c.reconcile()
}

// lowersAll lowers the limits of three pods, and lets time pass until each has been watched.
func (c *cluster) lowersAll() {
	c.t.Helper()
	c.wants(small, false)
	for range 10 {
		c.reconcile()
		c.passes(c.in.Policy.Watch)
	}
	c.expectLimits("100Mi 100Mi 100Mi")
}

// evictsTheCanary writes down that a pod is to be evicted for a lower limit, and evicts it when the webhooks know.
func (c *cluster) evictsTheCanary() {
	c.t.Helper()
	before := c.evictions()
	c.reconcile()
	if c.evictions() != before {
		c.t.Errorf("evicted before the webhooks can know: %v", c.log)
	}
	c.passes(permitDelay)
	c.reconcile()
}

// store writes the state down. What is noted of actions afterwards is not in it.
func (c *cluster) store(s *State) { c.written = s.clone() }

// stored is the state as it was written last.
func (c *cluster) stored() []byte {
	c.t.Helper()
	data, err := json.Marshal(&c.written)
	if err != nil {
		c.t.Fatal(err)
	}
	return data
}

// state is what one that starts reads.
func (c *cluster) state() (s State) {
	c.t.Helper()
	if err := json.Unmarshal(c.stored(), &s); err != nil {
		c.t.Fatal(err)
	}
	return s
}

func (c *cluster) find(uid types.UID) *Pod {
	for i := range c.in.Pods {
		if c.in.Pods[i].UID == uid {
			return &c.in.Pods[i]
		}
	}
	return nil
}

// do carries an action out, as the API server and the kubelet would.
func (c *cluster) do(a Action, s *State) {
	pod := c.find(a.UID)
	if pod == nil {
		s.Note(a, Outcome{Kind: OutcomeGone}, c.in.Now)
		return
	}
	if why := c.tooFew(a, s); why != "" {
		s.Note(a, Outcome{Kind: OutcomeTooFew, Why: why}, c.in.Now)
		return
	}
	if a.Evict {
		if c.evict != nil {
			if reason := c.evict(a); reason != "" {
				kind := OutcomeRefused
				if reason == v1alpha1.ReasonDisruptionBudget {
					kind = OutcomeBudget
				}
				s.Note(a, Outcome{Kind: kind, Why: "the budget web allows no disruption"}, c.in.Now)
				return
			}
		}
		size, done := a.Sizes["app"], "evicted "
		if c.unchanged != (memory.Size{}) {
			size = c.unchanged
		}
		if a.Restart {
			size, done = pod.Containers[0].Spec, "restarted "
			s.Note(a, Outcome{}, c.in.Now)
		}
		c.log = append(c.log, done+a.Pod)
		if c.slow {
			c.awaited = append(c.awaited, awaited{size, c.in.Now})
			c.in.Pods = slices.DeleteFunc(c.in.Pods, func(p Pod) bool { return p.UID == a.UID })
			return
		}
		*pod = c.pod(size)
		pod.Ready = c.quick && !a.Restart
		return
	}
	c.log = append(c.log, fmt.Sprintf("resize %s %s", a.Pod, a.Why))
	if c.refuse != nil && c.refuse(a) {
		o := Outcome{Kind: OutcomeRefused, Why: "the API server refuses it"}
		if c.right {
			o = Outcome{Kind: OutcomeNoRight, Why: "memfit may not resize pods"}
		}
		s.Note(a, o, c.in.Now)
		return
	}
	c.doWhole(pod, a)
	for i := range pod.Containers {
		if to, asked := a.Sizes[pod.Containers[i].Name]; asked {
			pod.Containers[i].Spec = to
			if c.node == nil || a.Undo {
				c.actuates(pod)
			}
		}
	}
	if c.node != nil && !a.Undo {
		c.node(pod)
	}
}

// setClock puts the API server's clock so far in front of memfit's, by which the pods that there are were created, too.
func (c *cluster) setClock(ahead time.Duration) {
	for i := range c.in.Pods {
		c.in.Pods[i].Created = c.in.Pods[i].Created.Add(ahead - c.ahead)
	}
	c.ahead = ahead
}

// tooFew returns why an action may not be carried out, as the controller decides it.
func (c *cluster) tooFew(a Action, s *State) string {
	disrupts := func(p *Pod, a Action) bool {
		return p.serves() && (a.Evict || !a.Undo && p.restartsFor(&Step{To: a.Sizes}))
	}
	if c.wanted == 0 || !disrupts(c.find(a.UID), a) {
		return ""
	}
	return s.Availability(c.in.Pods, c.wanted, a.UID).TooFew(c.in.Policy.MaxUnavailable)
}

func (c *cluster) passes(d time.Duration) { c.in.Now = c.in.Now.Add(d) }

// limits are the effective limits, pod by pod.
func (c *cluster) limits() string {
	var all []string
	for _, p := range c.in.Pods {
		all = append(all, p.Containers[0].Actual.Limit.String())
	}
	return strings.Join(all, " ")
}

func (c *cluster) killed(i int) {
	p := &c.in.Pods[i]
	p.Containers[0].Restarts++
	c.kills = append(c.kills, memory.OOMKill{
		Container: memory.ContainerRef{Pod: p.Name, UID: p.UID, Container: "app"}, Kind: memory.OOMMainProcess,
		Time: c.in.Now, Limit: p.Containers[0].Actual.Limit,
	})
}

func (c *cluster) expectLimits(want string) {
	c.t.Helper()
	if got := c.limits(); got != want {
		c.t.Errorf(
			"limits are %s, want %s; reason %s: %s\n%s", got, want, c.last.Reason, c.last.Message, strings.Join(c.log, "\n"),
		)
	}
}

func (c *cluster) expectReason(reason string, words ...string) {
	c.t.Helper()
	if c.last.Reason != reason {
		c.t.Errorf("reason %s (%s), want %s", c.last.Reason, c.last.Message, reason)
	}
	for _, w := range words {
		if !strings.Contains(c.last.Message, w) {
			c.t.Errorf("message %q does not say %q", c.last.Message, w)
		}
	}
}

func (c *cluster) told(words string) bool { return strings.Contains(strings.Join(c.log, "\n"), words) }

var (
	big   = memory.Size{Request: 200 * mib, Limit: 256 * mib}
	small = memory.Size{Request: 70 * mib, Limit: 100 * mib}
)

// TestARaiseReachesAllPodsAtOnce: a raise in place makes no pod unavailable. Twenty replicas that are killed in the
// same second must not wait for one another.
func TestARaiseReachesAllPodsAtOnce(t *testing.T) {
	c := newCluster(t, 3, small)
	c.wants(big, true)
	c.reconcile()
	c.expectLimits("256Mi 256Mi 256Mi")
	c.expectReason(v1alpha1.ReasonApplying, "web-1", "100Mi to 256Mi", "0 of 3 pods have the recommended size")
	c.passes(2 * time.Second)
	c.reconcile()
	if c.expectReason(v1alpha1.ReasonUpToDate); !c.last.UpToDate || c.last.State.underWay() {
		t.Errorf("not at rest: %+v", c.last)
	}
	if !c.told(
		"Resized web-3: limit of container app 100Mi to 256Mi (request 70Mi to 200Mi), effective 2 s after the request",
	) {
		t.Error(c.log)
	}
}

// TestKilledPodsAreRaisedFirst: 32 of 40 pods are changed at a time. Those in a crash loop, of which nothing is read,
// are among them.
func TestKilledPodsAreRaisedFirst(t *testing.T) {
	c := newCluster(t, 40, small)
	for i := range c.in.Pods[30:] {
		app := &c.in.Pods[30+i].Containers[0]
		app.Restarts, app.Demand = 3, 0
	}
	c.wants(big, true)
	actions := Decide(c.in).Actions
	for _, pod := range c.in.Pods[30:] {
		if !slices.ContainsFunc(actions, func(a Action) bool { return a.UID == pod.UID }) {
			t.Errorf("%s waits for %d others", pod.Name, len(actions))
		}
	}
}

// TestAPodThatNeverGoesHoldsNothingUp: its node is lost, or it has a finalizer, and the Deployment has its replicas.
func TestAPodThatNeverGoesHoldsNothingUp(t *testing.T) {
	c := newCluster(t, 4, big)
	c.in.Pods[3].Terminating, c.wanted = true, 3
	c.lowersTheCanary()
	c.expectLimits("100Mi 256Mi 256Mi 256Mi")
	c.expectReason(v1alpha1.ReasonWatching, "web-1, the first of 3")
}

func TestALowerLimitBeginsWithACanary(t *testing.T) {
	c := newCluster(t, 3, big)
	c.lowersTheCanary()
	c.expectLimits("100Mi 256Mi 256Mi")
	c.expectReason(v1alpha1.ReasonWatching, "web-1, the first of 3", "1 of 3 pods have the recommended size")
	c.passes(9 * time.Minute)
	c.reconcile()
	c.expectLimits("100Mi 256Mi 256Mi")
	c.passes(2 * time.Minute)
	c.reconcile()
	c.expectLimits("100Mi 100Mi 256Mi")
	c.passes(5 * time.Second)
	c.reconcile()
	c.expectLimits("100Mi 100Mi 100Mi")
	c.passes(5 * time.Second)
	if c.reconcile(); !c.last.UpToDate {
		t.Errorf("all have it: %s %s", c.last.Reason, c.last.Message)
	}
	c.expectReason(v1alpha1.ReasonWatching)
	c.passes(11 * time.Minute)
	c.reconcile()
	c.expectReason(v1alpha1.ReasonUpToDate)
}

// TestACanaryThatIsGoneKeepsNoLaterOneFromItsProof: it was deleted while it was watched, and the next one gets a little
// more.
func TestACanaryThatIsGoneKeepsNoLaterOneFromItsProof(t *testing.T) {
	c := newCluster(t, 3, big)
	c.lowersTheCanary()
	c.expectLimits("100Mi 256Mi 256Mi")
	c.in.Pods = append(c.in.Pods[1:], c.pod(big))
	c.wants(memory.Size{Request: 70 * mib, Limit: 140 * mib}, false)
	for range 30 {
		c.passes(5 * time.Minute)
		c.reconcile()
	}
	c.expectLimits("140Mi 140Mi 140Mi")
	if got := c.written.Proven("app", "").Limit; got != 140*mib {
		t.Errorf("proven is %s after all pods were watched: %+v", got, c.written.Lowerings)
	}
}

func TestAKillInTheCanaryTakesItBackAndTheOthersAreSpared(t *testing.T) {
	c := newCluster(t, 3, big)
	c.lowersTheCanary()
	c.killed(0)
	c.passes(time.Second)
	c.reconcile()
	c.expectLimits("256Mi 256Mi 256Mi")
	if !c.told(
		"Reverted web-1: Limit 100Mi of container app is rolled back from every pod that has it, to 256Mi, because pod " +
			"web-1 was OOM-killed at that limit",
	) {
		t.Error(c.log)
	}
	for range 6 * 24 {
		c.passes(time.Hour)
		c.reconcile()
		c.expectLimits("256Mi 256Mi 256Mi")
	}
	c.passes(25 * time.Hour)
	c.reconcile()
	c.expectLimits("100Mi 256Mi 256Mi")
}

// TestAKillByASlowClockTakesItBack: by the node's clock the canary died before its limit was lowered.
func TestAKillByASlowClockTakesItBack(t *testing.T) {
	for name, behind := range map[string]time.Duration{
		"a minute": time.Minute, "a moment": 6 * time.Second, "a year": 365 * 24 * time.Hour,
	} {
		c := newCluster(t, 3, big)
		c.wants(small, false)
		c.killed(1) // at the old limit, before anything was changed: it says nothing of the new one
		c.kills[0].Seen = c.in.Now
		c.passes(time.Second)
		c.reconcile()
		c.passes(5 * time.Second)
		c.reconcile()
		c.expectLimits("100Mi 256Mi 256Mi")
		c.killed(0)
		c.kills[1].Time, c.kills[1].Seen = c.in.Now.Add(-behind), c.in.Now
		c.passes(time.Second)
		c.reconcile()
		c.expectLimits("256Mi 256Mi 256Mi")
		if !c.told(
			"by the clock of its node, which memfit saw at 2026-03-02T08:00:06Z; the change began at 2026-03-02T08:00:01Z",
		) {
			t.Errorf("%s behind: %q", name, c.log)
		}
	}
}

// TestAKillOfLastMonthTakesNothingBack: it was at the limit that is tried now, and memfit knew of it when it began.
func TestAKillOfLastMonthTakesNothingBack(t *testing.T) {
	c := newCluster(t, 3, big)
	c.wants(small, false)
	c.killed(0)
	monthAgo := c.in.Now.Add(-30 * 24 * time.Hour)
	c.kills[0].Limit, c.kills[0].Time, c.kills[0].Seen = small.Limit, monthAgo, monthAgo
	c.reconcile()
	c.passes(5 * time.Second)
	c.reconcile()
	c.expectLimits("100Mi 256Mi 256Mi")
}

func TestAPodThatHasJustStartedIsNotLowered(t *testing.T) {
	c := newCluster(t, 1, big)
	c.in.Policy.Watch = 150 * time.Second // a setting is written as it is: "2 min" was half a minute short
	c.in.Pods[0].Containers[0].Started = c.in.Now.Add(-2 * time.Minute)
	c.wants(small, false)
	c.reconcile()
	c.expectLimits("256Mi")
	c.expectReason(v1alpha1.ReasonStarting, "started at 2026-03-02T07:58:00Z", "up for 2m30s")
	c.passes(9 * time.Minute)
	c.reconcile()
	c.expectLimits("100Mi")
}

// TestAPodThatStartsIsNotEvictedForALowerLimit: it does not serve, so that no budget protects it.
func TestAPodThatStartsIsNotEvictedForALowerLimit(t *testing.T) {
	c := newCluster(t, 1, big)
	c.in.Policy.Evict = true
	c.app(0).FrozenHeap, c.app(0).Started = 192*mib, c.in.Now.Add(-time.Minute)
	c.in.Pods[0].Ready = false
	c.wants(small, false)
	for range 5 {
		c.reconcile()
		c.passes(time.Minute)
	}
	if c.evictions() != 0 {
		t.Errorf("evicted while it starts: %v", c.log)
	}
	c.expectReason(v1alpha1.ReasonStarting, "pod web-1 is not evicted", "up for 10m")
}

func TestARestartStormTakesItBack(t *testing.T) {
	c := newCluster(t, 2, big)
	c.lowersTheCanary()
	c.in.Pods[0].Containers[0].Restarts += 2
	c.passes(time.Minute)
	c.reconcile()
	c.expectLimits("256Mi 256Mi")
	if !c.told("container app of pod web-1 restarted 2 times") {
		t.Error(c.log)
	}
}

// TestAPodThatIsNotReadyAnyMoreTakesItBack: what lacks memory need not die of it.
func TestAPodThatIsNotReadyAnyMoreTakesItBack(t *testing.T) {
	c := newCluster(t, 2, big)
	c.passes(time.Hour)
	c.lowersTheCanary()
	c.expectLimits("100Mi 256Mi")
	for _, ready := range []bool{false, true, false} { // a probe that fails now and then
		c.in.Pods[0].Ready = ready
		c.passes(30 * time.Second)
		c.reconcile()
		c.expectLimits("100Mi 256Mi")
	}
	c.in.Pods[1].Ready = false // nor is the one with the old limit: both lack something else
	for range 30 {
		c.passes(time.Minute)
		c.reconcile()
		c.expectLimits("100Mi 256Mi")
	}
	c.in.Pods[1].Ready = true
	c.passes(time.Second)
	c.reconcile()
	c.expectLimits("100Mi 256Mi")
	c.passes(time.Minute)
	c.reconcile()
	c.expectLimits("256Mi 256Mi")
	if !c.told("Reverted web-1: Limit 100Mi of container app is rolled back from every pod that has it, to 256Mi, " +
		"because pod web-1 has not been ready since 2026-03-02T09:31:35Z, and was ready before that limit") {
		t.Error(c.log)
	}
	c.in.Pods[0].Ready = true
	c.passes(24 * time.Hour)
	c.reconcile()
	c.expectLimits("256Mi 256Mi")
}

// TestWhatPodsWereCreatedWithIsGivenBackBesideAnotherController, also where memfit has changed no pod in place.
func TestWhatPodsWereCreatedWithIsGivenBackBesideAnotherController(t *testing.T) {
	c := newCluster(t, 3, big)
	c.lowersAll()
	c.written.LastChange = time.Time{}
	c.in.Conflict = "VerticalPodAutoscaler web"
	for i := range c.in.Pods {
		c.in.Pods[i].Containers[0].Owner = big
	}
	c.killed(1)
	c.reconcile()
	if !c.told("Limit 100Mi of container app is rolled back from every pod that has it, to 256Mi") {
		t.Error(c.log)
	}
	c.reconcile()
	c.expectLimits("256Mi 256Mi 256Mi")
}

// TestTheOwnersQueryTakesItBack: nothing is lowered before it is answered or while it has a series, the watch ends
// only after an answer without one, and a series while a pod is watched takes the lower limit back.
func TestTheOwnersQueryTakesItBack(t *testing.T) {
	c := newCluster(t, 2, big)
	c.passes(time.Hour)
	c.wants(small, false)
	answered := func(series int) { c.in.QueryResult = &QueryResult{At: c.in.Now, Series: series} }
	look := func(limits string) {
		t.Helper()
		c.reconcile()
		c.expectLimits(limits)
	}

	for why, result := range map[string]QueryResult{
		"rollbackQuery has no answer: nothing listens there": {Problem: "nothing listens there"},
		"rollbackQuery returned 2 series at":                 {At: c.in.Now, Series: 2},
		"rollbackQuery has no answer yet":                    {At: c.in.Now.Add(-61 * time.Second)}, // too old
	} {
		c.in.QueryResult = &result
		look("256Mi 256Mi")
		c.expectReason(v1alpha1.ReasonWaitingForQuery, why)
	}
	answered(0)
	c.reconcile()
	c.passes(5 * time.Second)
	look("100Mi 256Mi")

	c.passes(20 * time.Minute) // Prometheus is away: the first pod is not watched to its end
	c.in.QueryResult.Problem = "nothing listens there"
	look("100Mi 256Mi")
	c.expectReason(v1alpha1.ReasonWatching, "rollbackQuery has no answer: nothing listens there")
	answered(0)
	c.reconcile()
	c.passes(5 * time.Second)
	look("100Mi 100Mi")

	c.passes(time.Minute)
	answered(1)
	c.reconcile()
	c.passes(5 * time.Second)
	look("256Mi 256Mi")
	if !c.told("Reverted web-2: Limit 100Mi of container app is rolled back from every pod that has it, " +
		"to 256Mi, because rollbackQuery returned 1 series at 2026-03-02T09:21:10Z, and none when the " +
		"limit of pod web-2 was lowered") {
		t.Error(c.log)
	}
	answered(0)
	c.passes(24 * time.Hour)
	answered(0)
	look("256Mi 256Mi")
}

// TestARaiseAsksNoQuery: what a kill asks for waits for no answer.
func TestARaiseAsksNoQuery(t *testing.T) {
	c := newCluster(t, 1, small)
	c.in.QueryResult = &QueryResult{At: c.in.Now, Series: 9}
	c.wants(big, true)
	c.reconcile()
	c.passes(5 * time.Second)
	c.reconcile()
	c.expectLimits("256Mi")
}

// TestAPodThatWasNotReadyBeforeTakesNothingBack: nor does one that its resize restarts, as long as it may take to
// start.
func TestAPodThatWasNotReadyBeforeTakesNothingBack(t *testing.T) {
	c := newCluster(t, 2, big)
	c.in.Policy.MaxUnavailable = 2
	c.in.Pods[0].Ready = false
	c.wants(small, false)
	c.reconcile()
	for range 20 {
		c.passes(time.Minute)
		c.reconcile()
	}
	c.expectLimits("100Mi 100Mi")

	c = newCluster(t, 1, big)
	c.in.Policy.SingleReplicaMayRestart = true
	c.in.Pods[0].Containers[0].RestartsOnResize, c.quick = true, false
	c.wants(small, false)
	c.reconcile()
	for range 8 {
		c.passes(time.Minute)
		c.reconcile()
		c.expectLimits("100Mi")
	}
	c.passes(5 * time.Minute)
	c.reconcile()
	c.expectLimits("256Mi")
}

func TestALaterKillTakesItBackFromEveryPod(t *testing.T) {
	c := newCluster(t, 3, big)
	c.wants(small, false)
	for range 4 {
		c.reconcile()
		c.passes(6 * time.Minute)
	}
	c.expectLimits("100Mi 100Mi 256Mi")
	c.reconcile()
	c.expectLimits("100Mi 100Mi 100Mi")
	c.passes(time.Minute)
	c.killed(2)
	for range 4 {
		c.reconcile()
		c.passes(5 * time.Second)
	}
	c.expectLimits("256Mi 256Mi 256Mi")
}

func TestWhatTheKubeletDoesNotDoIsTakenBack(t *testing.T) {
	for name, test := range map[string]struct {
		node   Resize
		after  time.Duration
		reason string
	}{
		"infeasible": {
			Resize{Infeasible: true, Message: "Node didn't have enough capacity"}, time.Second, v1alpha1.ReasonInfeasible,
		},
		"fails for long": {
			Resize{InProgress: true, Failed: true, Message: "attempting to set a memory limit below current usage"},
			6 * time.Minute, v1alpha1.ReasonResizeFailed,
		},
		"nothing is answered": {Resize{}, 6 * time.Minute, v1alpha1.ReasonNotActuated},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 2, small)
			c.node = func(p *Pod) { p.Resize = test.node }
			c.wants(big, true)
			c.reconcile()
			c.passes(test.after)
			c.reconcile()
			c.passes(time.Second)
			c.reconcile()
			if got := c.in.Pods[0].Containers[0].Spec; got != small {
				t.Errorf("spec still says %v", got)
			}
			if !c.told("NotResized web-1") {
				t.Error(c.log)
			}
			for range 20 { // the other pod is tried once; then both rest
				c.passes(test.after)
				c.reconcile()
			}
			resizes := strings.Count(strings.Join(c.log, "\n"), "resize web-1 limit of container app 100Mi to 256Mi")
			if most := 1 + int(20*test.after/refusalHold) + 1; resizes > most {
				t.Errorf("resized %d times, want at most %d: a refusal is not retried hot", resizes, most)
			}
			c.expectReason(test.reason)
		})
	}
}

// TestALowerLimitThatTheKubeletRefuses: the kubelet's message has the use of the pod, often of a while ago. memfit
// reports what is effective, and what becomes of it.
func TestALowerLimitThatTheKubeletRefuses(t *testing.T) {
	c := newCluster(t, 1, big)
	c.node = func(p *Pod) {
		p.Resize = Resize{InProgress: true, Failed: true, Message: "attempting to set pod memory limit below usage"}
	}
	c.wants(small, false)
	c.reconcile()
	c.passes(time.Second)
	c.reconcile()
	c.expectReason(v1alpha1.ReasonResizeFailed)
	for _, want := range []string{
		"limit of container app 256Mi to 100Mi", "the kubelet reports: attempting to set pod memory limit below usage",
		"page cache included: the higher limit remains effective", "memfit rolls the resize back at 2026-03-02T08:05:00Z",
	} {
		if !strings.Contains(c.last.Message, want) {
			t.Errorf("%q is missing in %q", want, c.last.Message)
		}
	}
	if got := c.limits(); got != "256Mi" {
		t.Errorf("effective is %s", got)
	}
}

// fills the node: a kubelet defers each resize with a higher request, and what a limit is it does not count.
func (c *cluster) fills() {
	c.node = func(p *Pod) {
		p.Resize = Resize{}
		for _, app := range p.Containers {
			if app.Spec.Request > app.Actual.Request {
				p.Resize = Resize{Deferred: true, Message: "Node didn't have enough resource: memory"}
				return
			}
		}
		for i := range p.Containers {
			p.Containers[i].Actual = p.Containers[i].Spec
		}
	}
}

// TestRequestsThatWaitHoldUpTheLimitOfNoPod: also those of another container, and of more pods than are changed at a
// time.
func TestRequestsThatWaitHoldUpTheLimitOfNoPod(t *testing.T) {
	c := newCluster(t, maxWatched+8, small)
	c.fills()
	c.wants(big, true)
	other := c.in.Desired[Key{Container: "app"}]
	other.Recommendation.Size = size(90*mib, small.Limit)
	c.in.Desired[Key{Container: "other"}] = other
	for i := range c.in.Pods {
		container := *c.app(i)
		container.Name = "other"
		c.in.Pods[i].Containers = append(c.in.Pods[i].Containers, container)
	}
	for range 5 {
		c.reconcile()
		c.passes(statusDelay)
	}
	c.expectLimits(strings.TrimSpace(strings.Repeat("256Mi ", len(c.in.Pods))))
}

// TestAFullNodeHoldsUpNoLimitWhateverCameBefore: the writes end, and the request follows when the node has memory.
func TestAFullNodeHoldsUpNoLimitWhateverCameBefore(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		c, full := newCluster(t, 1+r.IntN(4), big), false
		c.node = func(p *Pod) {
			app := &p.Containers[0]
			if p.Resize = (Resize{}); full && app.Spec.Request > app.Actual.Request {
				p.Resize = Resize{Deferred: true, Message: "Node didn't have enough resource: memory"}
				return
			}
			app.Actual = app.Spec
		}
		reconcile := func(after time.Duration, actions int) {
			c.passes(after)
			for i := range c.in.Pods {
				c.node(&c.in.Pods[i])
			}
			c.reconcileAndDie(actions)
		}
		for range 60 {
			if full = full != (r.IntN(4) == 0); r.IntN(3) == 0 {
				limit := []memory.Bytes{100, 160, 256, 400}[r.IntN(4)] * mib
				c.wants(size(limit.Percent([]int32{40, 70, 95}[r.IntN(3)]), limit), r.IntN(2) == 0)
				above := r.IntN(2) == 0
				c.desired(func(d *Desired) { d.Recommendation.UseAboveRequest = above })
			}
			if r.IntN(12) == 0 {
				c.killed(r.IntN(len(c.in.Pods)))
			}
			reconcile(time.Duration(1+r.IntN([]int{5, 900}[r.IntN(2)]))*time.Second, r.IntN(6)-2)
		}
		full = true
		c.wants(size(300*mib, 410*mib), true)
		for range 400 {
			reconcile(time.Hour, -1)
		}
		writes := c.writes()
		for range 50 {
			reconcile(time.Hour, -1)
		}
		if c.writes() != writes {
			t.Errorf("seed %d: writes do not end: %v", seed, c.log[len(c.log)-4:])
		}
		for _, p := range c.in.Pods {
			if got := p.Containers[0].Actual.Limit; got < 370*mib {
				t.Errorf("seed %d: a full node holds up %s with %s: %s", seed, p.Name, got, c.last.Message)
			}
		}
		full = false
		for range 60 {
			reconcile(time.Hour, -1)
		}
		for _, p := range c.in.Pods {
			if got := p.Containers[0].Actual.Request; got < 270*mib {
				t.Errorf("seed %d: the node has memory, and %s requests %s: %s", seed, p.Name, got, c.last.Message)
			}
		}
		full = true
		c.wants(size(345*mib, 350*mib), false)
		for range 60 {
			reconcile(time.Hour, -1)
		}
		for _, p := range c.in.Pods {
			if got := p.Containers[0].Actual.Limit; got > 380*mib {
				t.Errorf("seed %d: a full node keeps %s at %s: %s", seed, p.Name, got, c.last.Message)
			}
		}
	}
}

// TestARequestWaitsForMemoryOfTheNodeAndALimitDoesNot: only what is requested takes memory of the node.
func TestARequestWaitsForMemoryOfTheNodeAndALimitDoesNot(t *testing.T) {
	c := newCluster(t, 1, small)
	c.fills()
	c.wants(big, true)
	c.reconcile()
	c.expectLimits("100Mi")
	c.passes(statusDelay)
	c.reconcile()
	c.expectLimits("256Mi")
	for range 3 {
		c.passes(time.Minute)
		c.reconcile()
	}
	c.expectReason(v1alpha1.ReasonDeferred, "request of container app 70Mi to 200Mi", "Node didn't have enough resource")
	c.app(0).Actual, c.in.Pods[0].Resize = c.app(0).Spec, Resize{}
	c.passes(time.Minute)
	c.reconcile()
	c.expectReason(v1alpha1.ReasonUpToDate)
	if got := c.app(0).Actual; got != big {
		t.Errorf("the pod has %v, want %v", got, big)
	}
}

// TestARollbackDoesNotWaitForMemoryOfTheNode: others have requested what the lower limits had freed.
func TestARollbackDoesNotWaitForMemoryOfTheNode(t *testing.T) {
	c := newCluster(t, 3, big)
	c.lowersAll()
	c.fills()
	c.killed(0)
	c.reconcile()
	c.passes(statusDelay)
	c.reconcile()
	c.expectLimits("256Mi 256Mi 256Mi")
}

// TestARequestThatWaitsHoldsUpNoLimit: the pod is killed while its node has no memory for more than it requests.
func TestARequestThatWaitsHoldsUpNoLimit(t *testing.T) {
	c := newCluster(t, 2, small)
	c.fills()
	c.wants(size(90*mib, small.Limit), false)
	c.reconcile()
	c.passes(time.Hour)
	c.reconcile()
	c.expectReason(v1alpha1.ReasonDeferred, "request of container app 70Mi to 90Mi")
	c.killed(0)
	c.wants(big, true)
	for range 2 {
		c.reconcile()
		c.passes(statusDelay)
	}
	c.expectLimits("256Mi 256Mi")
	c.reconcile()
	if c.told(string(ConflictingWriter)) || c.told(string(NotResized)) {
		t.Error(c.log)
	}
}

// TestARequestThatWaitsHoldsUpNoLaterLimit: no kill asks for it either.
func TestARequestThatWaitsHoldsUpNoLaterLimit(t *testing.T) {
	c := newCluster(t, 2, small)
	c.fills()
	c.wants(size(90*mib, small.Limit), false)
	c.reconcile()
	c.passes(2 * time.Hour)
	c.reconcile()
	c.expectReason(v1alpha1.ReasonDeferred, "request of container app 70Mi to 90Mi")
	c.wants(size(90*mib, 160*mib), false)
	for range 2 {
		c.reconcile()
		c.passes(statusDelay)
	}
	c.expectLimits("160Mi 160Mi")
}

// TestAContainerThatRunsGetsNoFirstLimit: no resize would remove it again. Its request changes, and a limit comes with
// another pod, one of them first.
func TestAContainerThatRunsGetsNoFirstLimit(t *testing.T) {
	c := newCluster(t, 2, size(50*mib, 0))
	c.wants(small, true)
	for range 3 {
		c.reconcile()
		c.passes(time.Minute)
	}
	c.expectLimits("0 0")
	c.expectReason(v1alpha1.ReasonWaitingForNewPods, "it has no limit", "new pods get a limit of 100Mi, one of them first")
	if got := c.app(1).Actual.Request; got != small.Request {
		t.Errorf("the request is %s, want %s", got, small.Request)
	}
	c.in.Policy.Evict = true
	c.passes(2 * time.Hour)
	c.evictsTheCanary()
	c.passes(time.Minute)
	c.reconcile()
	c.expectLimits("100Mi 0")
	c.expectReason(v1alpha1.ReasonWatching, "limit of container app none to 100Mi")
	c.killed(0)
	c.reconcile()
	if !c.told("rolled back from new pods, to none, because pod web-3 was OOM-killed at that limit") {
		t.Error(c.log)
	}
	for range 20 {
		c.passes(8 * time.Hour)
		c.reconcile()
	}
	c.expectLimits("100Mi 0")
	c.in.Policy.Evict = false
	c.reconcile()
	c.expectReason(v1alpha1.ReasonWaitingForNewPods, "a limit of 100Mi was rolled back at", "new pods get none before")
}

// createsFirstLimit is a cluster whose newest of three pods was created with a limit that its owner does not set.
func createsFirstLimit(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, 2, size(50*mib, 0))
	c.in.Policy.KeepRunningPods = true
	c.passes(time.Hour)
	c.in.Pods = append(c.in.Pods, c.pod(small))
	for i := range c.in.Pods {
		c.app(i).Owner = size(50*mib, NoLimit)
	}
	c.wants(small, false)
	c.reconcile()
	return c
}

// TestAPodKeepsAFirstLimitThatDidHarm: no resize removes it, and without a kill nothing raises it.
func TestAPodKeepsAFirstLimitThatDidHarm(t *testing.T) {
	c := createsFirstLimit(t)
	c.in.Namespace = "shop"
	c.passes(time.Minute)
	c.in.QueryResult = &QueryResult{At: c.in.Now, Series: 1}
	c.reconcile()
	if !c.told("A resize cannot remove the limit of a running pod; to remove it: kubectl -n shop delete pod web-3") {
		t.Error(c.log)
	}
}

// TestAPodThatWasCreatedWithAFirstLimitIsWatched: its owner gives it none.
func TestAPodThatWasCreatedWithAFirstLimitIsWatched(t *testing.T) {
	c := createsFirstLimit(t)
	c.expectReason(v1alpha1.ReasonWatching, "Pod web-3", "limit of container app none to 100Mi")
	if c.written.Proven("app", "").Limit != 0 {
		t.Error("it was not watched yet, and counts as proven")
	}
	c.passes(c.in.Policy.Watch + time.Minute)
	c.reconcile()
	if got := c.written.Proven("app", "").Limit; got != small.Limit {
		t.Errorf("proven is %s, want %s", got, small.Limit)
	}
}

// TestARequestThatMustEqualItsLimitWaitsWithIt: of a Guaranteed pod, and where a LimitRange bounds the ratio.
func TestARequestThatMustEqualItsLimitWaitsWithIt(t *testing.T) {
	for name, edit := range map[string]func(c *cluster){
		"Guaranteed": func(c *cluster) { c.in.Pods[0].QoS = "Guaranteed" },
		"a ratio":    func(c *cluster) { c.desired(func(d *Desired) { d.Range = constraints.Range{Ratio: 1500} }) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1, size(100*mib, 100*mib))
			c.fills()
			c.wants(size(200*mib, 200*mib), true)
			edit(c)
			for range 5 {
				c.reconcile()
				c.passes(statusDelay)
			}
			c.expectLimits("100Mi")
			c.expectReason(v1alpha1.ReasonDeferred, "Node didn't have enough resource")
		})
	}
}

func TestADeferredResizeEndsInAnEvictionWhereThatIsAllowed(t *testing.T) {
	c := newCluster(t, 2, small)
	c.in.Policy.Evict = true
	c.node = func(p *Pod) { p.Resize = Resize{Deferred: true, Message: "Node didn't have enough resource: memory"} }
	c.wants(big, true)
	c.reconcile()
	c.passes(6 * time.Minute)
	for range 3 {
		c.reconcile()
		c.passes(5 * time.Second)
	}
	if !c.told("evicted web-1") || !c.told("Replaced web-1: Pod web-3 runs instead of web-1") {
		t.Error(c.log)
	}
}

// TestNoPodIsEvictedForARequest: only the scheduler reads it, and on full nodes a successor would wait for memory.
func TestNoPodIsEvictedForARequest(t *testing.T) {
	for name, to := range map[string]memory.Size{
		"alone": size(90*mib, small.Limit), "after the limit that it goes with": big,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, small)
			c.in.Policy.Evict = true
			c.fills()
			c.wants(to, true)
			for range 3 {
				c.reconcile()
				c.passes(statusDelay)
			}
			for range 24 {
				c.reconcile()
				c.passes(5 * time.Minute)
			}
			if c.evictions() != 0 || c.told(string(NotResized)) {
				t.Error(c.log)
			}
			c.expectReason(v1alpha1.ReasonDeferred, "request of container app 70Mi to "+to.Request.String())
			if got := c.app(0).Actual.Limit; got != to.Limit {
				t.Errorf("the limit is %s, want %s", got, to.Limit)
			}
		})
	}
}

// TestNoPodIsEvictedForMoreThanANodeOfItsPodsHas: that the cluster has a larger one does not show that it takes them.
func TestNoPodIsEvictedForMoreThanANodeOfItsPodsHas(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes      [3]memory.Bytes
		onEachNode bool
		evicted    bool
	}{
		"all on small nodes":      {nodes: [3]memory.Bytes{220 * mib, 220 * mib, 220 * mib}},
		"another on a large node": {nodes: [3]memory.Bytes{220 * mib, memory.GiB, memory.GiB}, evicted: true},
		"one on each node":        {nodes: [3]memory.Bytes{220 * mib, memory.GiB, memory.GiB}, onEachNode: true},
		"nodes that are unknown":  {evicted: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, size(200*mib, 200*mib))
			c.in.Policy.Evict, c.in.Policy.OnEachNode = true, tc.onEachNode
			for i := range c.in.Pods {
				c.in.Pods[i].QoS, c.in.Pods[i].NodeSize = "Guaranteed", tc.nodes[i]
			}
			c.node = func(p *Pod) { p.Resize = Resize{Infeasible: true} }
			c.killed(0)
			c.in.Pods[0].Ready = false
			c.wants(size(300*mib, 300*mib), true)
			for range 3 {
				c.reconcile()
				c.passes(time.Minute)
			}
			if got := c.told("evicted web-1"); got != tc.evicted {
				t.Errorf("web-1 was evicted: %t, want %t: %v", got, tc.evicted, c.log)
			}
			if !tc.evicted {
				want := "request 300Mi does not fit any node on which this workload's pods run; the largest has 220Mi"
				if tc.onEachNode {
					want = "request 300Mi is more than the node's 220Mi"
				}
				c.expectReason(v1alpha1.ReasonNodeTooSmall, want)
			}
		})
	}
}

func TestAFrozenHeapIsNotLoweredInPlace(t *testing.T) {
	c := newCluster(t, 2, big)
	for i := range c.in.Pods {
		c.in.Pods[i].Containers[0].FrozenHeap, c.in.Pods[i].Containers[0].Overhead = 192*mib, 20*mib
	}
	c.wants(small, false)
	c.reconcile()
	c.expectLimits("256Mi 256Mi")
	c.expectReason("HeapCapFixed", "192Mi")

	budget := true
	c.in.Policy.Evict = true
	c.evict = func(Action) string {
		if budget {
			return v1alpha1.ReasonDisruptionBudget
		}
		return ""
	}
	c.evictsTheCanary()
	c.reconcile()
	c.expectReason(v1alpha1.ReasonDisruptionBudget, "web-1 is not evicted", "allows no disruption")
	if c.told("evicted") {
		t.Error(c.log)
	}
	budget = false
	c.passes(2 * time.Minute)
	c.evictsTheCanary()
	c.passes(time.Minute)
	c.reconcile()
	c.expectLimits("100Mi 256Mi")
	c.expectReason(v1alpha1.ReasonWatching, "web-3, the first of 2")
	c.passes(11 * time.Minute)
	c.reconcile()
	c.expectLimits("100Mi 100Mi")
}

func TestTheOnlyReplicaIsNotEvicted(t *testing.T) {
	c := newCluster(t, 1, big)
	c.in.Pods[0].Containers[0].FrozenHeap = 192 * mib
	c.in.Policy.Evict = true
	c.wants(small, false)
	c.reconcile()
	c.expectReason("SingleReplica")
	c.in.Policy.SingleReplicaMayRestart = true
	c.evictsTheCanary()
	if !c.told("evicted web-1") {
		t.Error(c.log)
	}
}

// TestAJobsRunIsNotRestarted: each restart loses work, and counts against the backoffLimit of a Job. One that is down
// is raised: it starts again anyway.
func TestAJobsRunIsNotRestarted(t *testing.T) {
	for _, urgent := range []bool{false, true} {
		c := newCluster(t, 10, big)
		for i := range c.in.Pods {
			c.in.Pods[i].Completes = true
			c.app(i).RestartsOnResize = true
		}
		c.wants(memory.Size{Request: 448 * mib, Limit: 512 * mib}, urgent)
		for range 20 {
			c.reconcile()
			c.passes(time.Minute)
		}
		c.expectLimits(strings.TrimSpace(strings.Repeat("256Mi ", 10)))
		c.expectReason(v1alpha1.ReasonWaitingForNewPods, "so that its work is not lost")
		c.dies(3, time.Minute)
		c.reconcile()
		if got := c.app(3).Spec.Limit; got != 512*mib {
			t.Errorf("urgent %v: the one that is down has %s", urgent, got)
		}
	}
}

func TestAJobsRunIsOnlyRaised(t *testing.T) {
	c := newCluster(t, 1, big)
	c.in.Pods[0].Completes = true
	c.wants(small, false)
	c.reconcile()
	c.expectLimits("256Mi")
	c.expectReason(
		v1alpha1.ReasonWaitingForNewPods, "does not restart or evict it, so that its work is not lost; the next run gets",
	)
	c.in.Policy.NoWebhook = true
	c.reconcile()
	if strings.Contains(c.last.Message, "next run") {
		t.Errorf("the next run is promised a size: %q", c.last.Message)
	}
	c.wants(memory.Size{Request: 200 * mib, Limit: 512 * mib}, true)
	c.reconcile()
	c.expectLimits("512Mi")
}

func TestAPauseStopsEverythingAtOnce(t *testing.T) {
	c := newCluster(t, 3, small)
	c.wants(big, true)
	c.reconcileAndDie(0) // written down, not done
	c.in.Paused = "memfit.dev/pause on Namespace shop"
	for range 5 {
		c.passes(time.Minute)
		c.reconcile()
	}
	c.expectLimits("100Mi 100Mi 100Mi")
	c.in.Paused = ""
	for range 5 {
		c.passes(time.Minute)
		c.reconcile()
	}
	c.expectLimits("256Mi 256Mi 256Mi")
}

func TestAnotherWriterIsLeftTheField(t *testing.T) {
	c := newCluster(t, 2, small)
	c.wants(big, true)
	c.node = func(*Pod) {}
	c.reconcile()
	other := memory.Size{Request: 150 * mib, Limit: 180 * mib}
	c.in.Pods[0].Containers[0].Spec, c.in.Pods[0].Containers[0].Actual, c.in.Pods[0].Writer = other, other, "vpa-updater"
	for range 10 {
		c.passes(time.Minute)
		c.reconcile()
	}
	c.expectReason(v1alpha1.ReasonConflict, "field manager vpa-updater", "180Mi")
	if got := c.in.Pods[0].Containers[0].Spec.Limit; got != 180*mib {
		t.Errorf("limit of the pod that was taken over is %s", got)
	}
}

// TestAnotherWriterOfOnePodStopsNoRollbackOfOthers: what harms them is memfit's.
func TestAnotherWriterOfOnePodStopsNoRollbackOfOthers(t *testing.T) {
	c := newCluster(t, 3, big)
	c.lowersTheCanary()
	c.passes(c.in.Policy.Watch)
	c.reconcile()
	c.passes(time.Minute)
	c.reconcile()
	byHand := memory.Size{Request: small.Request, Limit: 180 * mib}
	c.app(2).Spec, c.app(2).Actual, c.in.Pods[2].Writer = byHand, byHand, "kubectl-patch"
	c.reconcile()
	c.expectReason(v1alpha1.ReasonConflict, "field manager kubectl-patch")
	c.expectLimits("100Mi 100Mi 180Mi")
	c.killed(0)
	c.wants(size(200*mib, 330*mib), true)
	for range 3 {
		c.passes(time.Minute)
		c.reconcile()
		c.expectLimits("256Mi 256Mi 180Mi")
	}
	c.expectReason(v1alpha1.ReasonConflict)
}

// TestABoundThatFallsDuringAWatchIsNoOtherWriter: the pod that is watched gets still less, by memfit.
func TestABoundThatFallsDuringAWatchIsNoOtherWriter(t *testing.T) {
	c := newCluster(t, 4, big)
	c.in.Policy.MaxUnavailable = 2
	c.lowersTheCanary()
	c.expectLimits("100Mi 256Mi 256Mi 256Mi")
	c.wants(size(70*mib, 90*mib), false)
	c.desired(func(d *Desired) { d.Policy.LimitMax = 90 * mib })
	for range 10 {
		c.passes(5 * time.Minute)
		c.reconcile()
	}
	if c.told(string(ConflictingWriter)) {
		t.Error(c.log)
	}
	c.expectLimits("90Mi 90Mi 90Mi 90Mi")
}

// TestALimitThatAnotherWriterLoweredIsNoLowering: one pod is resized by hand. Its kill says nothing about a limit of
// memfit's, and that it lives proves none.
func TestALimitThatAnotherWriterLoweredIsNoLowering(t *testing.T) {
	c := newCluster(t, 2, big)
	for i := range c.in.Pods {
		c.app(i).Owner = big
	}
	c.in.Pods[0].Writer = "kubectl-edit"
	c.app(0).Spec, c.app(0).Actual = small, small
	for range 3 {
		c.reconcile()
		c.passes(c.in.Policy.Watch)
	}
	if l := c.written.Lowerings; len(l) > 0 {
		t.Errorf("taken for a limit that memfit lowered: %+v", l)
	}
	c.killed(0)
	c.reconcile()
	if c.told("Reverted") {
		t.Error(c.log)
	}
}

// TestWhatAnotherWriterGaveAPodStaysForADay: a debug session of one pod is left alone, and no other pod gets its size.
func TestWhatAnotherWriterGaveAPodStaysForADay(t *testing.T) {
	c := newCluster(t, 3, big)
	c.lowersAll()
	c.passes(7 * 24 * time.Hour)
	byHand := memory.Size{Request: small.Request, Limit: 2048 * mib}
	c.app(0).Owner, c.app(0).Spec, c.app(0).Actual = big, byHand, byHand
	c.in.Pods[0].Writer, c.in.Pods[0].WrittenAt = "kubectl-patch", c.in.Now
	for range 20 {
		c.reconcile()
		c.passes(time.Hour)
	}
	c.expectLimits("2Gi 100Mi 100Mi")
	c.expectReason(v1alpha1.ReasonConflict, "field manager kubectl-patch set pod", "limit 2Gi")
	for range 10 {
		c.passes(time.Hour)
		c.reconcile()
	}
	c.expectLimits("100Mi 100Mi 100Mi")
	for _, l := range c.written.Lowerings {
		if l.From.Limit > big.Limit {
			t.Errorf("other pods would get it back: %+v", l)
		}
	}
}

// TestAKillInAPodThatAnotherWriterLoweredTakesNothingBack: memfit gave no pod so little.
func TestAKillInAPodThatAnotherWriterLoweredTakesNothingBack(t *testing.T) {
	c := newCluster(t, 3, big)
	c.lowersAll()
	byHand := memory.Size{Request: small.Request, Limit: 60 * mib}
	c.app(0).Spec, c.app(0).Actual, c.in.Pods[0].Writer = byHand, byHand, "kubectl-edit"
	c.killed(0)
	c.reconcile()
	c.in.Pods = append(c.in.Pods[1:], c.pod(small)) // the ledger keeps the kill when the pod is gone
	c.reconcile()
	if c.told("Reverted") {
		t.Error(c.log)
	}
	c.killed(0)
	c.reconcile()
	if !c.told("Reverted") {
		t.Error("a kill at the limit that memfit gave takes nothing back")
	}
}

func TestAGuaranteedPodStaysGuaranteed(t *testing.T) {
	c := newCluster(t, 1, memory.Size{Request: 100 * mib, Limit: 100 * mib})
	c.in.Pods[0].QoS = "Guaranteed"
	c.wants(big, true)
	c.reconcile()
	if got := c.in.Pods[0].Containers[0].Spec; got.Request != got.Limit || got.Limit != 256*mib {
		t.Errorf("spec is %v", got)
	}
}

// Whatever happens, and wherever memfit is killed, no more pods are changed at a time than allowed, a canary is alone,
// a paused workload rests, and in the end every pod has one size.
func TestItConvergesWhereverMemfitDies(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := newCluster(t, 2+rng.IntN(6), big)
		c.in.Policy.MaxUnavailable = int32(1 + rng.IntN(3))
		c.in.Policy.Evict = rng.IntN(2) == 0
		slow := map[types.UID]time.Time{}
		c.node = func(p *Pod) { slow[p.UID] = c.in.Now.Add(time.Duration(rng.IntN(20)) * time.Second) }
		c.wants(small, false)
		for step := range 600 {
			c.passes(time.Duration(1+rng.IntN(20)) * time.Second)
			for i := range c.in.Pods {
				p := &c.in.Pods[i]
				if at, waits := slow[p.UID]; waits && c.in.Now.After(at) {
					p.Containers[0].Actual = p.Containers[0].Spec
					delete(slow, p.UID)
				}
			}
			switch {
			case step < 300 && rng.IntN(60) == 0:
				c.killed(rng.IntN(len(c.in.Pods)))
			case step < 300 && rng.IntN(60) == 0:
				i := rng.IntN(len(c.in.Pods))
				c.in.Pods[i] = c.pod(big) // a rollout, a drained node
			case step < 300 && rng.IntN(40) == 0:
				c.wants([]memory.Size{small, big, {Request: 90 * mib, Limit: 130 * mib}}[rng.IntN(3)], rng.IntN(2) == 0)
			}
			c.reconcileAndDie(rng.IntN(3) - 1)
			changing := 0
			for _, p := range c.in.Pods {
				if p.Containers[0].Spec.Limit < p.Containers[0].Actual.Limit {
					changing++
				}
			}
			// A decrease that is superseded may still be on its way in as many pods again.
			if changing > 2*int(c.in.Policy.MaxUnavailable)+len(c.kills) {
				t.Fatalf(
					"seed %d step %d: %d pods are lowered at a time, maxUnavailable is %d", seed, step, changing,
					c.in.Policy.MaxUnavailable,
				)
			}
			if canaries := c.canaries(); len(canaries) > 1 {
				t.Fatalf("seed %d: %d canaries at a time: %v", seed, len(canaries), canaries)
			}
		}
		for range 400 {
			c.passes(time.Hour)
			for i := range c.in.Pods {
				c.in.Pods[i].Containers[0].Actual = c.in.Pods[i].Containers[0].Spec
			}
			c.reconcile()
		}
		first, _, _ := strings.Cut(c.limits(), " ")
		if strings.ReplaceAll(c.limits(), first, "") != strings.Repeat(" ", len(c.in.Pods)-1) {
			t.Errorf("seed %d: pods end with %s; %s: %s", seed, c.limits(), c.last.Reason, c.last.Message)
		}
	}
}

// canaries are the pods that run, or are about to run, under a lower limit that no pod has proven.
func (c *cluster) canaries() (all []string) {
	s := &c.last.State
	for _, p := range c.in.Pods {
		if _, unproven := s.unproven(p.Containers[0]); unproven {
			all = append(all, p.Name)
		}
	}
	return all
}

func TestEqualInputGivesEqualOutput(t *testing.T) {
	c := newCluster(t, 4, big)
	c.wants(small, false)
	c.reconcile()
	in := c.in
	in.State = c.state()
	first := Decide(in)
	for range 10 {
		if diff := cmp.Diff(first, Decide(in)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestAnEmptyStateIsNotStored(t *testing.T) {
	if data, err := json.Marshal(&State{}); err != nil || string(data) != "{}" {
		t.Errorf("an empty state is %s, %v", data, err)
	}
}

// TestACanaryIsWatchedAnewAfterARaiseOfOthers: from the lower limit on, and not from when its container started.
func TestACanaryIsWatchedAnewAfterARaiseOfOthers(t *testing.T) {
	c := newCluster(t, 3, big)
	for i, program := range []string{"a", "a", "b"} {
		c.app(i).Program = program
	}
	c.wants(small, false)
	lower := c.in.Desired[Key{Container: "app"}]
	other := lower
	other.Recommendation.Size = big
	c.in.Desired = map[Key]Desired{{Container: "app", Program: "a"}: lower, {Container: "app", Program: "b"}: other}
	for range 3 {
		c.reconcile()
		c.passes(5 * time.Second)
	}
	c.expectLimits("100Mi 256Mi 256Mi")
	other.Recommendation.Size.Limit, other.Recommendation.Urgent = 512*mib, true
	c.in.Desired[Key{Container: "app", Program: "b"}] = other
	for began := c.in.Now; c.in.Now.Sub(began) < c.in.Policy.Watch/2; c.passes(30 * time.Second) {
		c.reconcile()
	}
	c.expectLimits("100Mi 256Mi 512Mi")
	for range 8 {
		c.passes(c.in.Policy.Watch)
		c.reconcile()
	}
	c.expectLimits("100Mi 100Mi 512Mi")
}

// TestPodsWithEarlierNumbersDoNotGetWhatOthersAreLoweredTo: a StatefulSet's partition keeps them as they are.
func TestPodsWithEarlierNumbersDoNotGetWhatOthersAreLoweredTo(t *testing.T) {
	c := newCluster(t, 3, big)
	c.in.Policy.Cooldown = 0
	c.wants(small, false)
	least, earlier := size(60*mib, 80*mib), c.in.Desired[Key{Container: "app"}]
	earlier.Recommendation.Size = least
	c.in.Desired[Key{Container: "app", Outdated: true}] = earlier
	c.app(2).Outdated, c.app(2).Spec, c.app(2).Actual = true, least, least
	for range 3 {
		c.reconcile()
		c.passes(5 * time.Second)
	}
	c.expectLimits("100Mi 256Mi 80Mi")
}

// TestARaiseBesideALowerLimitDoesNotEndItsWatch: one container of a pod gets less and the other more, and the pod is
// not ready any more.
func TestARaiseBesideALowerLimitDoesNotEndItsWatch(t *testing.T) {
	c := newCluster(t, 2, big)
	c.wants(small, false)
	more := c.in.Desired[Key{Container: "app"}]
	more.Recommendation.Size = size(300*mib, 512*mib)
	c.in.Desired[Key{Container: "proxy"}] = more
	for i := range c.in.Pods {
		proxy := *c.app(i)
		proxy.Name = "proxy"
		c.in.Pods[i].Containers = append(c.in.Pods[i].Containers, proxy)
	}
	c.node = func(p *Pod) {
		for i := range p.Containers {
			p.Containers[i].Actual = p.Containers[i].Spec
		}
	}
	for range 2 {
		c.reconcile()
		c.passes(5 * time.Second)
	}
	if c.expectLimits("100Mi 256Mi"); c.in.Pods[0].Containers[1].Actual.Limit != 512*mib {
		t.Fatalf("the other container is not raised: %v", c.log)
	}
	c.in.Pods[0].Ready = false
	for range 3 {
		c.reconcile()
		c.passes(45 * time.Second)
	}
	if !c.told("Reverted web-1") {
		t.Errorf("the lower limit is not watched: %+v", c.written.Steps)
	}
}

// TestARollbackIsNotRefusedForMoreThanIt: a kill asks for more than what a lower limit had taken, and the node may have
// memory for the rollback, or for neither of them.
func TestARollbackIsNotRefusedForMoreThanIt(t *testing.T) {
	for _, tc := range []struct {
		most   memory.Bytes
		want   string
		writes int
	}{{256 * mib, "256Mi", 3}, {0, "100Mi", 4}} { // each that is refused is taken back
		c := newCluster(t, 1, small)
		c.written.Reverts = []Revert{{Container: "app", Tried: small, Restored: big, At: start}}
		c.node = func(p *Pod) {
			app := &p.Containers[0]
			if p.Resize = (Resize{}); app.Spec.Limit > tc.most {
				p.Resize = Resize{Infeasible: true, Message: "too small"}
				return
			}
			app.Actual = app.Spec
		}
		c.wants(size(200*mib, 512*mib), true)
		for range 20 {
			c.reconcile()
			c.passes(time.Minute)
		}
		if c.expectLimits(tc.want); c.writes() != tc.writes {
			t.Errorf("%d writes, want %d: %v", c.writes(), tc.writes, c.log)
		}
	}
}
