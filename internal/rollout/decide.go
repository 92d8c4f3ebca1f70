// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/recommend"
)

// recheckAfter is the time to the next decision while a change is under way, or waits for something without events.
const recheckAfter = 30 * time.Second

// Decide returns the actions to send now, for the state that [Observe] returned. It repeats stored actions that the
// pods do not show yet: an action that is sent twice has the effect of one.
func Decide(in Input) Transition {
	d := decider{Input: in, pods: map[types.UID]*Pod{}}
	d.State = in.State.clone()
	if d.State.Spent = Recent(in.State.Spent, in.Now); in.Allowance == nil {
		d.State.Spent = nil
	}
	for i := range d.Pods {
		if pod := &d.Pods[i]; !pod.Terminating {
			d.pods[pod.UID] = pod
		}
	}
	d.endSupersededLoans()
	d.supersede()
	d.decreasing = d.State.Rollout.Decrease && slices.ContainsFunc(d.State.Steps, d.isLowering)
	d.sendPending()
	d.decideRestart()
	d.beginChanges()
	d.restoreRequests()
	return d.conclude()
}

type decider struct {
	Input
	pods       map[types.UID]*Pod // without terminating pods
	actions    []Action
	toChange   []*Pod // pods without the recommended size that are not being changed
	decreasing bool   // the rollout lowers limits, and a pod is getting its lower limit or is watched with it

	waitingForQuota int         // the number of pods in toChange that need more quota
	uncountedQuota  memory.Size // the started increases that quotas do not count yet
	reason, message string      // of the first refusal
	restartHeld     string
	requeueAfter    time.Duration
}

// noteRefusal stores a refusal for the condition Applied, if it is the first.
func (d *decider) noteRefusal(reason, message string) {
	if d.reason == "" {
		d.reason, d.message = reason, message
	}
}

func (d *decider) requeueIn(t time.Duration) {
	if t > 0 && (d.requeueAfter == 0 || t < d.requeueAfter) {
		d.requeueAfter = t
	}
}

// target returns the size that a container of this pod should have, and whether it differs enough for a change.
func (d *decider) target(pod *Pod, c Container) (memory.Size, bool) {
	desired, found := d.Desired[c.Key()]
	switch {
	case c.Done:
		return c.Spec, false
	case d.Policy.KeepRunningPods:
		return d.toRestore(pod, c)
	case !found:
		return c.Spec, false
	}
	to := desired.Recommendation.Size
	if fixed, found := d.rolloutTarget(&c); found {
		to = fixed // all pods should get the same size, and recommendations vary a little every hour
	}
	if c.Shared { // only the pod has a limit, and a resize adds no request
		if to.Limit = 0; c.Spec.Request == 0 {
			to.Request = 0
		}
	}
	// a resize cannot remove a request or limit
	to = memory.Size{Limit: cmp.Or(to.Limit, c.Spec.Limit), Request: cmp.Or(to.Request, c.Spec.Request)}
	now := currentSize(c)
	if limit := (memory.Size{Limit: to.Limit, Request: now.Request}); now.Limit > 0 &&
		!recommend.Differs(now, limit, desired.Policy) {
		to.Limit = c.Spec.Limit // at most the request needs a change
	}
	if to = d.keepLoans(pod, c, to); d.sizedForAnother(pod, c) {
		to = to.Max(c.originalSize())
	}
	// The owner's bounds take precedence over the size of other pods.
	to, _ = desired.Policy.Bound(to, d.withoutLoans(pod, c))
	if pod.QoS == "Guaranteed" && !pod.limited() {
		to.Request = to.Limit
	}
	if d.Now.Before(c.OwnerUntil) {
		to.Request = max(to.Request, min(c.Owner.Request, now.Request))
	}
	less := memory.Size{Limit: to.Limit, Request: min(to.Request, c.Actual.Request)}
	waits := pod.limitDeferred() && less.Request > 0 && desired.Range.Within(less) == less
	if waits {
		to = less // the request is raised when the limit is effective
	}
	// above its request, the container uses memory that the scheduler counts as free
	overdue := c.Demand > now.Request && to.Request > now.Request
	_, needed := d.sharedNeed(pod, c)
	if c.keepsCap(to.Limit) {
		now.Limit = c.CapFor // the process cannot use more
	}
	return to, overdue || needed || waits && to.Request < now.Request || recommend.Differs(now, to, desired.Policy)
}

