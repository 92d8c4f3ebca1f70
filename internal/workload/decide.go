// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/drift"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/shape"
)

type result struct {
	status   v1alpha1.MemoryRecommendationStatus
	coverage coverage
	// The maps are by container. shapes are the shapes of memory, and shapeCaches the same with the data they are valid
	// for. leaks are containers that grow from every start until they are killed. found is the runtime that agents
	// detected, used the highest demand of one running replica, replicas the usage of all.
	shapes      map[string]shape.Shape
	shapeCaches map[string]shapeCache
	leaks       map[string]shape.Ramps
	liveHeaps   map[string]liveHeap
	found       map[string]*v1alpha1.FoundRuntime
	used        map[string]used
	replicas    map[string][]shape.Replica
	// recommended are the current sizes, sizes the ones of each running program.
	recommended map[string]memory.Size
	sizes       map[rollout.Key]memory.Size
	// endangered is a pod that should be restarted for its memory; nil: none.
	endangered *rollout.Candidate
	// findings are the outcomes of earlier changes, rollout the changes of running pods to make now. rolledBack are
	// findings of the last minutes.
	findings, rolledBack []rollout.Finding
	rollout              rollout.Transition
	timing               Timing
	// outgrown describes a pod that was raised in place without its memory-backed volume; empty: none.
	outgrown string
	// canaryWaits is what the first new pod with a lower limit waits for; empty: nothing.
	canaryWaits string
	learned     recommend.Priors
	// unnamed is the advice about init containers that are killed and that the profile does not list, by container.
	unlistedInit map[string]string
}

// decider computes a result from a snapshot and a state, without changing them.
type decider struct {
	s   *Snapshot
	st  *State
	now time.Time
	v   result
	// plan is the plan for a pod like the newest one, and observed the replicas' data for it.
	plan     inject.Plan
	plans    plans
	observed map[string]inject.Observed
	// kills are the kills and stalls of all containers that ask for higher limits.
	kills   []memory.OOMKill
	rollout rollout.Input
}

func decide(s *Snapshot, st *State, now time.Time) result {
	d := decider{s: s, st: st, now: now, kills: st.ledger.KillsAndStalls(now)}
	d.v = result{
		liveHeaps: st.liveHeaps(now), recommended: map[string]memory.Size{}, sizes: map[rollout.Key]memory.Size{},
		shapes:      map[string]shape.Shape{},
		shapeCaches: map[string]shapeCache{}, used: map[string]used{},
		replicas: map[string][]shape.Replica{}, leaks: map[string]shape.Ramps{}, learned: recommend.Priors{},
	}
	for _, pod := range s.Governed {
		if unschedulable(pod) {
			d.v.timing.decide(waitedFor - now.Sub(pod.CreationTimestamp.Time))
		}
	}
	d.v.found = findRuntimes(s, st.Found)
	d.observed = observedOf(d.v.liveHeaps, st.sizes(), d.v.found)
	d.plan = inject.MakePlan(inject.Input{
		Pod: s.Template, Profile: s.Profile, Observed: d.observed, Created: true, PerRun: s.perRun(),
	})
	d.plans = plans{pod: s.Template, observed: d.observed, plan: d.plan} // PerRun makes no difference to its callers
	d.rollout = rolloutInput(s, st, d.observed, &d.plans, now)
	d.v.rolledBack = rollout.RolledBack(d.rollout, now.Add(-replayed))
	d.rollout.State, d.v.findings = rollout.Observe(d.rollout, d.avoidableKills())
	if s.Template != nil {
		d.containers()
	}
	d.planPodChanges()
	d.summarize()
	return d.v
}

// helped returns the kills and stalls against which a higher limit helps. Unlike in sizing, it includes a full heap
// whose cap may be a share of the limit, because memfit may have lowered that limit.
func (d *decider) avoidableKills() (all []memory.OOMKill) {
	type program struct {
		kills  []memory.OOMKill
		traits recommend.Traits
	}
	programs := map[rollout.Key]program{}
	for _, k := range d.kills {
		name := k.Container.Container
		p, known := programs[rollout.Key{Container: name, Program: k.Program}]
		if !known {
			e := cmp.Or(d.st.evidenceOf(name, k.Program), d.st.newest(name))
			p = program{kills: d.killsOf(name, e), traits: traitsOf(d.plan.Container(name))}
			p.traits.CapFollowsLimit = p.traits.CapFollowsLimit || p.traits.MayFollow
			programs[rollout.Key{Container: name, Program: k.Program}] = p
		}
		if recommend.Helps(k, p.kills, p.traits) {
			all = append(all, k)
		}
	}
	return all
}

