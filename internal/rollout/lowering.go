// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// Lowering is a limit that memfit lowered for one container of one program, whichever way the lower limit reached its
// pods: by resize, by eviction or at creation. It begins with one pod, and is remembered after all pods have it,
// because a kill below From restores From.
type Lowering struct {
	Container string `json:"container"`
	Program   string `json:"program,omitempty"`
	// From is the size before it, To the lower one.
	From memory.Size `json:"from"`
	To   memory.Size `json:"to"`
	// At is when the first pod got it.
	At time.Time `json:"at"`
	// Proven: a pod ran with To, or Least, for as long as it was watched.
	Proven bool `json:"proven,omitempty"`
	// Least is the limit that pods have been given instead since LeastAt, because more is needed; 0: it is To. It bounds
	// what is proven, and not what earlier pods have.
	Least   memory.Bytes `json:"least,omitempty"`
	LeastAt time.Time    `json:"leastAt,omitzero"`
}

// least is the lowest limit that pods get by it now.
func (l *Lowering) least() memory.Bytes { return max(l.To.Limit, l.Least) }

// gave reports whether a pod's container may have its limit by this lowering.
func (l *Lowering) gave(pod *Pod, c *Container) bool {
	limit := c.Actual.Limit
	return l.of(c.Name, c.Program) && (l.least() <= limit || l.To.Limit <= limit && pod.Created.Before(l.LeastAt))
}

// maxLowerings bounds the state: 200 bytes each. Beyond it the oldest is forgotten.
const maxLowerings = 32

// of reports whether the lowering is of that container and program. Evidence without a program is of any.
func (l *Lowering) of(container, program string) bool {
	return l.Container == container && sameProgram(l.Program, program)
}

func sameProgram(a, b string) bool { return a == "" || b == "" || a == b }

// Proven returns the lowest limit that a pod of that container and program was watched with; 0: none.
func (s *State) Proven(container, program string) (least memory.Size) {
	for _, l := range s.Lowerings {
		if l.Proven && l.of(container, program) && (least == memory.Size{} || l.least() < least.Limit) {
			least = memory.Size{Request: l.To.Request, Limit: l.least()}
		}
	}
	return least
}

// lowest returns the lowering of that container and program to the lowest limit; false: none.
func (s *State) lowest(container, program string) (least Lowering, found bool) {
	for _, l := range s.Lowerings {
		if l.of(container, program) && (!found || l.least() < least.least()) {
			least, found = l, true
		}
	}
	return least, found
}

// lower notes that a pod gets a lower limit. For further pods it is one lowering, as is a limit that a proof holds for.
func (s *State) lower(l Lowering) {
	s.Lowerings = slices.Clone(s.Lowerings)
	for i := range s.Lowerings {
		if old := &s.Lowerings[i]; old.of(l.Container, l.Program) && (!old.Proven || old.least() <= l.To.Limit) {
			old.From = old.From.Max(l.From)
			if !old.Proven && old.least() != l.To.Limit { // the pod with the earlier one is gone
				old.To.Limit, old.At = l.To.Limit, later(old.At, stamp(l.At))
				old.Least, old.LeastAt = 0, time.Time{}
			}
			return
		}
	}
	l.At = stamp(l.At)
	s.Lowerings = newest(append(s.Lowerings, l), maxLowerings)
}

// unproven returns the lowering that a pod's container runs under, or is about to, and that no pod has proven; false:
// none.
func (s *State) unproven(c Container) (Lowering, bool) {
	for _, l := range s.Lowerings {
		never := c.Spec.Limit <= c.Owner.Limit && l.least() > c.Owner.Limit // it has not been raised yet
		if !l.Proven && l.of(c.Name, c.Program) && c.Spec.Limit > 0 && c.Spec.Limit <= l.least() && !never {
			return l, true
		}
	}
	return Lowering{}, false
}

// takesBack reports whether a limit is lowered no further than to where it was before memfit raised it: for a loan that
// has ended, or by a guess that was more than needed.
func (d *decider) takesBack(ch *change) bool {
	return ch.kind&lowerings != 0 && (d.returnsLoan(ch) ||
		d.State.TakesBack(ch.c.Key(), ch.Recommendation.Guess, ch.c.Owner.Limit, ch.to.Limit))
}

// TakesBack reports whether a limit takes back a guess: once, and not below what the owner asks for.
func (s *State) TakesBack(of Key, guess *recommend.Raise, owner, limit memory.Bytes) bool {
	return guess != nil && limit >= max(guess.From, owner) && !slices.ContainsFunc(s.Lowerings, func(l Lowering) bool {
		return l.of(of.Container, of.Program) && l.At.After(guess.At) && l.least() > limit
	})
}