// toRestore returns the size with the restored limit for a pod that should keep its size, and whether to restore it.
// A limit that memfit lowered in place is restored, except while memfit is paused, another controller acts or the
// container has a loan, and except by a restart. A limit that was rolled back is restored in any case, even if the pod
// was created with it, because an OOM-killed container keeps its pod. If the owner set no limit, the container gets the
// recommended limit, and more only after a kill.
func (d *decider) toRestore(pod *Pod, c Container) (memory.Size, bool) {
	restored := c.RestoreLimit
	r, harmed := d.State.ActiveRevert(c.Key(), d.Now)
	if harmed && (d.Conflict == "" || c.Spec.Limit == r.Tried.Limit) {
		enough := min(c.Owner.Limit, r.Restored.Limit)
		if rec := d.Desired[c.Key()].Recommendation; enough == NoLimit { // a resize cannot remove a limit
			if enough = 0; c.Spec.Limit <= r.Tried.Limit || rec.Urgent {
				enough = rec.Size.Limit
			}
		}
		restored = max(restored, enough)
	}
	_, _, lent := d.State.LoanSizes(pod.UID, c.Name)
	kept := lent || c.RestartsOnResize || d.Paused != "" || d.Conflict != ""
	now := currentSize(c).Limit
	if pod.Writer != "" || !harmed && kept || c.Spec.Limit == 0 || restored <= now {
		return c.Spec, false
	}
	to, _ := d.Desired[c.Key()].Policy.Bound(memory.Size{Request: c.Spec.Request, Limit: restored}, c.Spec)
	if pod.QoS == "Guaranteed" && !pod.limited() {
		to.Request = to.Limit
	}
	return to, to.Limit > now
}

// rolloutTarget returns the size that the current rollout sets on this container. found is false if the size exceeds
// the owner's bounds, or differs from the recommendation while no limit is being lowered.
func (d *decider) rolloutTarget(c *Container) (target memory.Size, found bool) {
	desired := d.Desired[c.Key()]
	target, found = d.State.Rollout.Targets[c.Key()]
	return target, found && !outOfBounds(target, desired.Policy) &&
		(d.decreasing || !recommend.Differs(target, desired.Recommendation.Size, desired.Policy))
}

// isLowering reports whether a step is setting a lower limit on its pod, or watches the pod with it.
func (d *decider) isLowering(st Step) bool {
	watched := st.Phase != Watching || d.Now.Before(st.Watch.Since.Add(d.Policy.Watch))
	return watched && st.Phase != Undoing && st.Phase != Deferred && lowersAny(st.From, st.To)
}

// supersede ends a decrease if more than the previous limit is recommended now, or more than the new limit and that is
// urgent or the owner now forbids decreases. All pods get the increase, so none is rolled back.
func (d *decider) supersede() {
	e := &d.State.Rollout
	if !e.Decrease {
		return
	}
	for of, target := range e.Targets {
		desired, known := d.Desired[of]
		size, urgent := desired.Recommendation.Size, desired.Recommendation.Urgent || desired.Policy.DecreaseNever
		l, lowered := d.State.lowest(of.Container, of.Program, false)
		if !known || !lowered || size.Limit > target.Limit && urgent || size.Limit > l.From.Limit {
			d.State.end(d.pods)
			return
		}
	}
}

// sendPending sends the actions of steps that the pods' specs do not show, or that are not effective. It first removes
// outdated steps.
func (d *decider) sendPending() {
	d.State.Steps = slices.DeleteFunc(d.State.Steps, func(st Step) bool {
		outdated := d.outdated(st)
		if outdated {
			d.State.refund(st.UID, st.At)
		}
		return outdated
	})
	d.State.abandon()
	for i := range d.State.Steps {
		st := &d.State.Steps[i]
		pod := d.pods[st.UID]
		if pod == nil || st.Phase == Watching {
			continue
		}
		_, ineffective := pod.ineffective(st.To)
		switch {
		case st.Phase == Undoing:
			d.send(st)
		case st.Phase == Resizing && pod.has(st.To, spec) && !ineffective:
			d.requeueIn(statusDelay)
			d.requeueIn(pod.doubtedUntil(st.To).Sub(d.Now))
		case st.Phase == Deferred, d.gated(pod, st) >= postponed:
			d.requeueIn(recheckAfter)
		case st.Phase == Evicting && d.awaitsPermit(st):
			d.requeueIn(permitDelay)
		case st.Phase == Evicting:
			st.Present = presentOf(d.Pods)
			d.send(st)
		case !pod.has(st.To, spec):
			st.Request.At, st.Request.Instances = toSeconds(d.Now), pod.instances(st.To)
			d.send(st)
		case d.resend(st, pod):
			d.send(st)
		default:
			d.requeueIn(statusDelay)
		}
	}
}

