// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/kubelet"
)

// cluster is a workload whose pods are killed until their limit is what they need, beside memfits that are killed at
// any point.
type cluster struct {
	*kubelet.Kubelet
	t     *testing.T
	need  memory.Bytes
	named *profile.Profile
	// counted is what the ledger says in the end.
	counted int64

	// What is on the API server: the checkpoint and its version, and the recommendation.
	stored  v1alpha1.MemoryCheckpointStatus
	version int
	shown   v1alpha1.MemoryRecommendationStatus

	// seen are the deaths that a memfit which wrote its checkpoint had been shown. Of the others only restart counts tell,
	// and one at a limit that was changed in between may as well have been a restart for the resize: the ledger does not
	// count it.
	seen map[string]bool
	// passed is the first instance of each pod whose end no memfit has written about yet: what one learns of earlier ones
	// comes too late.
	passed map[types.UID]int32
	// told has the identities of each kill's event on its pod: more than one is one too many.
	told map[string]map[string]bool
	// kills are those that the step found new which was written last.
	kills []memory.OOMKill
	// unmeasured: nobody takes samples.
	unmeasured bool
	// evicted is the number of pods that memfit evicted.
	evicted, resized int
}

// process is one memfit: its state, the version of the checkpoint it rests on, and the events that it has not
// acknowledged.
type process struct {
	state   *State
	version int
	inbox   PendingEvents
}

func newCluster(t *testing.T, seed uint64) *cluster {
	c := &cluster{
		Kubelet: kubelet.New(began, rand.New(rand.NewPCG(seed, 12)).IntN),
		t:       t, seen: map[string]bool{}, passed: map[types.UID]int32{}, told: map[string]map[string]bool{},
	}
	c.need = memory.Bytes(100+c.Choose(900)) * memory.MiB
	p := build.Profile("shop", "web", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingInPlaceOrEvict))
	c.named = governing(p)
	for range 1 + c.Choose(4) {
		c.create(64 * memory.MiB)
	}
	return c
}

// governing is a profile as the manager's index holds it: what is effective was merged once.
func governing(p *v1alpha1.MemoryProfile) *profile.Profile {
	n := &profile.Profile{
		Ref: v1alpha1.ProfileReference{Kind: profile.KindNamespaced, Name: p.Name}, Namespace: p.Namespace, Generation: 1,
		Spec: &p.Spec,
	}
	profile.Inherit([]*profile.Profile{n})
	return n
}

func (c *cluster) create(limit memory.Bytes) {
	p := c.Create(fmt.Sprintf("web-%d", len(c.Pods)+1), limit)
	p.Ready = c.Now.Add(time.Duration(c.Choose(60)) * time.Second)
}

// runPod lets a pod run until it needs more than it has, and starts it again.
func (c *cluster) runPod(p *kubelet.Pod) {
	c.Now = c.Now.Add(time.Duration(5+c.Choose(60)) * time.Second)
	if p.Limit >= c.need {
		return
	}
	c.End(p, kubelet.KernelOOM)
	c.Now = c.Now.Add(time.Second)
	c.Start(p)
	c.Now = c.Now.Add(time.Second)
	p.Ready = c.Now.Add(time.Duration(c.Choose(30)) * time.Second)
}

func (c *cluster) snapshot(p *process) *Snapshot {
	s := &Snapshot{
		Owner: memory.Workload{
			Ref: memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, UID: "web",
		},
		Profile: c.named, Events: p.inbox.Clone(), Unmeasured: c.unmeasured,
	}
	for _, r := range c.Existing() {
		s.Pods = append(s.Pods, c.Shown(r))
	}
	slices.SortFunc(s.Pods, NewestFirst)
	s.Governed = s.Pods
	if len(s.Pods) > 0 {
		s.Template = s.Pods[0]
	} else {
		_, s.Template = p.state.Last()
	}
	return s
}

// process starts a memfit: it reads what is on the API server, and lists every pod.
func (c *cluster) process() *process {
	p := &process{state: NewState()}
	c.restore(p)
	c.listed(p)
	return p
}

func (c *cluster) restore(p *process) {
	if lost, err := p.state.Unpack(&v1alpha1.MemoryCheckpoint{Status: c.stored}); err != nil || len(lost) > 0 {
		c.t.Fatalf("what was written cannot be read: %v, lost %v", err, lost)
	}
	p.version = c.version
}

func (c *cluster) listed(p *process) {
	for _, r := range c.Existing() {
		for _, o := range oom.Observe(c.Shown(r)) {
			p.inbox.AddObservation(&o)
		}
	}
}

func (c *cluster) packed(st *State) v1alpha1.MemoryCheckpointStatus {
	status, err := st.Pack()
	if err == nil {
		err = st.PackHistories(&status)
	}
	if err != nil {
		c.t.Fatalf("encoding the state: %v", err)
	}
	return status
}