// killsOf returns the kills and stalls that are evidence about a program, oldest first; e nil: any program.
func (d *decider) killsOf(container string, e *evidence) []memory.OOMKill {
	return slices.DeleteFunc(slices.Clone(d.kills), func(k memory.OOMKill) bool {
		return k.Container.Container != container || e != nil && !e.counts(k.Program)
	})
}

// containers decides about each container of the newest pod, and of older pods.
func (d *decider) containers() {
	d.v.unlistedInit = unlistedInitAdvice(d.s.Profile, d.s.Template, &d.st.ledger)
	for _, container := range slices.Sorted(maps.Keys(d.v.unlistedInit)) {
		d.v.status.Remedies = append(d.v.status.Remedies, d.v.unlistedInit[container])
	}
	managed := Managed(d.s.Profile, d.s.Template)
	for _, c := range head(managed, MaxContainers) {
		in := d.inputFor(c, d.plan.Container(c.Name), d.st.newest(c.Name))
		in.Ease = ease(d.s, c.Name, c.current.Limit, d.observed)
		r := in.result()
		d.addContainer(&in, r)
		d.decideOutdated(in, r.shapeCache)
	}
	d.reportPodSize(managed)
	d.decideOlder()
	d.setOtherPrograms()
}

// outdated decides about pods with an earlier size of their owner, as behind a StatefulSet's partition: only evidence
// raises them.
func (d *decider) decideOutdated(in containerInput, s shapeCache) {
	key := rollout.Key{Container: in.container.Name, Program: in.program}
	desired, sized := d.rollout.Desired[key]
	key.Outdated = true
	least, found := d.leastOutdated(key)
	if !sized || !found {
		return
	}
	// package rollout keeps the QoS class of each
	in.Current, in.container.current, in.container.guaranteed = least, least, false
	in.published = memory.Size{} // it is for pods with the current owner's size; without evidence, keep these
	r := containerResult{shapeCache: s}
	in.recommend(&r)
	desired.Recommendation = r.recommendation
	d.rollout.Desired[key] = desired
}

// leastOutdated returns the lowest size of pods with an earlier size of their owner, without loans; false: none.
// Another writer's size is for that pod only: if all have one, the owner's size counts.
func (d *decider) leastOutdated(of rollout.Key) (least memory.Size, found bool) {
	onlyOthers := true
	for i := range d.rollout.Pods {
		pod := &d.rollout.Pods[i]
		for j := range pod.Containers {
			c := &pod.Containers[j]
			if c.Key() != of {
				continue
			}
			size, others := c.Actual, pod.Writer != ""
			if from, _, lent := d.rollout.State.Lent(pod.UID, c.Name); lent {
				size = from
			}
			if others && c.Owner != (memory.Size{}) {
				if size = c.Owner; size.Limit == rollout.NoLimit {
					size.Limit = 0
				}
			}
			if !found || onlyOthers && !others || onlyOthers == others && size.Limit < least.Limit {
				least, found, onlyOthers = size, true, others
			}
		}
	}
	return least, found
}

// older decides about programs and containers that only older pods have, as during a rollout.
func (d *decider) decideOlder() {
	decided := map[rollout.Key]bool{}
	undecided := func(pod *corev1.Pod, name string) *evidence {
		program := d.st.programID(pod.UID, name)
		e := d.st.evidenceOf(name, program)
		if e == d.st.newest(name) && d.inNewestPod(name) || decided[rollout.Key{Container: name, Program: program}] {
			return nil
		}
		return e
	}
	var last *corev1.Pod
	for _, pod := range d.s.Governed {
		if pod.DeletionTimestamp != nil || last != nil && alike(pod, last) || !slices.ContainsFunc(
			ContainersOf(&pod.Spec), func(name string) bool { return undecided(pod, name) != nil },
		) {
			continue // most pods run the newest program, and Managed is expensive
		}
		last = pod
		plan := inject.MakePlan(inject.Input{Pod: pod, Profile: d.s.Profile, Created: true, PerRun: d.s.perRun()})
		for _, c := range Managed(d.s.Profile, pod) {
			if e := undecided(pod, c.Name); e != nil {
				decided[rollout.Key{Container: c.Name, Program: e.Program}] = true
				d.decideOlderContainer(c, plan.Container(c.Name), e)
			}
		}
	}
}