// programs are what the containers run that get a size.
func (p *Pod) programs(of map[string]memory.Size) map[string]string {
	all := map[string]string{}
	for _, c := range p.sized(of) {
		if c.Program != "" {
			all[c.Name] = c.Program
		}
	}
	return all
}

// runs reports whether the containers run these programs, as far as that is known.
func (p *Pod) runs(programs map[string]string) bool {
	return !slices.ContainsFunc(p.Containers, func(c Container) bool { return !sameProgram(c.Program, programs[c.Name]) })
}

// canary reports whether a step gives its pod a lower limit that no pod has proven. The end of a loan does not count.
func (s *State) canary(st *Step) bool {
	if !s.Rollout.Decrease || st.Phase == Deferred {
		return false
	}
	for name, to := range st.To {
		proven := s.Proven(name, st.Programs[name]).Limit
		if lowers(st.From[name].Limit, to.Limit) && (proven == 0 || to.Limit < proven) {
			return true
		}
	}
	return false
}

// prove notes that a pod bore the lower limits of a step.
func (s *State) prove(st *Step) {
	s.Lowerings = slices.Clone(s.Lowerings)
	for name, size := range st.To {
		if !lowers(st.From[name].Limit, size.Limit) {
			continue
		}
		for i := range s.Lowerings {
			if l := &s.Lowerings[i]; l.of(name, st.Programs[name]) && size.Limit <= l.least() {
				l.Proven = true
			}
		}
	}
}

// raise notes that pods get a higher limit again: what was proven below it is not proven for what the container needs
// now.
func (s *State) raise(of Key, to memory.Bytes, at time.Time) {
	s.Lowerings = slices.DeleteFunc(slices.Clone(s.Lowerings), func(l Lowering) bool {
		return l.of(of.Container, of.Program) && to >= l.From.Limit
	})
	for i := range s.Lowerings {
		if l := &s.Lowerings[i]; l.of(of.Container, of.Program) && to > l.least() {
			l.Least, l.LeastAt = to, stamp(at)
		}
	}
}

// ForgetLowerings drops the lowerings of a container and program, when its owner has set other numbers or nothing is
// known of the program any more: what a pod bore under other numbers proves nothing.
func (s *State) ForgetLowerings(of Key) {
	s.Lowerings = slices.DeleteFunc(slices.Clone(s.Lowerings), func(l Lowering) bool {
		return l.of(of.Container, of.Program)
	})
}

// create notes pods that were created with less than their owner asks for, or than memfit had given to others: the
// webhook gave it to them. What was rolled back and still runs is known already.
func (o *observation) create() {
	for i := range o.Pods {
		pod := &o.Pods[i]
		for _, c := range pod.Containers {
			again := c.Changed && !o.Policy.OnlyWatch // it is to have again what is given
			if c.Done || again || !o.state.unexplained(pod, c) || c.Actual.Limit != c.Spec.Limit ||
				c.Spec.Limit == c.Owner.Limit {
				continue
			}
			if r, active := o.state.ActiveRevert(c.Key(), o.Now); active && c.Actual.Limit < r.Restored.Limit {
				continue
			}
			o.state.lower(Lowering{
				Container: c.Name, Program: c.Program, From: c.given().Max(c.Spec), To: c.Spec, At: pod.Created,
			})
		}
	}
}

// given is what a pod of the container's program gets before one was watched with less.
func (c *Container) given() memory.Size { return c.Owner.Max(memory.Size{Limit: c.Before}) }

// forAnother reports whether a container got its lower limit for another program: its image was changed in its pod.
// Like a new pod, it has no lower limit before one of its program was watched with it.
func (d *decider) forAnother(pod *Pod, c Container) bool {
	return c.Changed && c.given().Limit < NoLimit && d.State.Proven(c.Name, c.Program).Limit == 0 &&
		d.State.unexplained(pod, c)
}

// unexplained reports whether a container has a lower limit than is given to pods of its program, which is neither
// another writer's, nor of earlier numbers of its owner, nor of a lowering.
func (s *State) unexplained(pod *Pod, c Container) bool {
	given := c.given().Limit
	return given > 0 && lowers(given, c.Actual.Limit) && pod.Writer == "" && !c.Outdated &&
		!slices.ContainsFunc(s.Lowerings, func(l Lowering) bool { return l.gave(pod, &c) })
}

