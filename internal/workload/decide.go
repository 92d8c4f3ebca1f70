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

// result contains the decisions of one step. The keys of the maps with string keys are container names.
type result struct {
	status         v1alpha1.MemoryRecommendationStatus
	coverage       coverage
	shapes         map[string]shape.Shape // of memory over time
	shapeCaches    map[string]shapeCache
	leaks          map[string]shape.Ramps // containers that grow from every start until they are killed
	liveHeaps      map[string]liveHeap
	found          map[string]*v1alpha1.FoundRuntime // detected by agents
	used           map[string]used                   // the highest demand of one running replica
	replicas       map[string][]shape.Replica        // the usage of all running replicas
	recommended    map[string]memory.Size            // of each container's newest program
	sizes          map[rollout.Key]memory.Size       // recommended for each running program
	endangered     *rollout.Candidate                // a pod that should be restarted for its memory; nil: none
	findings       []rollout.Finding                 // outcomes of earlier changes
	rolledBack     []rollout.Finding                 // rollbacks of the last minutes
	rollout        rollout.Transition                // changes of running pods
	timing         Timing
	outgrownVolume string // see [outgrownVolume]
	canaryWaits    string // what the first new pod with a lower limit waits for; empty: nothing
	learned        recommend.Priors
	unlistedInit   map[string]string // see [unlistedInitAdvice]
}

// decider computes a result from a snapshot and a state, without changing them.
type decider struct {
	s        *Snapshot
	st       *State
	now      time.Time
	out      result
	plan     inject.Plan // for a new pod like the newest one
	plans    plans
	observed map[string]inject.Observed
	kills    []memory.OOMKill // the kills and stalls of all containers that can raise a limit
	rollout  rollout.Input
}

// decide makes all decisions of a step, from the state that already includes the snapshot's events.
func decide(s *Snapshot, st *State, now time.Time) result {
	d := decider{s: s, st: st, now: now, kills: st.ledger.KillsAndStalls(now)}
	d.out = result{
		liveHeaps: st.liveHeaps(now), recommended: map[string]memory.Size{}, sizes: map[rollout.Key]memory.Size{},
		shapes:      map[string]shape.Shape{},
		shapeCaches: map[string]shapeCache{}, used: map[string]used{},
		replicas: map[string][]shape.Replica{}, leaks: map[string]shape.Ramps{}, learned: recommend.Priors{},
	}
	for _, pod := range s.Governed {
		if unschedulable(pod) {
			d.out.timing.decide(waitedFor - now.Sub(pod.CreationTimestamp.Time))
		}
	}
	d.out.found = findRuntimes(s, st.Found)
	d.observed = observedOf(d.out.liveHeaps, st.sizes(), d.out.found)
	d.plan = inject.MakePlan(inject.Input{
		Pod: s.Template, Profile: s.Profile, Observed: d.observed, Created: true, PerRun: s.perRun(),
	})
	d.plans = plans{pod: s.Template, observed: d.observed, plan: d.plan} // its callers ignore PerRun
	d.rollout = rolloutInput(s, st, d.observed, &d.plans, now)
	d.out.rolledBack = rollout.RolledBack(d.rollout, now.Add(-replayed))
	d.rollout.State, d.out.findings = rollout.Observe(d.rollout, d.avoidableKills())
	if s.Template != nil {
		d.containers()
	}
	d.planPodChanges()
	d.summarize()
	return d.out
}

// avoidableKills returns the kills and stalls that a higher limit can prevent. Unlike sizing, it includes a full heap
// whose cap may be a share of the limit, because memfit may have lowered this limit.
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
		if recommend.PreventedByHigherLimit(k, p.kills, p.traits) {
			all = append(all, k)
		}
	}
	return all
}

// killsOf returns the kills and stalls that are evidence about e's program, oldest first; e nil: about any program.
func (d *decider) killsOf(container string, e *evidence) []memory.OOMKill {
	return slices.DeleteFunc(slices.Clone(d.kills), func(k memory.OOMKill) bool {
		return k.Container.Container != container || e != nil && !e.countsKillsOf(k.Program)
	})
}

