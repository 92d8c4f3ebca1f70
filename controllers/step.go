// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/apply"
	"github.com/memfit/memfit/internal/drift"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/neighbours"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/signals"
)

// effects are what a step wants the world to know and to do, in this order: the MemoryCheckpoint with the next state, the
// MemoryRecommendation, events, and changes of pods.
type effects struct {
	// status is what the MemoryRecommendation should say, and recommended are the sizes in it, by container.
	status      v1alpha1.MemoryRecommendationStatus
	recommended map[string]v1alpha1.Size
	// events say what happened. They come true with the checkpoint, and no later step finds them new again. Those in
	// published repeat what the recommendation says, and wait until it does; told is what is said then.
	events, published []workloadEvent
	told              told
	// actions are what is to be done to running pods. They are in the next state already, because memfit may die between
	// writing and doing.
	actions []apply.Action
	// requeueAfter is when the next step is due without news, and rest is how long samples alone need none.
	requeueAfter, rest time.Duration

	// For metrics: the kills and stalls that are new, every stall on file, what became of changes begun earlier, and what
	// memory does, by container.
	kills     []memory.OOMKill
	newStalls []memory.Stall
	stalls    []memory.Stall
	findings  []apply.Finding
	shapes    map[string]signals.Shape
}

// step is everything memfit decides about a workload: what happened since the last step, what it means, and what should
// change. It changes neither its input nor the world. Equal input gives equal output.
func step(before *state, s *snapshot, now time.Time) (*state, effects) {
	m := before.clone()
	kills, stalls := m.account(s, now)
	m.knowCaps(s.governed)
	v := decide(s, m, now)
	m.shapes, m.liveSets, m.rollout = v.judged, standing(v.alive), v.apply.State
	for _, a := range v.apply.Actions {
		if a.Restart { // noted before it is done: of two memfits that die in between, none evicts one more than the owner allows
			m.restarts.Add(drift.Restart{Pod: a.Pod, UID: a.UID, At: now})
		}
	}
	e := effects{
		status: v.status, recommended: v.recommended, actions: v.apply.Actions, requeueAfter: v.nextLook, rest: min(v.nextLook, m.youngest()/restPart),
		kills: kills, newStalls: stalls.began, stalls: m.ledger.AllStalls(), findings: v.findings, shapes: v.shapes,
	}
	e.events = news(s, &v, kills, stalls)
	e.published, e.told = changes(s, m, &v)
	return m, e
}

// account takes in what happened, in the order in which it matters: kills are counted with the peaks of the instances that
// ended, then these are forgotten, and samples of their successors come last.
func (m *state) account(s *snapshot, now time.Time) (kills []memory.OOMKill, stalls stallChanges) {
	if m.measuredSince.IsZero() && !s.unmeasured {
		m.measuredSince = now
	}
	in := &s.events
	observations := slices.Clone(in.Observations)
	if m.steppedAt.IsZero() {
		// What the pods showed before anybody governed them was not kept, and they may not change for a long time.
		observations = append(observations, s.observations()...)
	}
	complete(s, m, observations)
	kills = append(m.ledger.Update(observations, m.peak, now), m.ledger.UpdateCounters(in.Counters, m.peak, now)...)
	m.watchStalls(observations, in.Samples)
	stalls = m.fileStalls(s.live(), now)
	m.forgetGone(s.live(), now)
	m.forgetNames(s.governed)
	m.settle(observations, now)
	m.takePast(in.Past)
	m.measure(in.Samples, now)
	m.steppedAt = now
	m.profile, m.template, m.source = s.profile, cmp.Or(s.template, m.template), cmp.Or(in.Source, m.source)
	return kills, stalls
}