// adopt takes up pods whose lower limit no pod has proven and that no step follows: they were created with it, or a
// change of other pods took the place of theirs. Those that do not run with it yet are resized still.
func (o *observation) adopt() {
	if !o.state.Rollout.Decrease && o.state.busy() {
		return // raises end soon
	}
	for i := range o.Pods {
		pod := &o.Pods[i]
		if _, begun := o.state.step(pod.UID); begun || pod.Leaving {
			continue
		}
		st := Step{Pod: pod.Name, UID: pod.UID, From: map[string]memory.Size{}, To: map[string]memory.Size{}, Served: true}
		for _, c := range pod.Containers {
			l, found := o.state.unproven(c)
			if !found || c.Done || c.Started.IsZero() {
				continue
			}
			since := later(l.At, c.Started)
			if c.Started.Before(l.At) && pod.Created.Before(l.At) {
				since = o.Now // it was resized, and when that was in force is unknown
			}
			since = later(since, o.state.returnedAt(pod.UID, c.Name)) // it had more until then
			st.From[c.Name], st.To[c.Name], st.At = l.From, c.Spec, stamp(l.At)
			st.Watch.Since = stamp(later(st.Watch.Since, since))
		}
		if len(st.To) > 0 {
			o.followFrom(pod, st)
		}
	}
}

// followFrom follows a pod with a lower limit from now on.
func (o *observation) followFrom(pod *Pod, st Step) {
	st.Phase, st.Programs = Watching, pod.programs(st.To)
	st.Watch.Restarts, st.Watch.Created = pod.restarts(st.To), true
	st.Why = "new pods are created with the recommended size"
	if !pod.has(st.To, actual) {
		for name := range st.To {
			c, _ := pod.container(name)
			st.From[name] = c.Actual
		}
		if r, refused := o.state.refusal(pod.UID); refused && maps.Equal(r.Sizes, st.From) {
			return // it cannot be taken back now
		}
		st.Phase, st.Watch, st.Request, st.Why = Resizing, watch{}, request{At: st.At}, ""
	}
	if o.decrease(pod, &st); o.state.roomFor(pod.UID, true) {
		o.state.Steps = append(o.state.Steps, st)
	}
}

// decrease makes what gives a pod its lower limits the change under way.
func (o *observation) decrease(pod *Pod, st *Step) {
	o.state.begin(true, st.At)
	e := &o.state.Rollout
	for _, name := range lowered(st.From, st.To) {
		c, _ := pod.container(name)
		if _, known := e.Targets[c.Key()]; !known {
			e.Targets[c.Key()] = st.To[name]
		}
	}
}

// killed finds the lowering that a kill disproves: one of its container and program whose old size was above the limit
// of the kill. Of several it is the last, whose old size is the least. The limit distinguishes it from a kill in a pod
// that still has the old size, and from one in a pod that another writer gave less than memfit gave any. The node's
// clock decides nothing: one that is behind by a minute puts a kill before the change that caused it.
func (o *observation) killed() (l Lowering, pod Pod, why string) {
	for _, k := range slices.Concat(o.kills, o.state.prevented()) {
		given := func(l Lowering) bool {
			return l.of(k.Container.Container, k.Program) && l.To.Limit <= k.Limit.Plus(memory.CgroupRounding)
		}
		if k.Limit == 0 || !slices.ContainsFunc(o.state.Lowerings, given) {
			continue
		}
		for _, old := range o.state.Lowerings {
			if !old.of(k.Container.Container, k.Program) || later(k.Time, k.Seen).Before(old.At) ||
				k.Limit >= old.From.Limit || why != "" && old.From.Limit >= l.From.Limit {
				continue
			}
			l, pod = old, Pod{Name: k.Container.Pod, UID: k.Container.UID}
			l.To.Limit = max(old.To.Limit, min(k.Limit, old.least()))
			why = fmt.Sprintf("pod %s %s at it at %s; the change began at %s", k.Container.Pod, suffered(k.Kind),
				killedAt(k, old.At), format.Time(old.At))
		}
		if why != "" {
			return l, pod, why
		}
	}
	return Lowering{}, Pod{}, ""
}

// suffered says what happened to a container at a limit that was too low.
func suffered(kind memory.OOMKind) string {
	switch kind {
	case memory.OOMStall:
		return "stalled"
	case memory.OOMHeapAbort:
		return "ran out of heap"
	case memory.OOMSuspected:
		return "was probably OOM killed"
	case memory.OOMChildProcess:
		return "lost a child process to the OOM killer"
	case notKilled:
		return "needed more (sizing.rescue)"
	default:
		return "was OOM killed"
	}
}

// permitReaches is how long the caches of the webhooks may take to learn that the successor of an evicted pod is to get
// a lower limit first. They take milliseconds, and so does a ReplicaSet to create it.
const permitReaches = 2 * time.Second

// awaitsPermit reports whether a pod is not evicted yet, because a webhook that does not know of it would give its
// successor the old size.
func (d *decider) awaitsPermit(st *Step) bool {
	return d.State.canary(st) && d.Now.Sub(st.At) < permitReaches
}

