// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

const (
	// The periods are the kubelet's and those of starting programs, and so real time, as the values of a profile are.
	//
	// patience is how long a resize may be deferred, fail or go unanswered before it is rolled back, or the pod evicted
	// where that is allowed. The kubelet tries again every 30 s or so; VPA waits as long.
	patience = 5 * time.Minute
	// successorPatience is how long the successor of an evicted pod may take to become ready.
	successorPatience = 10 * time.Minute
	// storm is the number of restarts of a container within the watch that take its lower limit back although no kill was
	// seen: its node may restart once.
	storm = 2
	// unreadyPatience is how long a watched pod may be not ready before its lower limit is rolled back: a probe that
	// fails now and then is not caused by the limit. One that has just started has as long as a successor, and besides as
	// long as the pods with the higher limit took, of which an hour at most is believed: they may have been ready before.
	unreadyPatience = time.Minute
	slowestStart    = time.Hour
)

// Observe compares what pods show with what was begun: it confirms, gives up, rolls back. kills are those of the
// workload that a higher limit helps against: others are not evidence against one. It must be called before sizes
// are recommended, because what it rolls back to replaces the recommendation ([State.ActiveRevert]).
func Observe(in Input, kills []memory.OOMKill) (State, []Finding) {
	o := observation{Input: in, state: in.State.clone(), pods: map[types.UID]*Pod{}, kills: kills}
	for i := range in.Pods {
		o.pods[in.Pods[i].UID] = &in.Pods[i]
	}
	o.state.forget(o.pods, in.Now)
	o.create()
	o.revert()
	o.follow()
	o.settle() // after it is known which resizes are effective
	o.adopt()
	o.followRestart()
	if in.Policy.OnlyRecommend {
		o.state.end(o.pods)
	}
	return o.state, o.findings
}

type observation struct {
	Input
	state    State
	pods     map[types.UID]*Pod
	kills    []memory.OOMKill
	findings []Finding
}

// found notes what became of a step: the text is for an Event, and pod and why for the changes that people are shown.
func (o *observation) found(kind FindingKind, st *Step, pod, why, format string, args ...any) {
	o.findings = append(o.findings, Finding{Kind: kind, Pod: st.Pod, UID: st.UID, Message: fmt.Sprintf(format, args...)})
	c := resized(Change{Kind: kind, At: o.Now, Pod: pod, Why: why}, st.From, st.To)
	o.state.record(c, cmp.Or(o.state.Rollout.Began, st.At))
}

// follow observes each pod that is being changed or watched.
func (o *observation) follow() {
	kept := o.state.Steps[:0:0]
	for _, st := range o.state.Steps {
		done, passed := o.followStep(&st)
		if passed && o.state.underWay() {
			o.state.Rollout.Completed++
		}
		if !done {
			kept = append(kept, st)
		}
	}
	o.state.Steps = kept
	o.state.abandon()
}

// followStep reports whether there is nothing left to do about a step, and whether that was a success.
func (o *observation) followStep(st *Step) (done, passed bool) {
	if st.evicts() {
		return o.followEviction(st), false
	}
	pod := o.pods[st.UID]
	switch {
	case pod == nil && o.Succeeded[st.UID] && st.Phase == Watching:
		o.state.prove(st)
		return true, true // it ran to completion with the lower limit
	case pod == nil || pod.Leaving:
		return true, false // what is to be done to its successor is decided anew
	case st.Phase == Undoing:
		return pod.has(st.From, spec), false
	case st.Phase == Watching && !pod.runs(st.Programs):
		return true, false // its image was changed: what it bears proves nothing of what was watched
	case st.Phase == Watching:
		return o.watch(st, pod)
	case pod.has(st.To, spec):
		return o.awaited(st, pod)
	case pod.has(st.From, spec), len(st.Request.Spec) > 0 && pod.has(st.Request.Spec, spec):
		st.Phase = Resizing // written down and not done: Decide does it
		return false, false
	}
	o.foreign(st, pod)
	return true, false
}