// result is what was found out about a workload.
type result struct {
	status   v1alpha1.MemoryRecommendationStatus
	coverage coverage
	// shapes are what memory does, by container.
	shapes map[string]signals.Shape
	// judged are the same with what they rest on.
	judged map[string]shapeCache
	// leaks are containers that climb from every start until they are killed.
	leaks map[string]signals.Ramps
	// alive is what replicas show of their heaps, by container.
	alive map[string]alive
	// recommended are the sizes that stand, by container.
	recommended map[string]v1alpha1.Size
	// changed are the containers whose recommendation is new.
	changed []string
	// restart is the pod to evict for its memory, if the profile says so.
	restart drift.Decision
	// findings are what became of changes begun earlier, apply what is to be done to running pods now.
	findings []apply.Finding
	apply    apply.Decision
	// replicas are what running pods use, by container.
	replicas map[string][]signals.Replica
	nextLook time.Duration
	// unnamed is the advice about init containers that are killed and that nobody named, by container.
	unnamed map[string]string
}

const (
	// maxLook and minLook bound the time to the next look without news. Samples queue a workload anyway.
	maxLook = 10 * time.Minute
	minLook = 10 * time.Second
	// restPart: samples alone rest a workload for no more than a quarter of what is known of it: what is hardly known
	// changes with every sample.
	restPart = 4
)

// decide looks at a snapshot and at what is remembered, and says what to tell. It writes nothing and changes nothing.
func decide(s *snapshot, m *state, now time.Time) result {
	v := result{alive: m.alive(now), recommended: map[string]v1alpha1.Size{}, shapes: map[string]signals.Shape{}, judged: map[string]shapeCache{}, replicas: map[string][]signals.Replica{}, leaks: map[string]signals.Ramps{}, nextLook: maxLook}
	running := applyInput(s, m, liveOf(v.alive, m.standing), now)
	running.State, v.findings = apply.Observe(running, m.ledger.AllKillsAndStalls(now))
	if s.template != nil {
		v.unnamed = unnamed(s.profile, s.template, m.ledger.Kills, m.ledger.Total)
		for _, container := range slices.Sorted(maps.Keys(v.unnamed)) {
			v.status.Advisories = append(v.status.Advisories, v.unnamed[container])
		}
		plan := inject.MakePlan(inject.Input{Pod: s.template, Profile: s.profile, Live: liveOf(v.alive, m.standing), Created: true})
		for _, c := range managed(s.profile, s.template) {
			q := containerInput{
				container: c, plan: plan, history: m.containers[c.name], kills: m.ledger.KillsAndStalls(c.name, now), replicas: m.replicas(c.name, s.governed),
				urgent:   m.urgent(c.name, s.governed, c.current.Limit),
				standing: m.standing[c.name], before: m.shapes[c.name], now: now,
				inUse: m.inUse(c.name, s.governed), largestNode: s.facts.LargestNode,
			}
			q.unrelieved, _ = m.ledger.RaisedInVain(c.name, now)
			if taken, stands := running.State.Standing(c.name, now); stands {
				q.reverted = &taken
			}
			q.leak = signals.FindRamps(q.kills, now)
			v.leaks[c.name] = q.leak
			a := q.answer()
			a.status.Use, a.status.UseSeen = m.used[c.name].Use, m.used[c.name].UseSeen
			if most, seen := m.use(c.name, s.governed); most > 0 {
				a.status.Use, a.status.UseSeen = quantity(most), &metav1.Time{Time: seen.UTC().Truncate(time.Second)}
			}
			a.status.OOMKills, a.status.Stalls = m.ledger.Total(c.name), m.ledger.StallTotal(c.name)
			m.sayInVain(&a.status, now)
			if a.status.Recommended != nil {
				v.recommended[c.name] = *a.status.Recommended
				if resizes(s.profile.Spec.Sizing.Mode) {
					running.Desired[c.name] = q.wish(s, a.recommendation)
				}
				if !near(*a.status.Recommended, m.standing[c.name]) {
					v.changed = append(v.changed, c.name)
				}
			}
			if plan.CapsHeap(c.name) {
				v.alive[c.name].publish(&a.status.Evidence)
			}
			a.status.Evidence.Source = evidenceSource(m.source, m.past, m.containers[c.name])
			v.shapes[c.name], v.judged[c.name], v.replicas[c.name] = a.shape, a.judged, q.replicas
			for _, text := range plan.Advisories(c.name) {
				v.status.Advisories = append(v.status.Advisories, "Container "+c.name+": "+text)
			}
			v.status.Containers = append(v.status.Containers, a.status)
			v.nextLook = min(v.nextLook, a.nextLook)
			if len(v.status.Containers) == maxContainers {
				break
			}
		}
	}
	v.restart = restartOf(s, m, v.shapes, now)
	if v.restart.Pod != "" {
		running.Restart = &apply.Candidate{Pod: v.restart.Pod, UID: v.restart.UID, Why: v.restart.Why}
	}
	v.apply = apply.Decide(running)
	if v.restart.Pod != "" && v.apply.RestartHeld != "" {
		v.restart = drift.Decision{Why: v.restart.Why, Held: v.apply.RestartHeld}
	}
	if v.apply.NextLook > 0 {
		v.nextLook = min(v.nextLook, v.apply.NextLook)
	}
	v.nextLook = max(v.nextLook, minLook)
	v.coverage = cover(s, liveOf(v.alive, v.recommended))
	v.status.ProfileGeneration = s.profile.Generation
	v.status.Coverage = &v.coverage.Coverage
	v.status.OOMKills, v.status.RecentOOMKills = killRecords(&m.ledger)
	v.status.Stalls, v.status.RecentStalls = stallRecords(&m.ledger)
	v.status.Limit = limitColumn(v.status.Containers)
	v.status.Summary = workloadSummary(s, v.status.Containers)
	v.status.Advisories = head(v.status.Advisories, 8)
	if v.restart.NextLook > 0 {
		v.nextLook = min(v.nextLook, v.restart.NextLook)
	}
	v.status.Conditions = workloadConditions(s, m, &v, v.coverage, now)
	return v
}