// limitDeferred reports whether a new limit is deferred only because of the request in the same resize: the node lacks
// free memory for the request. It is false if the request must equal the limit.
func (p *Pod) limitDeferred() bool {
	return p.Resize.Deferred && p.Whole == nil && p.QoS != "Guaranteed" &&
		slices.ContainsFunc(p.Containers, func(c Container) bool {
			return c.Actual.Limit > 0 && c.Spec.Limit != c.Actual.Limit
		})
}

func (d *decider) send(st *Step) { d.actions = append(d.actions, st.action()) }

// beginChanges begins to change as many pods as the gates permit.
func (d *decider) beginChanges() {
	if d.Policy.KeepRunningPods {
		for of, want := range d.Desired {
			if !of.Outdated { // new pods get the recommended limit
				d.State.raise(of, want.Recommendation.Size.Limit, d.Now)
			}
		}
	}
	for _, pod := range d.pods {
		if d.State.Restart != nil && d.State.Restart.UID == pod.UID {
			continue
		}
		if !d.mustFinish(pod) && d.needsChange(pod) {
			d.toChange = append(d.toChange, pod)
		}
	}
	for _, st := range d.State.Steps {
		if pod := d.pods[st.UID]; pod != nil && st.Phase != Undoing {
			d.uncountedQuota = d.uncountedQuota.Plus(pod.quotaIncrease(st.To))
		}
	}
	// the pods that use most of their limit come first
	slices.SortStableFunc(d.toChange, func(a, b *Pod) int {
		return cmp.Or(cmp.Compare(d.need(b), d.need(a)), cmp.Compare(a.Name, b.Name))
	})
	for _, pod := range d.toChange {
		if d.needsQuota(pod) {
			d.waitingForQuota++
		}
	}
	for _, pod := range d.toChange {
		if d.State.mayBegin(pod.UID, d.need(pod) > full) {
			d.change(pod)
		}
	}
}

// mustFinish reports whether a step of a pod must end before the next one begins. A step that is deferred or watched
// need not, nor one that lowers a limit for which more is recommended now.
func (d *decider) mustFinish(pod *Pod) bool {
	return slices.ContainsFunc(d.State.Steps, func(st Step) bool {
		if st.UID != pod.UID || st.Phase == Watching || st.Phase == Deferred {
			return false
		}
		higher := func(c Container) bool {
			size, found := st.To[c.Name]
			to, differs := d.target(pod, c)
			return found && differs && to.Limit > size.Limit && lowers(st.From[c.Name].Limit, size.Limit)
		}
		return st.Phase != Resizing || !pod.has(st.To, spec) || !slices.ContainsFunc(pod.Containers, higher)
	})
}

// mayBegin reports whether the change of a pod may begin. It bounds the number of pods that are changed or watched
// (maxWatched), and of those that were refused or deferred (maxHeld, or maxRefusals for a full pod).
func (s *State) mayBegin(pod types.UID, isFull bool) bool {
	changing, maxWaiting := 0, maxHeld
	for i := range s.Steps {
		if s.Steps[i].Phase != Deferred {
			changing++
		}
	}
	if isFull {
		maxWaiting = maxRefusals
	}
	_, begun := s.step(pod)
	_, refused := s.refusal(pod)
	return begun || changing < maxWatched && len(s.Steps) < maxSteps &&
		(refused || len(s.Steps)+len(s.Refusals) < maxWaiting)
}

// need returns the largest needOf of a pod's containers; 0: no limit needs a raise.
func (d *decider) need(pod *Pod) (largest int64) {
	for _, c := range pod.Containers {
		largest = max(largest, d.needOf(pod, c))
	}
	return largest
}

// A pod with a higher need than full uses all of its limit.
const full = 100

// needOf returns 1 plus the demand of a container in percent of its limit; 0 if the limit needs no raise. A restarted
// container without a reading counts as full.
func (d *decider) needOf(pod *Pod, c Container) int64 {
	limit := currentSize(c).Limit
	if to, differs := d.target(pod, c); !differs || to.Limit <= limit || limit == 0 {
		return 0
	}
	used := c.Demand
	if used == 0 && c.Restarts > 0 {
		used = limit
	}
	return 1 + int64(used)*100/int64(limit)
}

