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

// recheckAfter is when to decide again while something is under way that sends no event, or something holds a change
// up.
const recheckAfter = 30 * time.Second

// Decide returns what to do now, given what [Observe] made of the state. Actions that were written down earlier and
// are not done yet are returned again; they are the same, and doing them twice has the effect of doing them once.
func Decide(in Input) Transition {
	d := decider{Input: in, pods: map[types.UID]*Pod{}}
	d.State = in.State.clone()
	if d.State.Spent = Recent(in.State.Spent, in.Now); in.Allowance == nil {
		d.State.Spent = nil
	}
	for i := range d.Pods {
		if pod := &d.Pods[i]; !pod.Leaving {
			d.pods[pod.UID] = pod
		}
	}
	d.takeOver()
	d.supersede()
	d.giving = d.State.Rollout.Decrease && slices.ContainsFunc(d.State.Steps, d.onTheWay)
	d.again()
	d.restart()
	d.next()
	return d.conclude()
}

type decider struct {
	Input
	// pods are those that are not leaving.
	pods    map[types.UID]*Pod
	actions []Action
	// wanting are the pods that lack what is recommended and are not being changed.
	wanting []*Pod
	// giving: a pod is on its way to a lower limit of the change under way.
	giving bool
	// waiting is how many of them are to take more of a quota. taken is what was begun and quotas do not count yet.
	waiting int
	taken   memory.Size
	// reason and message are of the first refusal.
	reason, message string
	restartHeld     string
	requeueAfter    time.Duration
}

// refused keeps the first refusal: it is the one people read.
func (d *decider) refused(reason, message string) {
	if d.reason == "" {
		d.reason, d.message = reason, message
	}
}

func (d *decider) requeueIn(t time.Duration) {
	if t > 0 && (d.requeueAfter == 0 || t < d.requeueAfter) {
		d.requeueAfter = t
	}
}

// target is the size a container of this pod should have, and whether that differs enough from what it has to be worth
// a change.
func (d *decider) target(pod *Pod, c Container) (memory.Size, bool) {
	desired, found := d.Desired[c.Key()]
	switch {
	case c.Done:
		return c.Spec, false
	case d.Policy.OnlyWatch:
		return d.owed(pod, c)
	case !found:
		return c.Spec, false
	}
	to := desired.Recommendation.Size
	if fixed, under := d.underWayTo(&c); under {
		to = fixed // numbers move a little every hour; pods of one workload should not differ for that
	}
	if c.Shared { // the pod's limit is what holds it, and a request that it has not it does not get
		if to.Limit = 0; c.Spec.Request == 0 {
			to.Request = 0
		}
	}
	// What is not recommended stays; what is set cannot be removed by a resize.
	to = memory.Size{Limit: cmp.Or(to.Limit, c.Spec.Limit), Request: cmp.Or(to.Request, c.Spec.Request)}
	now := have(c)
	if limit := (memory.Size{Limit: to.Limit, Request: now.Request}); now.Limit > 0 &&
		!recommend.Differs(now, limit, desired.Policy) {
		to.Limit = c.Spec.Limit // it is near enough: if anything, the request is to change
	}
	if to = d.keepLoans(pod, c, to); d.forAnother(pod, c) {
		to = to.Max(c.given())
	}
	// The owner's word is the last for each pod, whatever the others have.
	to, _ = desired.Policy.Bound(to, d.own(pod, c))
	if desired.Policy.DecreaseNever && now.Limit == 0 {
		to.Limit = 0 // any limit is less than none
	}
	if pod.QoS == "Guaranteed" && !pod.limited() {
		to.Request = to.Limit
	}
	if d.Now.Before(c.OwnerUntil) {
		to.Request = max(to.Request, min(c.Owner.Request, now.Request))
	}
	less := memory.Size{Limit: to.Limit, Request: min(to.Request, c.Actual.Request)}
	waits := pod.limitWaits() && less.Request > 0 && desired.Range.Within(less) == less
	if waits {
		to = less // the request is asked for again when the limit is effective
	}
	// it uses memory that the scheduler has promised to others
	overdue := c.Demand > now.Request && to.Request > now.Request
	_, needed := d.sharedNeed(pod, c)
	if c.keepsCap(to.Limit) {
		now.Limit = c.CapFor // more is of no use to its process
	}
	return to, overdue || needed || waits && to.Request < now.Request || recommend.Differs(now, to, desired.Policy)
}