// managedContainer is one container that the profile sizes.
type managedContainer struct {
	name    string
	policy  profile.Container
	current recommend.Size
	// podLimit and podRequest are what the size of the whole pod (spec.resources) allows this container; 0: anything.
	podLimit, podRequest memory.Bytes
}

// sizePolicy is what the owner and the pod around it allow the container.
func (c *managedContainer) sizePolicy() recommend.Policy {
	p := c.policy.SizePolicy()
	p.PodLimit, p.PodRequest = c.podLimit, c.podRequest
	return p
}

// managed are the containers of a pod that are memfit's business: app containers, native sidecars, and init containers that the
// profile names.
func managed(p *profile.Named, pod *corev1.Pod) []managedContainer {
	var all []managedContainer
	add := func(c *corev1.Container, statuses []corev1.ContainerStatus, init bool) {
		policy := p.Container(c.Name, pod.Annotations)
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		if policy.Managed && (!init || sidecar || policy.Named) {
			m := managedContainer{name: c.Name, policy: policy, current: sizeInForce(c, statuses)}
			m.podLimit, m.podRequest = neighbours.PodLeaves(pod, c.Name)
			all = append(all, m)
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i], pod.Status.ContainerStatuses, false)
	}
	for i := range pod.Spec.InitContainers {
		add(&pod.Spec.InitContainers[i], pod.Status.InitContainerStatuses, true)
	}
	slices.SortFunc(all, func(a, b managedContainer) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return all
}

// sizeInForce is what the kubelet says the container has, else what the pod asks for.
func sizeInForce(c *corev1.Container, statuses []corev1.ContainerStatus) recommend.Size {
	size := sizeOf(c.Resources)
	for i := range statuses {
		if r := statuses[i].Resources; statuses[i].Name == c.Name && r != nil {
			actual := sizeOf(*r)
			size.Limit, size.Request = cmp.Or(actual.Limit, size.Limit), cmp.Or(actual.Request, size.Request)
		}
	}
	return size
}

func sizeOf(r corev1.ResourceRequirements) recommend.Size {
	return recommend.Size{
		Request: memory.FromQuantity(*r.Requests.Memory()),
		Limit:   memory.FromQuantity(*r.Limits.Memory()),
	}
}