// The points at which a memfit may be killed.
const (
	beforeWrite = iota
	afterWrite
	afterPublishing
	whileActing
	points
)

// reconcile is one reconcile of a memfit, as the reconciler of workloads does it. It reports whether the memfit was
// killed.
func (c *cluster) reconcile(p *process, killedAt int) (killed bool) {
	s := c.snapshot(p)
	before, seen := c.packed(p.state), c.snapshot(p)
	next, effects := Step(p.state, s, c.Now)
	c.pure(p, s, before, seen, &effects)
	if killedAt == beforeWrite {
		return true
	}
	if c.version != p.version { // another leader wrote: the write is refused, and the truth is read
		c.restore(p)
		return false
	}
	c.stored, c.version, c.kills = c.packed(next), c.version+1, effects.Kills
	passed := map[types.UID]int32{}
	for _, o := range s.Events.Observations {
		for _, death := range o.Ended {
			if death.Index >= c.passed[o.Container.UID] {
				c.seen[death.ContainerID] = true
			}
		}
		passed[o.Container.UID] = max(passed[o.Container.UID], o.Restarts)
	}
	for uid, restarts := range passed {
		c.passed[uid] = max(c.passed[uid], restarts)
	}
	if killedAt == afterWrite {
		return true
	}
	if c.Choose(8) == 0 { // the answer is lost
		c.restore(p)
		return false
	}
	p.state, p.version, p.inbox = next, c.version, PendingEvents{}
	for _, e := range effects.Events {
		if e.Regarding.Kind == "Pod" && e.Reason == v1alpha1.EventOOMKilled {
			of := string(e.Regarding.UID) + ": " + e.Note
			if c.told[of] == nil {
				c.told[of] = map[string]bool{}
			}
			c.told[of][e.At.String()+e.ID] = true
		}
	}
	if c.Choose(8) == 0 { // the recommendation cannot be written
		return false
	}
	c.shown = effects.Status
	if killedAt == afterPublishing {
		return true
	}
	for i, a := range effects.Actions {
		if killedAt == whileActing && i == c.Choose(2) {
			return true
		}
		c.act(p, a)
	}
	return false
}

// pure: a step changes nothing that it was given, and does the same again.
func (c *cluster) pure(
	p *process, s *Snapshot, before v1alpha1.MemoryCheckpointStatus, seen *Snapshot, effects *Effects,
) {
	c.t.Helper()
	if after := c.packed(p.state); !sameCheckpoint(&before, &after) {
		c.t.Error("a step changed the state that it was given")
	}
	if !equality.Semantic.DeepEqual(seen.Pods, s.Pods) { // cmp.Diff takes longer than a step
		c.t.Errorf("a step changed the pods that it was given:\n%s", cmp.Diff(seen.Pods, s.Pods))
	}
	if !reflect.DeepEqual(seen.Events.Observations, s.Events.Observations) {
		c.t.Errorf("a step changed the events that it was given:\n%s",
			cmp.Diff(seen.Events.Observations, s.Events.Observations))
	}
	_, again := Step(p.state, s, c.Now)
	if reflect.DeepEqual(effects, &again) {
		return
	}
	said := func(e *Effects) string {
		data, err := json.Marshal([]any{e.Status, e.Events, e.Actions, e.Timing})
		if err != nil {
			c.t.Fatal(err)
		}
		return string(data)
	}
	if was, is := said(effects), said(&again); was != is {
		c.t.Errorf("equal input gave something else the second time:\n%s", cmp.Diff(was, is))
	}
}

func (c *cluster) act(p *process, a rollout.Action) {
	pods := c.Existing()
	i := slices.IndexFunc(pods, func(r *kubelet.Pod) bool { return r.UID == a.UID })
	if i < 0 {
		p.state.rollout.Note(a, rollout.Outcome{Kind: rollout.OutcomeGone}, c.Now)
		return
	}
	if !a.Evict && !a.Restart {
		c.resized++
		if to := a.Sizes["app"].Limit; to > 0 {
			pods[i].Limit = to
			pods[i].Resizes++
		}
		return
	}
	for _, r := range pods {
		if serves := !c.Now.Before(pods[i].Ready); serves && c.Now.Before(r.Ready) {
			c.t.Errorf("%s: %s, which serves, is evicted while %s does not", c.Now, pods[i].Name, r.Name)
		}
	}
	limit := pods[i].Limit
	if rec := c.shown.Containers; len(rec) > 0 && rec[0].Recommended != nil && rec[0].Recommended.Limit != nil {
		limit = memory.FromQuantity(*rec[0].Recommended.Limit)
	}
	c.evicted++
	pods[i].Deleted = true
	c.create(limit)
}