// canary is the pod that runs, or is about to run, under an unproven lower limit; false: none.
func (d *decider) canary() (uid types.UID, name string, found bool) {
	for i := range d.State.Steps {
		if st := &d.State.Steps[i]; d.State.canary(st) {
			return st.UID, st.Pod, true
		}
	}
	for i := range d.Pods {
		pod := &d.Pods[i]
		for _, c := range pod.Containers {
			if _, unproven := d.State.unproven(c); unproven && !pod.Leaving {
				return pod.UID, pod.Name, true
			}
		}
	}
	return "", "", false
}

// LoweringByEviction returns when a pod was evicted so that its successor gets a lower limit that no pod has proven, if
// that one is awaited.
func (s *State) LoweringByEviction() (at time.Time, awaited bool) {
	for _, st := range s.Steps {
		if st.evicts() && s.Rollout.Decrease {
			return st.At, true
		}
	}
	return time.Time{}, false
}

// HasCanary reports whether one of the pods runs under a lower limit that no pod has proven.
func (s *State) HasCanary(pods []Pod) bool {
	return slices.ContainsFunc(pods, func(p Pod) bool {
		return slices.ContainsFunc(p.Containers, func(c Container) bool { _, found := s.unproven(c); return found })
	})
}

// restore rolls a lowering back from every pod, and what was lowered further after it.
func (o *observation) restore(l Lowering, pod Pod, why string, killed bool) {
	o.state.Lowerings = slices.DeleteFunc(slices.Clone(o.state.Lowerings), func(other Lowering) bool {
		return other.of(l.Container, l.Program) && other.From.Limit <= l.From.Limit
	})
	o.state.revert(Revert{
		Container: l.Container, Program: l.Program, Tried: l.To, Restored: l.From, At: stamp(o.Now), Why: why,
	})
	until, stays := format.Time(o.Now.Add(RevertHold.Duration())), ""
	if !killed && l.From.Limit == NoLimit && !o.Policy.OnlyRecommend && o.Conflict == "" {
		stays = fmt.Sprintf(". No resize removes the limit that a pod has: kubectl -n %s delete pod %s", o.Namespace,
			pod.Name)
	}
	o.findings = append(o.findings, Finding{Kind: Reverted, Pod: pod.Name, UID: pod.UID,
		Message: fmt.Sprintf("Limit %s of container %s is rolled back %s, to %s, because %s. It is not lowered again "+
			"before %s%s", l.To.Limit, l.Container, o.rolledBackWhere(&l), none(l.From.Limit), why, until, stays)})
	from, to := map[string]memory.Size{l.Container: l.To}, map[string]memory.Size{l.Container: {Limit: l.From.Limit}}
	if l.From.Limit == NoLimit {
		to = nil
	}
	o.state.record(resized(Change{Kind: Reverted, At: o.Now, Pod: pod.Name, Why: why}, from, to), l.At)
}

// rolledBackWhere is what gets the old limit back. No resize removes a limit: a pod that runs gets a higher one.
func (o *observation) rolledBackWhere(l *Lowering) string {
	keeps := o.Policy.OnlyWatch && o.state.LastChange.IsZero() // running pods, as memfit has changed none
	switch {
	case o.Policy.OnlyRecommend && (keeps || l.From.Limit == NoLimit) || o.Conflict != "":
		return "in the recommendation only"
	case keeps || l.From.Limit == NoLimit:
		return "from new pods"
	}
	return "from every pod"
}

// revert rolls back lower limits that were followed by kills, and those of watched pods that restart, are not ready, or
// of which the owner's query speaks.
func (o *observation) revert() {
	for range maxLowerings { // each kill may speak against another container's
		l, pod, why := o.killed()
		if why == "" {
			break
		}
		o.restore(l, pod, why, true) // a kill raises the pod that runs
		o.end(l)
	}
	e := &o.state.Rollout
	if !e.Decrease {
		return
	}
	b := o.blames()
	if b == nil {
		return
	}
	for _, l := range slices.Clone(o.state.Lowerings) {
		tried := b.st.To[l.Container].Limit
		if l.Proven && l.least() != tried || !sameProgram(l.Program, b.st.Programs[l.Container]) ||
			!slices.Contains(b.containers, l.Container) {
			continue
		}
		l.To.Limit = tried
		o.restore(l, *b.pod, b.why, false)
	}
	o.state.end(o.pods)
}

// end stops the change under way that lowers what was rolled back.
func (o *observation) end(l Lowering) {
	for key := range o.state.Rollout.Targets {
		if o.state.Rollout.Decrease && l.of(key.Container, key.Program) {
			o.state.end(o.pods)
			return
		}
	}
}