// owed is what a container gets back where running pods are to keep their size: a limit that memfit lowered in place is
// memfit's doing, and no longer wanted. One that it was created with is given back when it did harm, if memfit has ever
// changed a pod of the workload. During a pause, or by a restart, only what did harm is given back.
func (d *decider) owed(pod *Pod, c Container) (memory.Size, bool) {
	back := c.Owed
	r, harmed := d.State.ActiveRevert(c.Key(), d.Now)
	if harmed && !d.State.LastChange.IsZero() && r.Restored.Limit != NoLimit {
		back = max(back, min(c.Owner.Limit, r.Restored.Limit))
	}
	_, _, lent := d.State.Lent(pod.UID, c.Name)
	if pod.Writer != "" || lent || !harmed && (c.RestartsOnResize || d.Paused != "") || c.Spec.Limit == 0 ||
		back <= c.Spec.Limit {
		return c.Spec, false
	}
	to, _ := d.Desired[c.Key()].Policy.Bound(memory.Size{Request: c.Spec.Request, Limit: back}, c.Spec)
	if pod.QoS == "Guaranteed" && !pod.limited() {
		to.Request = to.Limit
	}
	return to, to.Limit > c.Spec.Limit
}

// underWayTo is the size that a change under way gives this container: what is recommended now, or nearly, or what a
// pod is on its way to.
func (d *decider) underWayTo(c *Container) (memory.Size, bool) {
	desired := d.Desired[c.Key()]
	target, under := d.State.Rollout.Targets[c.Key()]
	return target, under && !outOfBounds(target, desired.Policy) &&
		(d.giving || !recommend.Differs(target, desired.Recommendation.Size, desired.Policy))
}

// onTheWay reports whether a pod is about to get a lower limit, or has had it for less than the time it is watched.
func (d *decider) onTheWay(st Step) bool {
	switch {
	case !lowersAny(st.From, st.To), st.Phase == Undoing, st.Phase == Deferred:
		return false
	case st.Phase == Watching:
		return d.Now.Before(st.Watch.Since.Add(d.Policy.Watch))
	}
	return true
}

// supersede ends a decrease when more is wanted instead: more than before it, or more than its target where that is
// urgent or its owner wants nothing lowered by now. Its pods need no reverting: the increase is for all of them.
func (d *decider) supersede() {
	e := &d.State.Rollout
	if !e.Decrease {
		return
	}
	for of, target := range e.Targets {
		desired, known := d.Desired[of]
		size, atOnce := desired.Recommendation.Size, desired.Recommendation.Urgent || desired.Policy.DecreaseNever
		l, lowered := d.State.lowest(of.Container, of.Program)
		if !known || !lowered || size.Limit > target.Limit && atOnce || size.Limit > l.From.Limit {
			d.State.end(d.pods)
			return
		}
	}
}