// run plays one history.
func (c *cluster) run(steps int) {
	leader := c.process()
	for c.version == 0 { // what happened before memfit ever wrote, nobody can know
		c.reconcile(leader, points)
	}
	var deposed *process
	for range steps {
		switch c.Choose(12) {
		case 0: // another memfit takes over, while the first one still runs
			deposed, leader = leader, c.process()
		case 1:
			if deposed != nil {
				c.listed(deposed)
				c.reconcile(deposed, points)
			}
		case 2, 3: // killed somewhere
			c.listed(leader)
			if c.reconcile(leader, c.Choose(points)) {
				leader = c.process()
			}
		case 4, 5, 6:
			c.listed(leader)
			c.reconcile(leader, points)
		default:
			pods := c.Existing()
			c.runPod(pods[c.Choose(len(pods))])
			c.listed(leader) // its informer sees every end; TestStepKnowsTheTruth plays those it does not see
		}
	}
	for range 40 { // undisturbed, until a reconcile is not in vain
		c.listed(leader)
		c.reconcile(leader, points)
	}
	truth := c.Kills[memory.OOMMainProcess]
	if got := leader.state.ledger.Total("app"); got > truth || got < int64(len(c.seen)) {
		c.t.Errorf("%d kills were counted, %d happened, and %d of them were seen", got, truth, len(c.seen))
	}
	c.counted = leader.state.ledger.Total("app")
	for event, identities := range c.told {
		if n := len(identities); n > 1 {
			c.t.Errorf("%d events say %q", n, event)
		}
	}
}

// TestKilledAnywhere plays random histories of a workload that is killed for its memory, beside memfits that are killed
// at every point of a reconcile, lose answers, and overlap. Each kill that was seen is counted once and told at most
// once, nothing is done to two pods at a time that only one may bear, and a step is a function of what it is given.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	var kills, counted int64
	var evicted, resized int
	for seed := range uint64(100) {
		c := newCluster(t, seed)
		c.run(80)
		kills, counted = kills+c.Kills[memory.OOMMainProcess], counted+c.counted
		evicted, resized = evicted+c.evicted, resized+c.resized
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d kills, %d of them counted; %d resizes, %d evictions", kills, counted, resized, evicted)
	if counted < kills*99/100 || resized == 0 || evicted == 0 {
		t.Error("too little happened, or too little was counted")
	}
}

// TestWhatWasNotSentIsSentLater: nothing is done to pods while the recommendation that says why cannot be written, and
// it is done as soon as it can: it stands in the checkpoint as begun, and must not stay there for ever.
func TestWhatWasNotSentIsSentLater(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.need, c.Pods = 200*memory.MiB, c.Pods[:1]
	p := c.process()
	step := func() Effects {
		c.listed(p)
		next, effects := Step(p.state, c.snapshot(p), c.Now)
		p.state, p.inbox = next, PendingEvents{}
		return effects
	}
	step()
	c.runPod(c.Pods[0]) // is killed at 64Mi
	c.Now = c.Now.Add(time.Minute)
	first := step()
	if len(first.Actions) != 1 {
		t.Fatalf("a kill led to %d actions, want 1", len(first.Actions))
	}
	c.Now = c.Now.Add(30 * time.Second)
	if again := step(); len(again.Actions) != 1 || again.Actions[0].UID != first.Actions[0].UID {
		t.Errorf("what was not sent led to %+v, want it again: %+v", again.Actions, first.Actions)
	}
}

// Seen on Kubernetes 1.35: the container died within a second of its start, before what its pod shows was observed, and
// the raise that never reached its pod was told as done.
func TestARaiseIsJudgedByThePodAsItIsSeen(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.Choose = func(n int) int { return n - 1 } // nothing is lost, and every pod is slow to be ready
	c.Pods, c.need = nil, memory.Bytes(310)*memory.MiB
	c.create(32 * memory.MiB)
	p, memfit := c.Pods[0], c.process()
	step := func() {
		c.reconcile(memfit, points)
		c.Now = c.Now.Add(time.Second)
	}
	step()
	c.End(p, kubelet.KernelOOM)
	c.listed(memfit)
	step()
	c.Start(p)
	c.listed(memfit)
	if step(); p.Limit != 128*memory.MiB {
		t.Fatalf("a limit of %s was asked for, want 128Mi", p.Limit)
	}
	c.End(p, kubelet.KernelOOM)
	step() // nothing has been listed since
	applied := meta.FindStatusCondition(c.shown.Conditions, v1alpha1.ConditionApplied)
	if applied == nil || applied.Status != metav1.ConditionFalse || applied.Reason != v1alpha1.ReasonApplying {
		t.Errorf("%+v, want that it is being applied", applied)
	}
}