func (d *decider) inNewestPod(name string) bool {
	spec, _ := constraints.Find(d.s.Template, name)
	return spec != nil
}

// olderIn decides about a container of an older pod. Evidence of its own program raises it; it is not lowered, because
// it is soon replaced. The status shows it if the newest pod does not have the container.
func (d *decider) decideOlderContainer(c managedContainer, plan *inject.ContainerPlan, e *evidence) {
	key := rollout.Key{Container: c.Name, Program: e.Program}
	shown, mode := e == d.st.newest(c.Name) && len(d.v.status.Containers) < MaxContainers, d.s.Profile.Spec.Sizing.Mode
	if !shown && !mode.SizesNewPods() {
		return
	}
	c.policy.Sizing.Decrease = v1alpha1.DecreaseNever
	in := d.inputFor(c, plan, e)
	r := in.result()
	d.v.sizes[key] = r.recommendation.Size
	switch {
	case shown:
		r.status.Reasons = head(append([]string{"the newest pod does not have this container"}, r.status.Reasons...), 16)
		d.addContainer(&in, r)
		// Without a canary: a canary of the old release would delay the canary of the new release.
		c := &d.v.status.Containers[len(d.v.status.Containers)-1]
		if c.Recommended != nil && c.NewPods != nil && d.s.paused == "" {
			c.Recommended = c.NewPods.DeepCopy()
		}
	case resizes(mode):
		d.rollout.Desired[key] = in.desired(d.s, r.recommendation)
	}
	if desired, decided := d.rollout.Desired[key]; decided {
		key.Outdated = true // also soon replaced, with any owner's size
		d.rollout.Desired[key] = desired
	}
}

// input returns the data about one program in one container; e nil: unknown.
func (d *decider) inputFor(c managedContainer, plan *inject.ContainerPlan, e *evidence) containerInput {
	st, pods := d.st, d.s.Governed
	c.guaranteed = st.staysGuaranteed(&c)
	if e != nil {
		c.floor = e.floor()
	}
	in := containerInput{
		Input: recommend.Input{
			Kills: d.killsOf(c.Name, e), Current: c.current, Now: d.now,
			LargestNode: max(d.s.Facts.LargestNode, st.RanOn.Size), Silent: whyNoUsage(d.s),
			Prior: d.prior(&c), Unseen: d.rollout.Unseen[c.Name],
		},
		container: c, plan: plan, cached: st.shapes[c.Name], predicted: predictedSettings(d.s, c.Name),
	}
	if in.onFullNode = slices.ContainsFunc(in.Kills, nodeRanOut); c.current.Limit > 0 {
		in.Kills = slices.DeleteFunc(in.Kills, nodeRanOut)
	}
	switch from, _, lent := st.rollout.Lent(c.pod, c.Name); {
	case lent:
		in.Current = from
	case c.resizedByOther && e != nil: // another writer resized this pod only
		in.Current = cmp.Or(e.Running, e.Owner, c.current)
	}
	if e != nil {
		in.program, in.History = e.Program, e.history
		in.Runs = peaks(e.Runs, in.Kills)
		pods = st.podsOfProgram(pods, c.Name, e.Program)
	}
	if last := st.Published[c.Name]; e == nil || e == st.newest(c.Name) && e.counts(last.Program) {
		in.published = last.Size
	}
	in.Replicas = len(pods)
	in.replicas, in.urgent = st.replicas(c.Name, pods), st.urgent(c.Name, pods, c.current.Limit)
	in.InUse, in.InUseSeen = st.highestUse(c.Name, pods, (*readings).low) // a burst between two readings does not count
	if s, found := st.ledger.IneffectiveRaise(c.Name, d.now); found && (e == nil || e.counts(s.Program)) {
		in.Unrelieved = s
	}
	key := rollout.Key{Container: c.Name, Program: in.program}
	if revert, active := d.rollout.State.ActiveRevert(key, d.now); active {
		in.reverted = &revert
	}
	in.leak = st.leak(&in, pods)
	return in
}