// byNeed returns the containers of a pod, those with the largest need first.
func (d *decider) byNeed(pod *Pod) []Container {
	return slices.SortedStableFunc(slices.Values(pod.Containers), func(a, b Container) int {
		return cmp.Compare(d.needOf(pod, b), d.needOf(pod, a))
	})
}

// stillWanted reports whether memfit would request the refused sizes again now.
func (d *decider) stillWanted(pod *Pod, r Refusal) bool {
	sizes := map[string]memory.Size{}
	for _, c := range d.byNeed(pod) {
		size, refused := r.Sizes[c.Name]
		to, differs := d.target(pod, c)
		to, _ = d.boundByWhole(pod, c, to)
		ch := d.changeOf(pod, c, to, r.Evict)
		ch.sizes = sizes
		if d.allow(ch); !c.Shared {
			to = ch.to
		}
		if differs {
			sizes[c.Name] = to
		}
		if ch.to = to; refused && differs && !ch.sameAsRefused(size) {
			return false
		}
	}
	return true
}

// outOfBounds reports whether a limit exceeds the owner's bounds, which may have changed since memfit chose the limit.
func outOfBounds(size memory.Size, p recommend.Policy) bool {
	bounded, _ := p.Bound(size, size)
	return bounded.Limit != size.Limit
}

// outdated reports whether a step that was not sent must be removed: running pods must keep their sizes now, the new
// size exceeds the owner's current bounds, or a gate removes the step.
func (d *decider) outdated(st Step) bool {
	pod := d.pods[st.UID]
	if pod == nil || st.Phase == Undoing || pod.has(st.To, spec) {
		return false
	}
	if _, useless := d.evictionSizes(pod, st.To); st.evicts() && (d.Policy.KeepRunningPods || useless != "") {
		return true
	}
	for name, size := range st.To {
		if name == WholePod {
			continue // the pod-level size follows the containers
		}
		c, _ := pod.container(name)
		desired := d.Desired[c.Key()]
		if to, restore := d.target(pod, c); d.Policy.KeepRunningPods && (!restore || to.Limit != size.Limit) {
			return true
		}
		never := desired.Policy.DecreaseNever && lowers(d.withoutLoans(pod, c).Limit, size.Limit)
		if never || outOfBounds(size, desired.Policy) {
			return true
		}
	}
	return d.gated(pod, &st) == removed
}

// podPrefix returns the start of a message about a container.
func (d *decider) podPrefix(pod *Pod, c Container) string {
	if len(pod.Containers) == 1 {
		return "pod " + pod.Name + ": "
	}
	return "pod " + pod.Name + ", container " + c.Name + ": "
}

// begin adds a step that sets new sizes on a pod, and sends its action.
func (d *decider) begin(pod *Pod, to map[string]memory.Size, evict bool) {
	d.spend(pod.cost(to, evict))
	if d.uncountedQuota = d.uncountedQuota.Plus(pod.quotaIncrease(to)); d.needsQuota(pod) && d.allLimits(pod, to) {
		d.waitingForQuota--
	}
	from, last := map[string]memory.Size{}, map[string]memory.Size{}
	lowering, forAll := false, evict || !d.State.underWay()
	for name, size := range to {
		c, _ := pod.container(name)
		if from[name], last[name] = currentSize(c), c.Spec; evict && c.keepsCap(size.Limit) {
			from[name] = memory.Size{Limit: c.CapFor, Request: c.Spec.Request}
		}
		lowering = lowering || lowers(d.usable(pod, c, size, evict).Limit, size.Limit)
		forAll = forAll || size.Limit != pod.effectiveSize(c).Limit
	}
	maps.Copy(from, d.State.replace(pod.UID, to))
	if maps.Equal(from, last) {
		last = nil
	}
	if forAll { // a change of only the request may be for one pod
		d.State.begin(lowering, d.Now)
	}
	for name, size := range to {
		if c, _ := pod.container(name); name != WholePod && !c.Shared && !d.Policy.KeepRunningPods {
			d.recordTarget(pod, c, size, evict)
		}
	}
	d.decreasing = d.decreasing || lowering
	step := Step{
		Pod: pod.Name, UID: pod.UID, At: toSeconds(d.Now), Phase: Resizing, From: from, To: maps.Clone(to),
		Served: pod.serves(), Programs: pod.programs(to),
		Why:     quote.Cut(d.recommended(pod, to), maxText),
		Request: request{At: toSeconds(d.Now), Spec: last, Instances: pod.instances(to)},
	}
	if evict {
		step.Phase, step.Request, step.Present = Evicting, request{}, presentOf(d.Pods)
	}
	d.State.Steps = append(d.State.Steps, step)
	d.State.LastChange = toSeconds(d.Now)
	if evict && d.awaitsPermit(&step) {
		d.requeueIn(permitDelay)
		return
	}
	d.send(&step)
}