// awaited follows a resize that the API server has accepted: the kubelet has made it effective, or it is given up.
func (o *observation) awaited(st *Step, pod *Pod) (done, passed bool) {
	waited, since, r := o.Now.Sub(st.Request.At), format.Time(st.Request.At), pod.Resize
	if st.Phase = Resizing; r.Deferred && waited >= settle {
		st.Phase = Deferred
	}
	switch {
	case pod.inForce(st.To):
		if c, capped := pod.capped(st); capped {
			why := o.whyCapped(pod, &c, st.To[c.Name].Limit)
			o.found(NotResized, st, st.Pod, why, "%s: %s", st.inWords(), why)
			return true, false
		}
		if c, held := pod.held(st.To); held {
			return o.unproven(st, pod, c), false
		}
		if o.doubted(st, pod) {
			return false, false
		}
		what := st.inWords()
		st.Phase, st.Request = Watching, request{}
		st.Watch = watch{Since: stamp(o.Now), Restarts: pod.restarts(st.To)}
		o.found(Resized, st, st.Pod, st.Why, "%s, effective %s after it was asked for", what,
			format.InWords(max(waited, 0)))
		lowering := lowersAny(st.From, st.To)
		if lowering && !o.state.underWay() && !o.state.hasLoan(st.UID) {
			o.decrease(pod, st) // its change ended while it waited
		}
		if o.state.Rollout.Decrease && lowering {
			return false, false
		}
		return true, !o.state.Rollout.Decrease
	case r.Infeasible:
		o.giveUp(st, v1alpha1.ReasonInfeasible, "the node cannot hold it: "+r.Message)
	case r.Failed && waited >= patience:
		o.giveUp(st, v1alpha1.ReasonResizeFailed, "the kubelet has failed at it since "+since+": "+r.Message)
	case r.Deferred && waited >= patience && (o.Policy.OnlyWatch || pod.restartsFor(st) ||
		o.mayEvict(pod) && !pod.has(limits(st.To), actual)): // what may restart at any time counts as not serving
		o.giveUp(st, v1alpha1.ReasonDeferred, "the node has had no room since "+since+": "+r.Message)
	case r.Deferred:
	case o.notMet(st, pod):
	case !r.InProgress && o.ignored(st, pod):
		o.giveUp(st, v1alpha1.ReasonNotActuated, "the kubelet has not actuated it since the request at "+since)
	}
	return false, false
}

// giveUp takes the resize out of the pod's spec again: a spec with more than is effective misleads the scheduler and
// users.
func (o *observation) giveUp(st *Step, reason, why string) {
	st.Phase, st.Request = Undoing, request{}
	o.refuse(st, reason, why)
	o.found(NotResized, st, st.Pod, why, "%s is rolled back: %s", changes(st.From, st.To), why)
}

// refuse notes that the sizes of a step could not be had.
func (o *observation) refuse(st *Step, reason, why string) {
	o.state.refuse(Refusal{
		Pod: st.Pod, UID: st.UID, Until: o.Now.Add(refusalHold), Reason: reason, Why: why, Sizes: st.To,
	})
}

// watch reports whether a pod has run with its lower limit for as long as it is watched.
func (o *observation) watch(st *Step, pod *Pod) (done, passed bool) {
	if !pod.has(limits(st.To), spec) {
		o.foreign(st, pod)
		return true, false
	}
	end := st.Watch.Since.Add(o.Policy.Watch)
	changing := pod.Resize.InProgress || pod.Resize.Infeasible // what is deferred is another size
	over := !o.Now.Before(end) && pod.has(limits(st.To), actual) && !changing && st.Watch.Unready.IsZero() &&
		(pod.Ready || !st.Served) && o.QueryResult.clearSince(st.Watch.Since, o.Now)
	if over {
		o.state.prove(st)
	}
	return over, over
}

// foreign notes that another writer changed what memfit had set. Two writers would undo each other without end, so
// memfit stops.
func (o *observation) foreign(st *Step, pod *Pod) {
	var now []string
	for _, name := range slices.Sorted(maps.Keys(st.To)) {
		if c, found := pod.container(name); found {
			now = append(now, fmt.Sprintf("%s has limit %s, request %s", called(name), c.Spec.Limit, c.Spec.Request))
		}
	}
	who := "another writer"
	if pod.Writer != "" {
		who = "field manager " + pod.Writer
	}
	why := fmt.Sprintf(
		"%s changed the memory of pod %s after memfit had (%s): %s", who, pod.Name, changes(st.From, st.To),
		strings.Join(now, ", "),
	)
	o.state.ConflictingWriter = &conflict{Until: stamp(o.Now.Add(foreignHold.Duration())), Why: why}
	o.found(ConflictingWriter, st, st.Pod, why, "%s. Recommend only until %s: let only one of the two size this workload",
		why, format.Time(o.state.ConflictingWriter.Until))
}