// containers decides about each container of the newest pod, then about those that only older pods have.
func (d *decider) containers() {
	d.out.unlistedInit = unlistedInitAdvice(d.s.Profile, d.s.Template, &d.st.ledger)
	for _, container := range slices.Sorted(maps.Keys(d.out.unlistedInit)) {
		d.out.status.Remedies = append(d.out.status.Remedies, d.out.unlistedInit[container])
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

// decideOutdated decides about pods that were created with an earlier size of their owner, for example behind a
// StatefulSet's partition. It raises their limits by evidence, but not to the current owner's size.
func (d *decider) decideOutdated(in containerInput, s shapeCache) {
	key := rollout.Key{Container: in.container.Name, Program: in.program}
	desired, sized := d.rollout.Desired[key]
	key.Outdated = true
	least, found := d.leastOutdated(key)
	if !sized || !found {
		return
	}
	// guaranteed is false because package rollout keeps each pod's QoS class
	in.Current, in.container.current, in.container.guaranteed = least, least, false
	in.published = memory.Size{} // applies only to pods with the current owner's size
	r := containerResult{shapeCache: s}
	in.recommend(&r)
	desired.Recommendation = r.recommendation
	d.rollout.Desired[key] = desired
}

// leastOutdated returns the size with the lowest limit of pods with an earlier size of their owner, without loans;
// false: no such pod. It prefers pods that no other writer resized. For a pod that another writer resized, the owner's
// size counts.
func (d *decider) leastOutdated(of rollout.Key) (least memory.Size, found bool) {
	onlyByOther := true
	for i := range d.rollout.Pods {
		pod := &d.rollout.Pods[i]
		for j := range pod.Containers {
			c := &pod.Containers[j]
			if c.Key() != of {
				continue
			}
			size, byOther := c.Actual, pod.Writer != ""
			if from, _, lent := d.rollout.State.LoanSizes(pod.UID, c.Name); lent {
				size = from
			}
			if byOther && c.Owner != (memory.Size{}) {
				if size = c.Owner; size.Limit == rollout.NoLimit {
					size.Limit = 0
				}
			}
			if !found || onlyByOther && !byOther || onlyByOther == byOther && size.Limit < least.Limit {
				least, found, onlyByOther = size, true, byOther
			}
		}
	}
	return least, found
}

// decideOlder decides about programs and containers that only older pods have, for example during a rollout.
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
	var previous *corev1.Pod
	for _, pod := range d.s.Governed {
		if pod.DeletionTimestamp != nil || previous != nil && alike(pod, previous) || !slices.ContainsFunc(
			ContainersOf(&pod.Spec), func(name string) bool { return undecided(pod, name) != nil },
		) {
			continue // avoid the expensive Managed: most pods run the newest program
		}
		previous = pod
		plan := inject.MakePlan(inject.Input{Pod: pod, Profile: d.s.Profile, Created: true, PerRun: d.s.perRun()})
		for _, c := range Managed(d.s.Profile, pod) {
			if e := undecided(pod, c.Name); e != nil {
				decided[rollout.Key{Container: c.Name, Program: e.Program}] = true
				d.decideOlderContainer(c, plan.Container(c.Name), e)
			}
		}
	}
}

// inNewestPod reports whether the newest pod has a container with the name.
func (d *decider) inNewestPod(name string) bool {
	spec, _ := constraints.Find(d.s.Template, name)
	return spec != nil
}

// decideOlderContainer decides about a container of an older pod. It never lowers the limit, because the pod is soon
// replaced. The status contains the container if the newest pod does not have it.
func (d *decider) decideOlderContainer(c managedContainer, plan *inject.ContainerPlan, e *evidence) {
	key := rollout.Key{Container: c.Name, Program: e.Program}
	shown, mode := e == d.st.newest(c.Name) && len(d.out.status.Containers) < MaxContainers, d.s.Profile.Spec.Sizing.Mode
	if !shown && !mode.SizesNewPods() {
		return
	}
	c.policy.Sizing.Decrease = v1alpha1.DecreaseNever
	in := d.inputFor(c, plan, e)
	r := in.result()
	d.out.sizes[key] = r.recommendation.Size
	switch {
	case shown:
		r.status.Reasons = head(append([]string{"the newest pod does not have this container"}, r.status.Reasons...), 16)
		d.addContainer(&in, r)
		// Recommend the size of new pods: a canary of the old release would delay the canary of the new release.
		c := &d.out.status.Containers[len(d.out.status.Containers)-1]
		if c.Recommended != nil && c.NewPods != nil && d.s.paused == "" {
			c.Recommended = c.NewPods.DeepCopy()
		}
	case resizes(mode):
		d.rollout.Desired[key] = in.desired(d.s, r.recommendation)
	}
	if desired, decided := d.rollout.Desired[key]; decided {
		key.Outdated = true // the decision is the same for pods with an earlier owner's size
		d.rollout.Desired[key] = desired
	}
}

// inputFor returns the data about one program in one container; e nil: the program is unknown.
func (d *decider) inputFor(c managedContainer, plan *inject.ContainerPlan, e *evidence) containerInput {
	st, pods := d.st, d.s.Governed
	c.guaranteed = st.staysGuaranteed(&c)
	if e != nil {
		c.floor = e.floor()
	}
	in := containerInput{
		Input: recommend.Input{
			Kills: d.killsOf(c.Name, e), Current: c.current, Now: d.now,
			LargestNode: max(d.s.Facts.LargestNode, st.RanOn.Size), NoSamplesBecause: whyNoUsage(d.s),
			Prior: d.prior(&c), UnmeasuredContainer: d.rollout.Unmeasured[c.Name],
		},
		container: c, plan: plan, cached: st.shapes[c.Name], predicted: predictedSettings(d.s, c.Name),
	}
	if in.onFullNode = slices.ContainsFunc(in.Kills, nodeRanOut); c.current.Limit > 0 {
		in.Kills = slices.DeleteFunc(in.Kills, nodeRanOut)
	}
	switch from, _, lent := st.rollout.LoanSizes(c.pod, c.Name); {
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
	if last := st.Published[c.Name]; e == nil || e == st.newest(c.Name) && e.countsKillsOf(last.Program) {
		in.published = last.Size
	}
	in.Replicas = len(pods)
	in.replicas, in.urgent = st.replicas(c.Name, pods), st.urgent(c.Name, pods, c.current.Limit)
	in.InUse, in.InUseSeen = st.highestUse(c.Name, pods, (*readings).low) // low ignores short bursts
	if s, found := st.ledger.IneffectiveRaise(c.Name, d.now); found && (e == nil || e.countsKillsOf(s.Program)) {
		in.Unrelieved = s
	}
	key := rollout.Key{Container: c.Name, Program: in.program}
	if revert, active := d.rollout.State.ActiveRevert(key, d.now); active {
		in.reverted = &revert
	}
	in.leak = st.leak(&in, pods)
	return in
}

// leak returns the leak that the kills of a container show; zero: none. Doubt is set if an earlier day reached the same
// use without a kill, so that the killed instances may still have been loading.
func (st *State) leak(in *containerInput, pods []*corev1.Pod) shape.Ramps {
	name := in.container.Name
	leak := shape.FindRamps(in.Kills, st.largestGrowing(name, pods), in.Now)
	if leak.Instances == 0 {
		return leak
	}
	all := st.ledger.Total(name) + st.ledger.StallTotal(name)
	if earlier := usedBefore(in.History, in.Kills, all); leak.Last <= earlier {
		leak.Doubt = "it used " + earlier.String() + " on a day before the first kill"
	}
	return leak
}

// usedBefore returns the highest use of the days before the first kill or stall; 0: unknown. all is the number of all
// kills and stalls: if the ledger dropped some, the first kill is unknown, and an earlier leak may have caused the use.
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

// addContainer adds the decision about a container to the result.
func (d *decider) addContainer(in *containerInput, r containerResult) {
	v, st, name := &d.out, d.st, in.container.Name
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
	if young := r.recommendation.BurstEvidence; young > 0 && !d.s.perRun() {
		v.learned.Add(in.container.priorKey, recommend.Learned{
			Hours: young.Hours(), Day: period.DayOf(d.now), Containers: d.containerBit(name),
		})
	}
	d.setNewPods(&r.status)
	v.status.Containers = append(v.status.Containers, r.status)
	v.timing.decide(r.recommendation.RequeueAfter)
}

// prior returns the prior of containers with the same key; zero: none, or the pods are runs with different arguments.
func (d *decider) prior(c *managedContainer) recommend.Prior {
	if len(d.s.Priors) == 0 || d.s.perRun() {
		return recommend.Prior{}
	}
	return d.s.Priors.Of(c.priorKey, d.containerBit(c.Name), d.now)
}

// containerBit returns the bit of a container in [recommend.Learned.Containers].
func (d *decider) containerBit(container string) uint64 {
	return 1 << (hashOf([]string{d.s.Owner.Ref.String(), container}) % 64)
}

// setUsage sets the highest demand of one running replica in the status. Until this process has read usage, it is the
// value from the checkpoint.
func (d *decider) setUsage(status *v1alpha1.ContainerRecommendation) {
	name := status.Container
	demand, seen := d.st.highestUse(name, d.s.Governed, (*readings).most)
	highest := used{Most: demand, Seen: seen.UTC().Truncate(time.Second)}
	if last := d.st.Used[name]; demand == 0 && last.restored {
		highest = last
	}
	if highest.Most > 0 {
		d.out.used[name] = highest
		status.Usage, status.UsageTime = format.Quantity(highest.Most), &metav1.Time{Time: highest.Seen}
	}
}

// planPodChanges decides about changes of running pods. Package drift proposes a pod to restart for its memory, and
// package rollout decides about restarts and sizes within one budget.
func (d *decider) planPodChanges() {
	v := &d.out
	if d.s.Profile.Spec.Drift.Action == v1alpha1.DriftRestart {
		d.rollout.Restart = drift.Endangered(d.rollout.Pods, v.shapes, d.rollout.State.PastRestarts)
	}
	v.endangered, v.rollout = d.rollout.Restart, rollout.Decide(d.rollout)
	v.timing.decide(v.rollout.RequeueAfter)
}

// summarize sets the parts of the status that depend on all containers.
func (d *decider) summarize() {
	v := &d.out
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

// summaries returns the summary of each container for Events.
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

// outlierSentence returns aboveReplicas and what to do, for the Event on the pod.
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