// containerInput is everything the answer for one container depends on.
type containerInput struct {
	container managedContainer
	plan      inject.Plan
	history   *history.Container
	kills     []memory.OOMKill
	replicas  []signals.Replica
	urgent    []signals.Instance
	standing  v1alpha1.Size
	// reverted is a size that was rolled back and must not come again; nil: none.
	reverted *apply.Revert
	before   shapeCache
	now      time.Time
	// inUse is what the fullest replica holds, largestNode what the largest node can allocate; 0: not known.
	inUse, largestNode memory.Bytes
	// unrelieved is the last stall that a raise did not end.
	unrelieved memory.Stall
	leak       signals.Ramps
}

type containerResult struct {
	status v1alpha1.ContainerRecommendation
	// recommendation is what stands: its size is that of status.
	recommendation recommend.Recommendation
	shape          signals.Shape
	judged         shapeCache
	nextLook       time.Duration
}

func (q *containerInput) answer() containerResult {
	a := containerResult{judged: q.judge(), nextLook: maxLook}
	a.shape = a.judged.shape
	name := q.container.name
	a.status = v1alpha1.ContainerRecommendation{
		Container: name, Current: apiSize(q.container.current),
		Runtime: q.plan.RuntimeOf(name), Settings: head(q.plan.Settings()[name], 16), Shape: apiShape(a.shape),
	}
	known := q.plan.Advisories(name)
	advice := slices.DeleteFunc(append([]string{q.plan.NoRoom(name)}, q.plan.Advice(name)...), func(text string) bool { return slices.Contains(known, text) })
	follows, _ := q.plan.CapFollows(name)
	for _, kind := range kinds(q.kills) {
		if kind == memory.OOMHeapAbort && follows {
			continue // the limit raises the cap, which the reasons say
		}
		runs := cmp.Or(q.plan.Runs(name), string(q.container.policy.Runtime.Type)) // as the kill was told from others
		advice = append(advice, signals.Advice(kind, runs))
	}
	if q.container.policy.Sizing.Mode == v1alpha1.SizingOff {
		a.status.Decision, a.status.Summary = string(recommend.Hold), `Sizing is off in the profile (sizing.mode: "Off")`
	} else {
		advice = append(advice, q.recommend(&a)...)
	}
	a.status.Advice = head(distinct(advice), 8)
	return a
}

// recommend fills in the recommendation and returns its advice.
func (q *containerInput) recommend(a *containerResult) []string {
	growth := q.plan.Growth(q.container.name)
	policy := q.container.sizePolicy()
	follows, frozen := q.plan.CapFollows(q.container.name)
	rec := recommend.Evaluate(recommend.Input{
		History: q.history, Kills: q.kills, Policy: policy, Current: q.container.current, Now: q.now,
		Traits: recommend.Traits{Name: growth.Name, FollowsLimit: growth.FollowsLimit, HeapPercent: growth.HeapPercent, Overhead: growth.Overhead, CapFollowsLimit: follows, CapFrozen: frozen},
		InUse:  q.inUse, Unrelieved: q.unrelieved, LargestNode: q.largestNode, Leak: q.leak.String(),
		Climbing: a.shape.Kind == signals.Climb && a.shape.Confidence != memory.Low,
	})
	if q.reverted != nil {
		rec = q.reverted.Override(rec, q.container.current)
	}
	a.nextLook = rec.NextLook
	s := &a.status
	s.Decision, s.Confidence, s.Summary, s.Reasons = string(rec.Decision), string(rec.Confidence), rec.Summary, head(rec.Reasons, 16)
	s.Evidence = apiEvidence(rec.Evidence)
	if rec.Size == (recommend.Size{}) && (q.standing.Limit != nil || q.standing.Request != nil) {
		// Evidence went away; the number found before does not: new pods must not fall back to a size that killed them.
		rec.Size = profile.SizeOf(q.standing)
		s.Reasons = head(append([]string{"evidence is missing now: the last recommendation stands"}, s.Reasons...), 16)
	}
	if rec.Size != (recommend.Size{}) { // one that stands from before is bounded as the policy is now
		var bounded []string
		rec.Size, bounded = policy.Bound(rec.Size, q.container.current)
		s.Reasons = head(append(bounded, s.Reasons...), 16)
		size := apiSize(rec.Size)
		s.Recommended = &size
	}
	a.recommendation = rec
	return rec.Advice
}