// followEviction waits for the pod to go, and for one that takes its place.
func (o *observation) followEviction(st *Step) (done bool) {
	if pod := o.pods[st.UID]; pod != nil && !pod.Leaving {
		st.Phase = Evicting
		return false // Decide asks (again) for its eviction
	}
	st.Phase = AwaitingSuccessor
	for i := range o.Pods {
		next := &o.Pods[i]
		_, taken := o.state.step(next.UID)
		if taken || next.Leaving || !st.Present.before(next) || !next.has(limits(st.To), actual) {
			continue
		}
		switch {
		case next.Ready:
			o.found(Replaced, st, next.Name, st.Why, "Pod %s runs instead of %s: %s", next.Name, st.Pod,
				changes(st.From, st.To))
		case !o.state.Rollout.Decrease && o.killedWith(next, st.To):
			// It is not going to be ready with that, and waiting for it would only put off what it needs.
			o.found(Replaced, st, next.Name, st.Why, "Pod %s was created instead of %s: %s; it was OOM-killed with that "+
				"size as well",
				next.Name, st.Pod, changes(st.From, st.To))
		default:
			continue
		}
		if !o.state.Rollout.Decrease {
			o.state.Rollout.Completed++
			return true
		}
		st.Pod, st.UID, st.To, st.Served, st.Present = next.Name, next.UID, sizesOf(next, st.To), true, present{}
		st.Phase, st.Watch = Watching, watch{Since: stamp(o.Now), Restarts: next.restarts(st.To)}
		return false
	}
	if waited := o.Now.Sub(st.At); waited >= successorPatience {
		o.found(NotResized, st, st.Pod, "no ready pod has taken its place",
			"no ready pod with %s has taken the place of %s within %s", changes(st.From, st.To), st.Pod,
			format.InWords(waited))
		return true
	}
	return false
}

// killedWith reports whether a pod was killed with the sizes that it was created with.
func (o *observation) killedWith(pod *Pod, sizes map[string]memory.Size) bool {
	return slices.ContainsFunc(o.kills, func(k memory.OOMKill) bool {
		size, asked := sizes[k.Container.Container]
		return asked && k.Container.UID == pod.UID && k.Kind != memory.OOMStall && k.Asked == 0 && k.Limit >= size.Limit
	})
}

// limits are sizes without their requests: LimitRanges and other webhooks may have a word about those of a new pod.
func limits(sizes map[string]memory.Size) map[string]memory.Size {
	out := make(map[string]memory.Size, len(sizes))
	for name, s := range sizes {
		out[name] = memory.Size{Limit: s.Limit}
	}
	return out
}

// sizesOf are the sizes a pod has, of the containers that are asked for.
func sizesOf(pod *Pod, of map[string]memory.Size) map[string]memory.Size {
	out := make(map[string]memory.Size, len(of))
	for _, c := range pod.sized(of) {
		out[c.Name] = c.Spec
	}
	return out
}

