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
	// These periods depend on kubelets and on starting programs, so they are real time.
	//
	// resizeTimeout is how long a resize may be deferred, fail or be ignored before it is undone, and the pod evicted if
	// that is allowed. The kubelet retries about every 30 s; VPA waits as long.
	resizeTimeout = 5 * time.Minute
	// successorTimeout is how long the successor of an evicted pod may take to become ready.
	successorTimeout = 10 * time.Minute
	// restartsToRollBack is the number of restarts of a watched container after which its lower limit is rolled back, even
	// without a kill. One restart may be due to the node.
	restartsToRollBack = 2
	// unreadyTimeout is how long a watched pod may be unready before its lower limit is rolled back: a probe may fail for
	// other reasons. For a pod that has just started, it is successorTimeout plus the start time of pods with the higher
	// limit, at most maxStartTime.
	unreadyTimeout = time.Minute
	maxStartTime   = time.Hour
)

// Observe compares the pods with the stored steps and returns the next state, in which changes are confirmed, given up
// or rolled back. kills are the workload's kills that a higher limit would have prevented. Call it before sizes are
// recommended, because a rollback replaces the recommendation ([State.ActiveRevert]).
func Observe(in Input, kills []memory.OOMKill) (State, []Finding) {
	o := observation{Input: in, state: in.State.clone(), pods: map[types.UID]*Pod{}, kills: kills}
	for i := range in.Pods {
		o.pods[in.Pods[i].UID] = &in.Pods[i]
	}
	o.state.forget(o.pods, in.Waiting, in.Now)
	o.recordCreated()
	o.revert()
	o.follow()
	o.followLoans() // after follow, which determines the effective resizes
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

// found adds the result of a step: the formatted text as a [Finding], pod and why as a [Change].
func (o *observation) found(kind FindingKind, st *Step, pod, why, format string, args ...any) {
	o.findings = append(o.findings, Finding{Kind: kind, Pod: st.Pod, UID: st.UID, Message: fmt.Sprintf(format, args...)})
	c := withSizes(Change{Kind: kind, At: o.Now, Pod: pod, Why: why}, st.From, st.To)
	o.state.record(c, cmp.Or(o.state.Rollout.Began, st.At))
}

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

// followStep reports whether a step has ended, and whether with success.
func (o *observation) followStep(st *Step) (done, passed bool) {
	if st.evicts() {
		return o.followEviction(st), false
	}
	pod := o.pods[st.UID]
	switch {
	case pod == nil && o.Succeeded[st.UID] && st.Phase == Watching:
		if o.unseen(st) == "" {
			o.state.prove(st)
		}
		return true, true // the pod ran to completion with the lower limit
	case pod == nil || pod.Terminating:
		return true, false
	case st.Phase == Undoing:
		return pod.has(st.From, spec), false
	case st.Phase == Watching && !pod.runs(st.Programs):
		return true, false // the image was changed, so the pod proves nothing about the watched program
	case st.Phase == Watching:
		return o.watch(st, pod)
	case pod.has(st.To, spec):
		return o.followResize(st, pod)
	case pod.has(st.From, spec), len(st.Request.Spec) > 0 && pod.has(st.Request.Spec, spec):
		st.Phase = Resizing // Decide sends the resize
		return false, false
	}
	o.recordConflict(st, pod)
	return true, false
}

// followResize updates a step whose resize is in the pod's spec, until it is effective or given up.
func (o *observation) followResize(st *Step, pod *Pod) (done, passed bool) {
	waited, since, r := o.Now.Sub(st.Request.At), format.Time(st.Request.At), pod.Resize
	if st.Phase = Resizing; r.Deferred && waited >= statusDelay {
		st.Phase = Deferred
	}
	switch {
	case pod.isEffective(st.To):
		if c, capped := pod.capped(st); capped {
			why := o.whyCapped(pod, &c, st.To[c.Name].Limit)
			o.found(NotResized, st, st.Pod, why, "%s: %s", st.describe(), why)
			return true, false
		}
		if c, found := pod.ineffective(st.To); found {
			return o.handleIneffective(st, pod, c), false
		}
		if o.doubted(st, pod) {
			return false, false
		}
		what := st.describe() // needs st.Request
		st.Phase, st.Request = Watching, request{}
		st.Watch = watch{Since: toSeconds(o.Now), Restarts: pod.restarts(st.To)}
		o.found(Resized, st, st.Pod, st.Why, "%s, effective %s after the request", what,
			format.InWords(max(waited, 0)))
		lowering := lowersAny(st.From, st.To)
		if lowering && !o.state.underWay() && !o.state.hasLoan(st.UID) {
			o.decrease(pod, st) // its rollout has ended
		}
		if o.state.Rollout.Decrease && lowering {
			return false, false
		}
		return true, !o.state.Rollout.Decrease
	case r.Infeasible:
		o.giveUp(st, v1alpha1.ReasonInfeasible, "the node cannot hold it: "+r.Message)
	case r.Failed && waited >= resizeTimeout:
		o.giveUp(st, v1alpha1.ReasonResizeFailed, "the kubelet has failed to resize it since "+since+": "+r.Message)
	case r.Deferred && waited >= resizeTimeout &&
		(o.Policy.KeepRunningPods || pod.restartsFor(st) || // such a pod is disrupted
			o.mayEvict(pod) && !pod.has(limits(st.To), actual)):
		o.giveUp(st, v1alpha1.ReasonDeferred, "the node has had too little free memory since "+since+": "+r.Message)
	case r.Deferred:
	case o.giveUpUnreached(st, pod):
	case !r.InProgress && o.ignored(st, pod):
		o.giveUp(st, v1alpha1.ReasonNotActuated, "the kubelet has not actuated it since the request at "+since)
	}
	return false, false
}

// giveUp undoes an ineffective resize, because its sizes in the pod's spec would mislead the scheduler and users.
func (o *observation) giveUp(st *Step, reason, why string) {
	st.Phase, st.Request = Undoing, request{}
	o.refuse(st, reason, why)
	o.found(NotResized, st, st.Pod, why, "%s is rolled back: %s", changes(st.From, st.To), why)
}

func (o *observation) refuse(st *Step, reason, why string) {
	o.state.refuse(Refusal{
		Pod: st.Pod, UID: st.UID, Until: o.Now.Add(refusalHold), Reason: reason, Why: why, Sizes: st.To,
	})
}

// watch reports whether the watch of a pod with a lower limit has ended, and whether with success.
func (o *observation) watch(st *Step, pod *Pod) (done, passed bool) {
	if !pod.has(limits(st.To), spec) {
		o.recordConflict(st, pod)
		return true, false
	}
	end := st.Watch.Since.Add(o.Policy.Watch)
	changing := pod.Resize.InProgress || pod.Resize.Infeasible // a deferred resize is a later one
	queried := o.QueryResult == nil || o.QueryResult.Against(o.Now) == "" && o.QueryResult.At.After(st.Watch.Since)
	over := !o.Now.Before(end) && pod.has(limits(st.To), actual) && !changing && st.Watch.Unready.IsZero() &&
		(pod.Ready || !st.Served) && queried && o.unseen(st) == ""
	if over {
		o.state.prove(st)
	}
	return over, over
}

// unseen describes a running container without readings whose limit a step lowers; empty: there is none.
func (in *Input) unseen(st *Step) string {
	for _, name := range lowered(st.From, st.To) {
		if why := in.Unmeasured[name]; why != "" {
			return why
		}
	}
	return ""
}

// recordConflict records that another writer changed a size that memfit had set. memfit stops, because the two would
// undo each other's changes.
func (o *observation) recordConflict(st *Step, pod *Pod) {
	var now []string
	for _, name := range slices.Sorted(maps.Keys(st.To)) {
		if c, found := pod.container(name); found {
			now = append(now, fmt.Sprintf("%s has limit %s, request %s", displayName(name), c.Spec.Limit, c.Spec.Request))
		}
	}
	who := "another writer"
	if pod.Writer != "" {
		who = "field manager " + pod.Writer
	}
	why := fmt.Sprintf(
		"%s changed the memory of pod %s after memfit had changed it (%s): %s", who, pod.Name, changes(st.From, st.To),
		strings.Join(now, ", "),
	)
	o.state.ConflictingWriter = &conflict{Until: toSeconds(o.Now.Add(conflictHold.Duration())), Why: why}
	o.found(ConflictingWriter, st, st.Pod, why,
		"%s. memfit only recommends until %s: let only one of the two size this workload", why,
		format.Time(o.state.ConflictingWriter.Until))
}

// followEviction updates the step of an evicted pod, until its successor is ready or successorTimeout has passed.
func (o *observation) followEviction(st *Step) (done bool) {
	if pod := o.pods[st.UID]; pod != nil && !pod.Terminating {
		st.Phase = Evicting
		return false // Decide sends the eviction
	}
	st.Phase = AwaitingSuccessor
	for i := range o.Pods {
		next := &o.Pods[i]
		_, taken := o.state.step(next.UID)
		if taken || next.Terminating || !st.Present.isNewer(next) || !next.has(limits(st.To), actual) {
			continue
		}
		switch {
		case next.Ready:
			o.found(Replaced, st, next.Name, st.Why, "Pod %s runs instead of %s: %s", next.Name, st.Pod,
				changes(st.From, st.To))
		case !o.state.Rollout.Decrease && o.killedWith(next, st.To):
			// To wait until the pod is ready would delay the higher limit that it needs.
			o.found(Replaced, st, next.Name, st.Why, "Pod %s was created instead of %s: %s; it was OOM-killed with that "+
				"size as well", next.Name, st.Pod, changes(st.From, st.To))
		default:
			continue
		}
		if !o.state.Rollout.Decrease {
			o.state.Rollout.Completed++
			return true
		}
		to := map[string]memory.Size{}
		for _, c := range next.sized(st.To) {
			to[c.Name] = c.Spec
		}
		st.Pod, st.UID, st.To, st.Served, st.Present = next.Name, next.UID, to, true, present{}
		st.Phase, st.Watch = Watching, watch{Since: toSeconds(o.Now), Restarts: next.restarts(st.To)}
		return false
	}
	if waited := o.Now.Sub(st.At); waited >= successorTimeout {
		o.found(NotResized, st, st.Pod, "no ready pod has taken its place",
			"no ready pod with %s has taken the place of %s within %s", changes(st.From, st.To), st.Pod,
			format.InWords(waited))
		o.refuseUnsized(st)
		return true
	}
	return false
}

// refuseUnsized refuses further evictions if pods were created since the eviction and all lack the new size: the
// webhook did not answer, or another policy rejected the size, and the next pod would lack it as well. For a lower
// limit, the refusal lasts longer.
func (o *observation) refuseUnsized(st *Step) {
	created := slices.DeleteFunc(slices.Clone(o.Pods), func(p Pod) bool {
		return p.Terminating || !st.Present.isNewer(&p) || !p.runs(st.Programs)
	})
	sized := func(p Pod) bool { // this pod has the size, but was not ready in time
		given, _ := p.webhookSizes(st.To)
		_, lacks := p.first(st.To, func(c Container) bool { return currentSize(c).Limit != given[c.Name].Limit })
		return !lacks
	}
	if len(created) == 0 || slices.ContainsFunc(created, sized) {
		return
	}
	lowering, hold := lowersAny(st.From, st.To), refusalHold
	if lowering {
		hold = unsizedHold.Duration()
	}
	o.state.refuse(Refusal{
		Pod: st.Pod, UID: st.UID, Until: o.Now.Add(hold), Evict: true, All: true, OnlyLower: lowering, Sizes: st.To,
		Reason: v1alpha1.ReasonWaitingForNewPods, Why: fmt.Sprintf("pod %s was evicted at %s for %s, but pod %s was created "+
			"without it: memfit's webhook did not answer, or another policy refuses the size (Event PodsNotCreated)", st.Pod,
			format.Time(st.At), changes(st.From, st.To), created[0].Name),
	})
}

func (o *observation) killedWith(pod *Pod, sizes map[string]memory.Size) bool {
	return slices.ContainsFunc(o.kills, func(k memory.OOMKill) bool {
		size, found := sizes[k.Container.Container]
		return found && k.Container.UID == pod.UID && k.Kind != memory.OOMStall && k.Requested == 0 && k.Limit >= size.Limit
	})
}

// limits returns sizes without their requests, which LimitRanges and other webhooks may change in a new pod.
func limits(sizes map[string]memory.Size) map[string]memory.Size {
	out := make(map[string]memory.Size, len(sizes))
	for name, s := range sizes {
		out[name] = memory.Size{Limit: s.Limit}
	}
	return out
}

// killedAt formats the time of a kill after a change. Clocks differ, so that the time may be before the change.
func killedAt(k memory.OOMKill, began time.Time) string {
	if !k.Time.Before(toSeconds(began)) {
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

// symptom is a sign that a pod's lower limits harm it.
type symptom struct {
	pod        *Pod
	st         *Step
	containers []string // whose limits may be the cause
	why        string   // describes the symptom
}

// findSymptom returns the first symptom of watched pods: restarts, unreadiness or a series of the owner's query.
func (o *observation) findSymptom() *symptom {
	for _, find := range []func(*Pod, *Step, []string) *symptom{o.keepsRestarting, o.notReady, o.queryHasSeries} {
		for i := range o.state.Steps {
			st := &o.state.Steps[i]
			pod := o.pods[st.UID]
			if pod == nil || st.Phase != Watching {
				continue
			}
			if names := lowered(st.From, st.To); len(names) > 0 {
				if s := find(pod, st, names); s != nil {
					return s
				}
			}
		}
	}
	return nil
}

// keepsRestarting finds a container that keeps restarting since its limit was lowered: some applications exit before
// they are OOM-killed, with an exit code other than 0.
func (o *observation) keepsRestarting(pod *Pod, st *Step, names []string) *symptom {
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
		if n := c.Restarts - before; n >= restartsToRollBack {
			return &symptom{pod, st, []string{name}, fmt.Sprintf("container %s of pod %s restarted %d times within %s with "+
				"that limit", name, pod.Name, n, format.InWords(o.Now.Sub(st.Watch.Since)))}
		}
	}
	return nil
}

// notReady finds a container that has been unready for a while, in a pod that was ready before or was created with the
// lower limit: without enough memory, it may hang, collect garbage or refuse work. The pod's readiness also depends on
// other containers. While a pod with the higher limit is unready as well, the period starts again.
func (o *observation) notReady(pod *Pod, st *Step, names []string) *symptom {
	var unready []string
	starts := pod.restartsFor(st) || st.Watch.Created
	for _, name := range names {
		if c, found := pod.container(name); found && !c.Ready {
			unready = append(unready, name)
			starts = starts || c.Started.IsZero() || c.Started.After(st.Watch.Since)
		}
	}
	if pod.Terminating || !st.Served || len(unready) == 0 {
		st.Watch.Unready = time.Time{}
		return nil
	}
	othersReady, slowest := o.withHigherLimit()
	if st.Watch.Unready.IsZero() || !othersReady {
		st.Watch.Unready = toSeconds(o.Now)
	}
	since := format.Time(st.Watch.Unready)
	most, why := unreadyTimeout, fmt.Sprintf("pod %s has not been ready since %s", pod.Name, since)
	if starts {
		most = successorTimeout + slowest
	}
	if !st.Watch.Created {
		why += ", and was ready before that limit"
	}
	if o.Now.Sub(st.Watch.Unready) < most {
		return nil
	}
	return &symptom{pod, st, unready, why}
}

// withHigherLimit reports whether all older pods with the higher limit are ready, and the shortest time that one took
// to become ready, at most maxStartTime; 0: unknown.
func (o *observation) withHigherLimit() (ready bool, took time.Duration) {
	e := &o.state.Rollout
	ready = true
	for i := range o.Pods {
		p := &o.Pods[i]
		switch {
		case p.Terminating || !p.Created.Before(e.Began) || !p.exceedsTarget(e):
		case !p.Ready:
			ready = false
		case !p.ReadyAt.IsZero():
			if start := p.ReadyAt.Sub(p.Created); took == 0 || start < took {
				took = start
			}
		}
	}
	return ready, min(max(took, 0), maxStartTime)
}

// exceedsTarget reports whether the limit of a container exceeds the target of the rollout.
func (p *Pod) exceedsTarget(e *Rollout) bool {
	return slices.ContainsFunc(p.Containers, func(c Container) bool {
		target, known := e.Targets[c.Key()]
		return known && lowers(currentSize(c).Limit, target.Limit)
	})
}

func lowersAny(from, to map[string]memory.Size) bool { return len(lowered(from, to)) > 0 }

// lowered returns the names of the containers whose limit is lowered. A pod-level limit is never lowered.
func lowered(from, to map[string]memory.Size) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if lowers(from[name].Limit, to[name].Limit) && name != WholePod {
			names = append(names, name)
		}
	}
	return names
}

func displayName(name string) string {
	if name == WholePod {
		return "the whole pod"
	}
	return "container " + name
}

// describe describes the change of a pod. If only the spec differs from To, it describes that difference.
func (st *Step) describe() string {
	return cmp.Or(changes(st.From, st.To), changes(st.Request.Spec, st.To))
}

// changes describes a change of sizes: "limit of container app 256Mi to 112Mi (request 128Mi to 90Mi)".
func changes(from, to map[string]memory.Size) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(to)) {
		f, t, of := from[name], to[name], displayName(name)
		limit := fmt.Sprintf("limit of %s %s to %s", of, f.Limit.OrNone(), t.Limit)
		request := fmt.Sprintf("%s to %s", f.Request.OrNone(), t.Request)
		switch requested := t.Request != 0 && t.Request != f.Request; {
		case t.Limit != 0 && t.Limit != f.Limit && requested:
			parts = append(parts, limit+" (request "+request+")")
		case t.Limit != 0 && t.Limit != f.Limit:
			parts = append(parts, limit)
		case requested:
			parts = append(parts, "request of "+of+" "+request)
		}
	}
	return strings.Join(parts, ", ")
}