// usable returns the current size of a container without its loans. If a heap cap keeps the process from using the
// limit and an eviction replaces the pod, it returns the limit for which the cap was set.
func (d *decider) usable(pod *Pod, c Container, to memory.Size, evict bool) memory.Size {
	own := d.withoutLoans(pod, c)
	own.Limit = min(own.Limit, pod.sizeBefore(c, to).Limit)
	if evict && c.keepsCap(to.Limit) {
		own.Limit = min(own.Limit, c.CapFor)
	}
	return own
}

// recordTarget records the new size of a container as the target of the rollout, and a lower limit as a [Lowering].
func (d *decider) recordTarget(pod *Pod, c Container, to memory.Size, evict bool) {
	e, of, own, limit := &d.State.Rollout, c.Key(), d.usable(pod, c, to, evict), to.Limit
	from := own
	switch ours := c.originalSize(); {
	case own.Limit == 0:
		from.Limit = NoLimit
	case pod.Writer != "" && ours.Limit < own.Limit:
		from = ours // another writer raised the limit, in this pod only
	}
	lowered := lowers(from.Limit, limit)
	if lowered {
		d.State.lower(Lowering{Container: c.Name, Program: c.Program, From: from, To: to, At: d.Now})
	}
	if _, found := d.rolloutTarget(&c); lowered == e.Decrease && !found {
		e.Targets[of] = d.Desired[of].Recommendation.Size
	}
	if _, _, lent := d.State.LoanSizes(pod.UID, c.Name); lent { // a loan is for one pod
		limit = min(limit, d.Desired[of].Recommendation.Size.Limit)
	}
	if own.Limit > 0 && limit > own.Limit {
		d.State.raise(of, limit, d.Now)
	}
}

// needsQuota reports whether a resize of a pod would use more of a quota. A resize adds no limit to a container that
// has none.
func (d *decider) needsQuota(pod *Pod) bool {
	return slices.ContainsFunc(pod.Containers, func(c Container) bool {
		to, differs := d.target(pod, c)
		_, needed := d.sharedNeed(pod, c)
		return needed || differs && (c.Spec.Limit > 0 && to.Limit > c.Spec.Limit || to.Request > c.Spec.Request)
	})
}

// allLimits reports whether sizes include every higher limit that the pod should get.
func (d *decider) allLimits(pod *Pod, sizes map[string]memory.Size) bool {
	return !slices.ContainsFunc(pod.Containers, func(c Container) bool {
		to, differs := d.target(pod, c)
		return differs && c.Spec.Limit > 0 && sizes[c.Name].Limit < to.Limit
	})
}

// recommended returns the summaries of the recommendations for some containers of a pod.
func (d *decider) recommended(pod *Pod, containers map[string]memory.Size) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(containers)) {
		c, _ := pod.container(name)
		if summary := d.Desired[c.Key()].Recommendation.Summary; summary != "" {
			texts = append(texts, summary)
		}
	}
	return strings.Join(texts, "; ")
}

func (d *decider) conclude() Transition {
	if len(d.toChange) == 0 && !d.State.busy() {
		d.State.Rollout = Rollout{} // every pod has the size and was watched
	}
	out := Transition{State: d.State, Actions: d.actions, RestartBlocked: d.restartHeld}
	out.UpToDate, out.Reason, out.Message = d.condition() // also calls requeueIn
	pending, _ := d.describeWaiting()
	out.RollsBack = pending != "" || d.Policy.KeepRunningPods && d.Conflict == "" &&
		(len(d.toChange) > 0 || d.State.resizing())
	// for ReasonWaitingForWindow, windowClosed has called requeueIn: the window may open in days
	if d.State.underWay() || d.reason != "" && d.reason != v1alpha1.ReasonWaitingForWindow {
		d.requeueIn(recheckAfter)
	}
	out.RequeueAfter = d.requeueAfter
	return out
}

func (d *decider) needsChange(pod *Pod) bool {
	return slices.ContainsFunc(pod.Containers, func(c Container) bool { _, differs := d.target(pod, c); return differs })
}