// killedAt is the time of a kill in words that do not contradict the change which it came after.
func killedAt(k memory.OOMKill, began time.Time) string {
	if !k.Time.Before(stamp(began)) {
		return format.Time(k.Time)
	}
	return fmt.Sprintf("%s by the clock of its node, which memfit saw at %s", format.Time(k.Time), format.Time(k.Seen))
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// blame is for a pod that did worse with its lower limits.
type blame struct {
	pod *Pod
	st  *Step
	// containers are those whose limits it may be; why is how it shows.
	containers []string
	why        string
}

// blames finds a watched pod that restarts, is not ready, or of which the owner's query speaks; nil: none.
func (o *observation) blames() *blame {
	for _, sign := range []func(*Pod, *Step, []string) *blame{o.restartStorm, o.notReady, o.querySpeaksAgainst} {
		for i := range o.state.Steps {
			st := &o.state.Steps[i]
			pod := o.pods[st.UID]
			if pod == nil || st.Phase != Watching {
				continue
			}
			if names := lowered(st.From, st.To); len(names) > 0 {
				if b := sign(pod, st, names); b != nil {
					return b
				}
			}
		}
	}
	return nil
}

// restartStorm looks for a container that keeps restarting since its limit was lowered. Not every application dies of
// an OOM kill: some notice and give up. One that ends with exit code 0 does not.
func (o *observation) restartStorm(pod *Pod, st *Step, names []string) *blame {
	for _, name := range names {
		c, _ := pod.container(name)
		before, known := st.Watch.Restarts[name]
		if !known || c.EndedWell && c.Restarts != before {
			counts := map[string]int32{}
			maps.Copy(counts, st.Watch.Restarts)
			counts[name] = c.Restarts
			st.Watch.Restarts = counts
			continue
		}
		if n := c.Restarts - before; n >= storm {
			return &blame{pod, st, []string{name}, fmt.Sprintf("container %s of pod %s restarted %d times within %s of it",
				name, pod.Name, n, format.InWords(o.Now.Sub(st.Watch.Since)))}
		}
	}
	return nil
}

// notReady looks for a container that has not been ready for a while, in a pod that was ready before or was created
// with the lower limit: what lacks memory may hang, collect garbage or refuse work instead of dying. Its readiness is
// asked for, because that of the pod also is its node's and other containers'. While a pod that still has the higher
// limit is not ready either, it is something else, and the time begins anew.
func (o *observation) notReady(pod *Pod, st *Step, names []string) *blame {
	var unready []string
	starts := pod.restartsFor(st) || st.Watch.Created
	for _, name := range names {
		if c, found := pod.container(name); found && !c.Ready {
			unready = append(unready, name)
			starts = starts || c.Started.IsZero() || c.Started.After(st.Watch.Since)
		}
	}
	if pod.Leaving || !st.Served || len(unready) == 0 {
		st.Watch.Unready = time.Time{}
		return nil
	}
	othersReady, slowest := o.higher()
	if st.Watch.Unready.IsZero() || !othersReady {
		st.Watch.Unready = stamp(o.Now)
	}
	since := format.Time(st.Watch.Unready)
	most, why := unreadyPatience, fmt.Sprintf("pod %s has not been ready since %s", pod.Name, since)
	if starts {
		most = successorPatience + slowest
	}
	if !st.Watch.Created {
		why += ", and was before it"
	}
	if o.Now.Sub(st.Watch.Unready) < most {
		return nil
	}
	return &blame{pod, st, unready, why}
}

// higher reports whether all older pods that still have the higher limit are ready, and how long the quickest of them
// took to become so.
func (o *observation) higher() (ready bool, took time.Duration) {
	e := &o.state.Rollout
	ready = true
	for i := range o.Pods {
		p := &o.Pods[i]
		switch {
		case p.Leaving || !p.Created.Before(e.Began) || !p.above(e):
		case !p.Ready:
			ready = false
		case !p.ReadyAt.IsZero():
			if start := p.ReadyAt.Sub(p.Created); took == 0 || start < took {
				took = start
			}
		}
	}
	return ready, min(max(took, 0), slowestStart)
}

// above reports whether a container has more than the change under way lowers it to.
func (p *Pod) above(e *Rollout) bool {
	return slices.ContainsFunc(p.Containers, func(c Container) bool {
		target, known := e.Targets[c.Key()]
		return known && lowers(have(c).Limit, target.Limit)
	})
}

func lowersAny(from, to map[string]memory.Size) bool {
	for name, s := range to {
		if lowers(from[name].Limit, s.Limit) {
			return true
		}
	}
	return false
}

// lowered are the containers whose limit is lowered, by name.
func lowered(from, to map[string]memory.Size) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if name != WholePod && lowers(from[name].Limit, to[name].Limit) {
			names = append(names, name)
		}
	}
	return names
}

// called is the name of a container, or of the pod as a whole, in messages.
func called(name string) string {
	if name == WholePod {
		return "the whole pod"
	}
	return "container " + name
}

// inWords is the change of a pod, or that of its spec where it is to have again what is effective.
func (st *Step) inWords() string {
	return cmp.Or(changes(st.From, st.To), changes(st.Request.Spec, st.To))
}

// changes describes what happens to sizes: "limit of container app 256Mi to 112Mi (request 128Mi to 90Mi)".
func changes(from, to map[string]memory.Size) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(to)) {
		f, t := from[name], to[name]
		limit := t.Limit != 0 && t.Limit != f.Limit
		request := t.Request != 0 && t.Request != f.Request
		switch {
		case limit && request:
			parts = append(parts, fmt.Sprintf("limit of %s %s to %s (request %s to %s)", called(name), none(f.Limit), t.Limit,
				none(f.Request), t.Request))
		case limit:
			parts = append(parts, fmt.Sprintf("limit of %s %s to %s", called(name), none(f.Limit), t.Limit))
		case request:
			parts = append(parts, fmt.Sprintf("request of %s %s to %s", called(name), none(f.Request), t.Request))
		}
	}
	return strings.Join(parts, ", ")
}

func none(b memory.Bytes) string {
	if b == 0 || b == NoLimit {
		return "none"
	}
	return b.String()
}