// leak returns the leak shown by the kills of a container, if any. It is in doubt if instances used no more than an
// earlier one for a day, which they may still have been filling.
func (st *State) leak(in *containerInput, pods []*corev1.Pod) shape.Ramps {
	name := in.container.Name
	leak := shape.FindRamps(in.Kills, st.largestGrowing(name, pods), in.Now)
	if leak.Instances == 0 {
		return leak
	}
	all := st.ledger.Total(name) + st.ledger.StallTotal(name)
	if held := usedBefore(in.History, in.Kills, all); leak.Last <= held {
		leak.Doubt = held.String() + " were in use on days before its first kill"
	}
	return leak
}

// heldBefore returns the highest use of a day that ended before the first kill or stall; 0: unknown, because there is
// no history or some kills were dropped: an earlier leak also has peaks.
func usedBefore(h *history.Container, kills []memory.OOMKill, all int64) (most memory.Bytes) {
	if h == nil || len(kills) == 0 || int64(len(kills)) < all {
		return 0
	}
	for _, d := range h.Days() {
		if !d.Start.Add(period.Day.Duration()).After(kills[0].Time) {
			most = max(most, d.Peak)
		}
	}
	return most
}

func (d *decider) addContainer(in *containerInput, r containerResult) {
	v, st, name := &d.v, d.st, in.container.Name
	d.setUsage(&r.status)
	r.status.OOMKills, r.status.Stalls = st.ledger.Total(name), st.ledger.StallTotal(name)
	r.status.Breakdown, r.status.BreakdownOutlier = breakdown(d.s, name)
	r.status.Suggestions = suggestions(d.s, name)
	if f := v.found[name]; f != nil {
		r.status.FoundRuntime = f
		if f.Declared != "" {
			r.status.Advice = head(append([]string{f.Declared}, r.status.Advice...), 8)
		}
	}
	if why := throttledHeap(d.s, name); why != "" {
		r.status.Advice = head(append([]string{why}, r.status.Advice...), maxAdvice)
	}
	st.reportIneffectiveRaise(&r.status, d.now)
	if size := r.status.Recommended; size != nil {
		v.recommended[name] = profile.SizeOf(*size)
		v.sizes[rollout.Key{Container: name, Program: in.program}] = v.recommended[name]
		if d.s.Profile.Spec.Sizing.Mode.SizesNewPods() {
			d.rollout.Desired[rollout.Key{Container: name, Program: in.program}] = in.desired(d.s, r.recommendation)
		}
	}
	if in.plan.CapsHeap() {
		v.liveHeaps[name].publish(&r.status.Evidence)
	}
	setSources(&r.status.Evidence, st.Source, st.Past, in.History)
	v.shapes[name], v.shapeCaches[name], v.replicas[name], v.leaks[name] = r.shape, r.shapeCache, in.replicas, in.leak
	for _, text := range in.plan.Advisories() {
		v.status.Advisories = append(v.status.Advisories, "Container "+name+": "+text)
	}
	if young := r.recommendation.Teaches; young > 0 && !d.s.perRun() {
		v.learned.Add(in.container.priorKey, recommend.Learned{
			Hours: young.Hours(), Day: period.DayOf(d.now), Containers: d.containerBit(name),
		})
	}
	d.setNewPods(&r.status)
	v.status.Containers = append(v.status.Containers, r.status)
	v.timing.decide(r.recommendation.RequeueAfter)
}

// prior returns the prior of containers with the same key; none for runs of one identity, which differ in arguments.
func (d *decider) prior(c *managedContainer) recommend.Prior {
	if len(d.s.Priors) == 0 || d.s.perRun() {
		return recommend.Prior{}
	}
	return d.s.Priors.Of(c.priorKey, d.containerBit(c.Name), d.now)
}

// bit returns the bit of a container in [recommend.Learned.Containers].
func (d *decider) containerBit(container string) uint64 {
	return 1 << (hashOf([]string{d.s.Owner.Ref.String(), container}) % 64)
}