// again repeats the steps that were written down and are not done yet.
func (d *decider) again() {
	d.State.Steps = slices.DeleteFunc(d.State.Steps, func(st Step) bool {
		outdated := d.outdated(st)
		if outdated {
			d.State.unspend(st.UID, st.At)
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
		_, held := pod.held(st.To)
		switch {
		case st.Phase == Undoing:
			d.actions = append(
				d.actions, Action{Pod: st.Pod, UID: st.UID, Sizes: st.From, Undo: true, Why: changes(st.To, st.From)},
			)
		case st.Phase == Resizing && pod.has(st.To, spec) && !held:
			d.requeueIn(settle)
			d.requeueIn(pod.doubtedUntil(st.To).Sub(d.Now))
		case st.Phase == Deferred, d.gated(pod, st) >= waits: // taking back what memfit did is not beginning
			d.requeueIn(recheckAfter)
		case st.Phase == Evicting && d.awaitsPermit(st):
			d.requeueIn(permitReaches)
		case st.Phase == Evicting:
			st.Present = presentOf(d.Pods)
			d.send(st)
		case !pod.has(st.To, spec):
			st.Request.At, st.Request.Lives = stamp(d.Now), pod.lives(st.To)
			d.send(st)
		case d.resend(st, pod):
			d.send(st)
		default:
			d.requeueIn(settle)
		}
	}
}

// limitWaits reports whether another limit waits for memory of the node, although only requests take any. A request
// that must equal its limit waits with it.
func (p *Pod) limitWaits() bool {
	return p.Resize.Deferred && p.Whole == nil && p.QoS != "Guaranteed" &&
		slices.ContainsFunc(p.Containers, func(c Container) bool {
			return c.Actual.Limit > 0 && c.Spec.Limit != c.Actual.Limit
		})
}

// send asks for what a step was written down for.
func (d *decider) send(st *Step) {
	d.actions = append(
		d.actions, Action{Pod: st.Pod, UID: st.UID, Evict: st.evicts(), Sizes: st.To, Why: st.inWords()},
	)
}

// gated is what the gates make of a step that was written down.
func (d *decider) gated(pod *Pod, st *Step) (worst again) {
	for _, c := range pod.sized(st.To) {
		worst = max(worst, d.refusedAgain(d.changeOf(pod, c, st.To[c.Name], st.evicts())))
	}
	return worst
}

// next begins to change as many pods as may be changed now.
func (d *decider) next() {
	if d.Policy.OnlyWatch {
		for of, want := range d.Desired {
			if !of.Outdated { // new pods get it
				d.State.raise(of, want.Recommendation.Size.Limit, d.Now)
			}
		}
	}
	for _, pod := range d.pods {
		if d.State.Restart != nil && d.State.Restart.UID == pod.UID {
			continue
		}
		if !d.followed(pod) && d.lacks(pod) {
			d.wanting = append(d.wanting, pod)
		}
	}
	for _, st := range d.State.Steps {
		if pod := d.pods[st.UID]; pod != nil && st.Phase != Undoing {
			d.taken = d.taken.Plus(pod.more(st.To))
		}
	}
	slices.SortStableFunc(d.wanting, d.order)
	for _, pod := range d.wanting {
		if d.takesMore(pod) {
			d.waiting++
		}
	}
	for _, pod := range d.wanting {
		if d.State.roomFor(pod.UID, d.need(pod) > full) {
			d.change(pod)
		}
	}
}

// followed reports whether what was asked of a pod is followed to its end before more is: not where it waits for memory
// of the node, or lowers what is to be higher by now.
func (d *decider) followed(pod *Pod) bool {
	return slices.ContainsFunc(d.State.Steps, func(st Step) bool {
		if st.UID != pod.UID || st.Phase == Watching || st.Phase == Deferred {
			return false
		}
		higher := func(c Container) bool {
			size, asked := st.To[c.Name]
			to, differs := d.target(pod, c)
			return asked && differs && to.Limit > size.Limit && lowers(st.From[c.Name].Limit, size.Limit)
		}
		return st.Phase != Resizing || !pod.has(st.To, spec) || !slices.ContainsFunc(pod.Containers, higher)
	})
}

// roomFor reports whether the change of a pod may be begun: the number of pods that are changed or watched at a time is
// bounded. What cannot be changed now, because it was refused or waits for its node, takes a place of its own once, for
// which a pod that is full does not wait.
func (s *State) roomFor(pod types.UID, isFull bool) bool {
	changing, most := 0, maxHeld
	for i := range s.Steps {
		if s.Steps[i].Phase != Deferred {
			changing++
		}
	}
	if isFull {
		most = maxRefusals
	}
	_, begun := s.step(pod)
	_, refused := s.refusal(pod)
	switch {
	case begun: // it has a place
		return true
	case changing >= maxWatched, len(s.Steps) >= maxSteps:
		return false
	}
	return refused || len(s.Steps)+len(s.Refusals) < most
}

// order puts pods that need more first, the fullest of them before the others, and then goes by name.
func (d *decider) order(a, b *Pod) int {
	return cmp.Or(cmp.Compare(d.need(b), d.need(a)), cmp.Compare(a.Name, b.Name))
}

// need is that of the container that needs more most; 0: none does.
func (d *decider) need(pod *Pod) (most int64) {
	for _, c := range pod.Containers {
		most = max(most, d.needOf(pod, c))
	}
	return most
}

// full is the need of a pod that uses its limit.
const full = 100

// needOf is how full a container is that is to be raised, in percent of its limit; 0 when it is not. One that ended,
// and of which nothing was read since, counts as full.
func (d *decider) needOf(pod *Pod, c Container) int64 {
	limit := have(c).Limit
	if to, differs := d.target(pod, c); !differs || to.Limit <= limit || limit == 0 {
		return 0
	}
	used := c.Demand
	if used == 0 && c.Restarts > 0 {
		used = limit
	}
	return 1 + int64(used)*100/int64(limit)
}

// byNeed are the containers of a pod in the order in which they take what it and its namespace leave.
func (d *decider) byNeed(pod *Pod) []Container {
	return slices.SortedStableFunc(slices.Values(pod.Containers), func(a, b Container) int {
		return cmp.Compare(d.needOf(pod, b), d.needOf(pod, a))
	})
}

// stillAsked reports whether what was refused is what would be asked for now.
func (d *decider) stillAsked(pod *Pod, r Refusal) bool {
	sizes := map[string]memory.Size{}
	for _, c := range d.byNeed(pod) {
		size, was := r.Sizes[c.Name]
		to, differs := d.target(pod, c)
		to, _ = d.within(pod, c, to)
		ch := d.changeOf(pod, c, to, r.Evict)
		ch.sizes = sizes
		if d.allow(ch); !c.Shared {
			to = ch.to
		}
		if differs {
			sizes[c.Name] = to
		}
		if ch.to = to; was && differs && !ch.asksAgain(size) {
			return false
		}
	}
	return true
}

// outOfBounds reports whether a size breaks the owner's bounds, which may have changed since it was decided on and
// always win.
func outOfBounds(size memory.Size, p recommend.Policy) bool {
	bounded, _ := p.Bound(size, size)
	return bounded.Limit != size.Limit
}

// outdated reports whether a step that was written down and not done must not be done any more: running pods are to
// keep their sizes, or it would break a bound that the owner has set since or come after its maintenance window.
func (d *decider) outdated(st Step) bool {
	pod := d.pods[st.UID]
	if pod == nil || st.Phase == Undoing || pod.has(st.To, spec) {
		return false
	}
	for name, size := range st.To {
		if name == WholePod {
			continue // it goes with its containers
		}
		c, _ := pod.container(name)
		desired := d.Desired[c.Key()]
		if to, owed := d.target(pod, c); d.Policy.OnlyWatch && (!owed || to.Limit != size.Limit) {
			return true
		}
		if outOfBounds(size, desired.Policy) || desired.Policy.DecreaseNever && lowers(d.own(pod, c).Limit, size.Limit) {
			return true
		}
	}
	return d.gated(pod, &st) == withdrawn
}

func (d *decider) about(pod *Pod, c Container) string {
	if len(pod.Containers) == 1 {
		return "pod " + pod.Name + ": "
	}
	return "pod " + pod.Name + ", container " + c.Name + ": "
}

// begin writes a step down and asks for it.
func (d *decider) begin(pod *Pod, to map[string]memory.Size, evict bool) {
	d.spend(pod.cost(to, evict))
	if d.taken = d.taken.Plus(pod.more(to)); d.takesMore(pod) && d.allLimits(pod, to) {
		d.waiting--
	}
	from, last := map[string]memory.Size{}, map[string]memory.Size{}
	lowering, ofAll := false, evict || !d.State.underWay()
	for name, size := range to {
		c, _ := pod.container(name)
		if from[name], last[name] = have(c), c.Spec; evict && c.keepsCap(size.Limit) {
			from[name] = memory.Size{Limit: c.CapFor, Request: c.Spec.Request}
		}
		lowering = lowering || lowers(min(d.own(pod, c).Limit, pod.before(c, size).Limit), size.Limit)
		ofAll = ofAll || size.Limit != pod.effective(c).Limit
	}
	maps.Copy(from, d.State.replace(pod.UID, to))
	if maps.Equal(from, last) {
		last = nil
	}
	if ofAll { // a request alone is the pod's own
		d.State.begin(lowering, d.Now)
	}
	for name, size := range to {
		if c, _ := pod.container(name); name != WholePod && !c.Shared && !d.Policy.OnlyWatch {
			d.note(pod, c, size)
		}
	}
	d.giving = d.giving || lowering // to what note has made the target
	step := Step{
		Pod: pod.Name, UID: pod.UID, At: stamp(d.Now), Phase: Resizing, From: from, To: maps.Clone(to),
		Served: pod.serves(), Programs: pod.programs(to),
		Why:     quote.Cut(d.recommended(pod, to), maxWords),
		Request: request{At: stamp(d.Now), Spec: last, Lives: pod.lives(to)},
	}
	if evict {
		step.Phase, step.Request, step.Present = Evicting, request{}, presentOf(d.Pods)
	}
	d.State.Steps = append(d.State.Steps, step)
	d.State.LastChange = stamp(d.Now)
	if evict && d.awaitsPermit(&step) {
		d.requeueIn(permitReaches)
		return // it is written down, and sent when the webhooks know that its successor is the canary
	}
	d.send(&step)
}

// note remembers what all pods are to have of the size that a container of one gets, and from what a limit is lowered.
func (d *decider) note(pod *Pod, c Container, to memory.Size) {
	e, of, own, limit := &d.State.Rollout, c.Key(), d.own(pod, c), to.Limit
	own.Limit = min(own.Limit, pod.before(c, to).Limit)
	from := own
	switch ours := c.given(); {
	case own.Limit == 0:
		from.Limit = NoLimit
	case pod.Writer != "" && ours.Limit < own.Limit:
		from = ours // a rollback gives no pod what another writer gave this one
	}
	lowered := lowers(from.Limit, limit)
	if lowered {
		d.State.lower(Lowering{Container: c.Name, Program: c.Program, From: from, To: to, At: d.Now})
	}
	if _, under := d.underWayTo(&c); lowered == e.Decrease && !under {
		e.Targets[of] = d.Desired[of].Recommendation.Size
	}
	if _, _, lent := d.State.Lent(pod.UID, c.Name); lent { // which all pods are not to have
		limit = min(limit, d.Desired[of].Recommendation.Size.Limit)
	}
	if own.Limit > 0 && limit > own.Limit {
		d.State.raise(of, limit, d.Now)
	}
}

// takesMore reports whether a pod is to take more of a quota where it runs, in which it gets no first limit.
func (d *decider) takesMore(pod *Pod) bool {
	return slices.ContainsFunc(pod.Containers, func(c Container) bool {
		to, differs := d.target(pod, c)
		_, needed := d.sharedNeed(pod, c)
		return needed || differs && (c.Spec.Limit > 0 && to.Limit > c.Spec.Limit || to.Request > c.Spec.Request)
	})
}

// allLimits reports whether a pod gets every higher limit that it lacks.
func (d *decider) allLimits(pod *Pod, sizes map[string]memory.Size) bool {
	return !slices.ContainsFunc(pod.Containers, func(c Container) bool {
		to, differs := d.target(pod, c)
		return differs && c.Spec.Limit > 0 && sizes[c.Name].Limit < to.Limit
	})
}

// recommended is what is recommended for the containers of a pod, in words.
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

// conclude puts what was decided into words.
func (d *decider) conclude() Transition {
	if len(d.wanting) == 0 && !d.State.busy() {
		d.State.Rollout = Rollout{} // every pod has it, and has had it long enough
	}
	out := Transition{State: d.State, Actions: d.actions, RestartHeld: d.restartHeld}
	out.UpToDate, out.Reason, out.Message = d.words() // also sets when to decide again
	// What waits for a window, maybe for days, has already asked for a decision when the window opens.
	if d.State.underWay() || d.reason != "" && d.reason != v1alpha1.ReasonWaitingForWindow {
		d.requeueIn(recheckAfter)
	}
	out.RequeueAfter = d.requeueAfter
	return out
}

// lacks reports whether a pod does not have what is recommended.
func (d *decider) lacks(pod *Pod) bool {
	return slices.ContainsFunc(pod.Containers, func(c Container) bool { _, differs := d.target(pod, c); return differs })
}