// use sets the highest demand of one running replica: as read now, or by an earlier process of memfit.
func (d *decider) setUsage(status *v1alpha1.ContainerRecommendation) {
	name := status.Container
	most, seen := d.st.highestUse(name, d.s.Governed, (*readings).most)
	u := used{Most: most, Seen: seen.UTC().Truncate(time.Second)}
	if last := d.st.Used[name]; most == 0 && last.restored {
		u = last
	}
	if u.Most > 0 {
		d.v.used[name] = u
		status.Usage, status.UsageTime = format.Quantity(u.Most), &metav1.Time{Time: u.Seen}
	}
}

// disturb decides about changes of running pods: internal/drift proposes a pod to restart for its memory, and
// internal/rollout decides, within one budget for restarts and sizes.
func (d *decider) planPodChanges() {
	v := &d.v
	if d.s.Profile.Spec.Drift.Action == v1alpha1.DriftRestart {
		d.rollout.Restart = drift.Endangered(d.rollout.Pods, v.shapes, d.rollout.State.PastRestarts)
	}
	v.endangered, v.rollout = d.rollout.Restart, rollout.Decide(d.rollout)
	v.timing.decide(v.rollout.RequeueAfter)
}

func (d *decider) summarize() {
	v := &d.v
	d.reportNodeHeaps()
	d.reportRestarts()
	v.coverage = countCoverage(d.s, observedOf(v.liveHeaps, v.recommended, v.found), &d.plans)
	v.status.ProfileGeneration = d.s.Profile.Generation
	v.status.Coverage = &v.coverage.Coverage
	v.status.Identity = d.st.Identity.DeepCopy()
	if d.s.Profile.Spec.Sizing.Mode.SizesNewPods() {
		v.status.LargestNode = format.Exact(d.st.RanOn.Size)
		v.status.RefusedRequest = format.Exact(d.st.Refused.Size)
	}
	v.status.OOMKills, v.status.RecentOOMKills = killRecords(&d.st.ledger)
	v.status.Stalls, v.status.RecentStalls = stallRecords(&d.st.ledger)
	v.status.RecentChanges = changeRecords(&v.rollout.State)
	v.status.Canary = d.permit()
	v.status.CurrentLimit = limitColumn(v.status.Containers, currentLimit)
	v.status.RecommendedLimit = limitColumn(v.status.Containers, recommendedLimit)
	v.status.Summary = workloadSummary(d.s, v.status.Containers)
	v.status.Advisories, v.status.Remedies = head(v.status.Advisories, 8), head(v.status.Remedies, 8)
	v.status.Conditions = workloadConditions(d.s, d.st, v, d.now)
	v.status.Problem = Problem(v.status.Conditions)
}

func (v *result) summaries() map[string]string {
	all := map[string]string{}
	maps.Copy(all, v.unlistedInit)
	for i := range v.status.Containers {
		all[v.status.Containers[i].Container] = v.status.Containers[i].Summary
	}
	return all
}

// aboveReplicas returns "Pod web-x uses 640Mi, its replicas 330Mi (median of 60)".
func (v *result) aboveReplicas(container, pod string) string {
	var use memory.Bytes
	var all []memory.Bytes
	for _, r := range v.replicas[container] {
		all = append(all, r.RSS)
		if r.Pod == pod {
			use = r.RSS
		}
	}
	if use == 0 {
		return "Pod " + pod + " uses far more than the other replicas"
	}
	slices.Sort(all)
	return fmt.Sprintf("Pod %s uses %s, its replicas %s (median of %d)", pod, use, all[len(all)/2], len(all))
}

// outlierSentence returns aboveReplicas for the Event on the pod, with what to do.
func (v *result) outlierSentence(pod string) string {
	for i := range v.status.Containers {
		if c := &v.status.Containers[i]; c.Shape != nil && slices.Contains(c.Shape.OutlierPods, pod) {
			return "Container " + c.Container + ": " + v.aboveReplicas(c.Container, pod) +
				". Only this pod differs: inspect it before you raise the limit"
		}
	}
	return "It uses far more memory than the other replicas"
}

// compared reports whether a pod was measured for long enough to be compared with its replicas.
func (v *result) compared(pod string) bool {
	for _, replicas := range v.replicas {
		if slices.ContainsFunc(replicas, func(r shape.Replica) bool { return r.Pod == pod }) {
			return true
		}
	}
	return false
}
