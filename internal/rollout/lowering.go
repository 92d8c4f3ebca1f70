// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
)

// Lowering is a limit that memfit lowered for one container of one program, by resize, by eviction or at creation. It
// remains stored after all pods have the lower limit, because a kill at a limit below From restores From.
type Lowering struct {
	Container string      `json:"container"`
	Program   string      `json:"program,omitempty"`
	From      memory.Size `json:"from"`             // the size before the lowering
	To        memory.Size `json:"to"`               // the lower size
	At        time.Time   `json:"at"`               // when the first pod got the lower size
	Proven    bool        `json:"proven,omitempty"` // a pod was watched with To, or Least, for long enough
	// Least is the limit above To that pods get since LeastAt, because they need more; 0: they get To. Pods from before
	// LeastAt may still have To, but only Least can be proven.
	Least   memory.Bytes `json:"least,omitempty"`
	LeastAt time.Time    `json:"leastAt,omitzero"`
}

// least returns the limit that pods get by the lowering now.
func (l *Lowering) least() memory.Bytes { return max(l.To.Limit, l.Least) }

// explains reports whether the lowering may be the reason for the limit of a pod's container.
func (l *Lowering) explains(pod *Pod, c *Container) bool {
	limit := c.Actual.Limit
	return l.of(c.Name, c.Program) && (l.least() <= limit || l.To.Limit <= limit && pod.Created.Before(l.LeastAt))
}

// maxLowerings bounds the lowerings in the state, of 200 bytes each. The oldest are dropped.
const maxLowerings = 32

// of reports whether the lowering is for a container and program. An unknown program matches any program.
func (l *Lowering) of(container, program string) bool {
	return l.Container == container && sameProgram(l.Program, program)
}

func sameProgram(a, b string) bool { return a == "" || b == "" || a == b }

// Proven returns the lowest proven size of a container and program: a pod was watched with its limit; zero: none.
func (s *State) Proven(container, program string) (least memory.Size) {
	if l, found := s.lowest(container, program, true); found {
		least = memory.Size{Request: l.To.Request, Limit: l.least()}
	}
	return least
}

// lowest returns the lowering of a container and program to the lowest limit; false: none.
func (s *State) lowest(container, program string, onlyProven bool) (least Lowering, found bool) {
	for _, l := range s.Lowerings {
		if l.of(container, program) && (l.Proven || !onlyProven) && (!found || l.least() < least.least()) {
			least, found = l, true
		}
	}
	return least, found
}

// lower records that a pod gets a lower limit. It extends an unproven lowering, or one to the same or a lower limit.
func (s *State) lower(l Lowering) {
	s.Lowerings = slices.Clone(s.Lowerings)
	for i := range s.Lowerings {
		if old := &s.Lowerings[i]; old.of(l.Container, l.Program) && (!old.Proven || old.least() <= l.To.Limit) {
			old.From = old.From.Max(l.From)
			if !old.Proven && old.least() != l.To.Limit { // no pod is watched with the earlier limit
				old.To.Limit, old.At = l.To.Limit, later(old.At, toSeconds(l.At))
				old.Least, old.LeastAt = 0, time.Time{}
			}
			return
		}
	}
	l.At = toSeconds(l.At)
	s.Lowerings = newest(append(s.Lowerings, l), maxLowerings)
}

// unproven returns the unproven lowering to which the limit in a container's spec belongs; false: none.
func (s *State) unproven(c Container) (Lowering, bool) {
	for _, l := range s.Lowerings {
		notRaised := c.Spec.Limit <= c.Owner.Limit && l.least() > c.Owner.Limit // it has the owner's limit
		if !l.Proven && l.of(c.Name, c.Program) && c.Spec.Limit > 0 && c.Spec.Limit <= l.least() && !notRaised {
			return l, true
		}
	}
	return Lowering{}, false
}

// reversesRaise reports whether a change only reverses memfit's own raise: a loan that ended, or too high a guess.
func (d *decider) reversesRaise(ch *change) bool {
	return ch.kind&lowerings != 0 && (d.returnsLoan(ch) ||
		d.State.ReversesGuess(ch.c.Key(), ch.Recommendation.Guess, ch.c.Owner.Limit, ch.to.Limit))
}

// ReversesGuess reports whether a lower limit reverses a guess: each guess once, and not below the owner's limit.
func (s *State) ReversesGuess(of Key, guess *recommend.Raise, owner, limit memory.Bytes) bool {
	return guess != nil && limit >= max(guess.From, owner) && !slices.ContainsFunc(s.Lowerings, func(l Lowering) bool {
		return l.of(of.Container, of.Program) && l.At.After(guess.At) && l.least() > limit
	})
}

func (p *Pod) programs(of map[string]memory.Size) map[string]string {
	all := map[string]string{}
	for _, c := range p.sized(of) {
		if c.Program != "" {
			all[c.Name] = c.Program
		}
	}
	return all
}

// runs reports whether the containers run these programs. An unknown program matches any program.
func (p *Pod) runs(programs map[string]string) bool {
	return !slices.ContainsFunc(p.Containers, func(c Container) bool { return !sameProgram(c.Program, programs[c.Name]) })
}

// canary reports whether a step gives its pod an unproven lower limit. The return of a loan does not count.
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

// prove records that a pod ran with the lower limits of a step.
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

// raise records that pods get a higher limit again: lower limits do not count as proven any more.
func (s *State) raise(of Key, to memory.Bytes, at time.Time) {
	s.Lowerings = slices.DeleteFunc(slices.Clone(s.Lowerings), func(l Lowering) bool {
		return l.of(of.Container, of.Program) && to >= l.From.Limit
	})
	for i := range s.Lowerings {
		if l := &s.Lowerings[i]; l.of(of.Container, of.Program) && to > l.least() {
			l.Least, l.LeastAt = to, toSeconds(at)
		}
	}
}

// ForgetLowerings drops the lowerings of a container and program. They prove nothing if the owner has set other sizes,
// or if the program has become unknown.
func (s *State) ForgetLowerings(of Key) {
	s.Lowerings = slices.DeleteFunc(slices.Clone(s.Lowerings), func(l Lowering) bool {
		return l.of(of.Container, of.Program)
	})
}

// recordCreated records the lowerings of pods that were created with less than their owner's limit, or less than other
// pods had. Pods that still have a rolled back limit do not count.
func (o *observation) recordCreated() {
	for i := range o.Pods {
		pod := &o.Pods[i]
		for _, c := range pod.Containers {
			willRaise := c.ImageChanged && !o.Policy.KeepRunningPods
			if c.Done || willRaise || !o.state.unexplained(pod, c) || c.Actual.Limit != c.Spec.Limit ||
				c.Spec.Limit == c.Owner.Limit {
				continue
			}
			if r, active := o.state.ActiveRevert(c.Key(), o.Now); active && c.Actual.Limit < r.Restored.Limit {
				continue
			}
			o.state.lower(Lowering{
				Container: c.Name, Program: c.Program, From: c.originalSize().Max(c.Spec), To: c.Spec, At: pod.Created,
			})
		}
	}
}

// originalSize returns the size that the container would have if memfit had not lowered its limit.
func (c *Container) originalSize() memory.Size { return c.Owner.Max(memory.Size{Limit: c.PreviousMax}) }

// sizedForAnother reports whether a container got its unproven lower limit for another program, before its image was
// changed in the running pod.
func (d *decider) sizedForAnother(pod *Pod, c Container) bool {
	return c.ImageChanged && c.originalSize().Limit < NoLimit && d.State.Proven(c.Name, c.Program).Limit == 0 &&
		d.State.unexplained(pod, c)
}

// unexplained reports whether a container has a lower limit than its original limit, which was set neither by another
// writer, nor by its owner earlier, nor by a recorded lowering.
func (s *State) unexplained(pod *Pod, c Container) bool {
	original := c.originalSize().Limit
	return original > 0 && lowers(original, c.Actual.Limit) && pod.Writer == "" && !c.Outdated &&
		!slices.ContainsFunc(s.Lowerings, func(l Lowering) bool { return l.explains(pod, &c) })
}

// adopt adds steps for pods that have an unproven lower limit and no step: they were created with this limit, or a
// change of other pods removed their step.
func (o *observation) adopt() {
	if !o.state.Rollout.Decrease && o.state.busy() {
		return // wait for raises, which end soon
	}
	for i := range o.Pods {
		pod := &o.Pods[i]
		if _, begun := o.state.step(pod.UID); begun || pod.Terminating {
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
				since = o.Now // the container was resized, and the resize became effective at an unknown time
			}
			since = later(since, o.state.returnedAt(pod.UID, c.Name)) // the container had a loan until then
			st.From[c.Name], st.To[c.Name], st.At = l.From, c.Spec, toSeconds(l.At)
			st.Watch.Since = toSeconds(later(st.Watch.Since, since))
		}
		if len(st.To) > 0 {
			o.followFrom(pod, st)
		}
	}
}

// followFrom adds a step for a pod with a lower limit. It begins with the watch or, if the pod's status does not show
// the limit yet, with the resize.
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
			return // the rollback was refused
		}
		st.Phase, st.Watch, st.Request, st.Why = Resizing, watch{}, request{At: st.At}, ""
	}
	if o.decrease(pod, &st); o.state.mayBegin(pod.UID, true) {
		o.state.Steps = append(o.state.Steps, st)
	}
}

// decrease begins a rollout to the lower limits of a pod, or adds these limits to the current rollout.
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

// disproved returns the lowering of the killed container and program that a kill disproves: the limit of the kill is
// below From and not below To, which excludes pods that still have From, and pods whose limit another writer lowered
// further. Of several lowerings, it returns the last one, with the highest From of all except NoLimit: the kill
// disproves all of them, and a resize cannot remove a limit. The clock of the node may be behind.
func (o *observation) disproved() (l Lowering, pod Pod, why string) {
	for _, k := range slices.Concat(o.kills, o.state.preventedKills()) {
		explains := func(l Lowering) bool {
			return l.of(k.Container.Container, k.Program) && l.To.Limit <= k.Limit.Plus(memory.CgroupRounding)
		}
		if k.Limit == 0 || !slices.ContainsFunc(o.state.Lowerings, explains) {
			continue
		}
		var most memory.Size
		for _, old := range o.state.Lowerings {
			if !old.of(k.Container.Container, k.Program) || later(k.Time, k.Seen).Before(old.At) ||
				k.Limit >= old.From.Limit {
				continue
			}
			if old.From.Limit < NoLimit {
				most = most.Max(old.From)
			}
			if why != "" && old.From.Limit >= l.From.Limit {
				continue
			}
			l, pod = old, Pod{Name: k.Container.Pod, UID: k.Container.UID}
			l.To.Limit = max(old.To.Limit, min(k.Limit, old.least()))
			why = fmt.Sprintf("pod %s %s at that limit at %s; the change began at %s", k.Container.Pod,
				cmp.Or(harmVerbs[k.Kind], "was OOM-killed"), killedAt(k, old.At), format.Time(old.At))
		}
		if why != "" {
			l.From = l.From.Max(most)
			return l, pod, why
		}
	}
	return Lowering{}, Pod{}, ""
}

// harmVerbs describe what happened to a container at too low a limit; other kinds are OOM kills.
var harmVerbs = map[memory.OOMKind]string{
	memory.OOMStall:        "stalled",
	memory.OOMHeapAbort:    "ran out of heap",
	memory.OOMSuspected:    "was probably OOM-killed",
	memory.OOMChildProcess: "lost a child process to the OOM killer",
	notKilled:              "needed more (sizing.rescue)",
}

// permitDelay is how long the permission to create a canary may take to reach the caches of the webhooks. It usually
// takes milliseconds, but a ReplicaSet creates the successor as quickly.
const permitDelay = 2 * time.Second

// awaitsPermit reports whether an eviction must wait, because a webhook could still set the old size on the successor.
func (d *decider) awaitsPermit(st *Step) bool {
	return d.State.canary(st) && d.Now.Sub(st.At) < permitDelay
}

// canary returns the pod that has an unproven lower limit, or is getting one; false: none.
func (d *decider) canary() (uid types.UID, name string, found bool) {
	for i := range d.State.Steps {
		if st := &d.State.Steps[i]; d.State.canary(st) {
			return st.UID, st.Pod, true
		}
	}
	for i := range d.Pods {
		if pod := &d.Pods[i]; !pod.Terminating && d.State.HasCanary(d.Pods[i:i+1]) {
			return pod.UID, pod.Name, true
		}
	}
	return "", "", false
}

// LoweringByEviction returns when the eviction of a pod began whose successor is awaited and gets a lower limit.
func (s *State) LoweringByEviction() (at time.Time, awaited bool) {
	for _, st := range s.Steps {
		if st.evicts() && s.Rollout.Decrease {
			return st.At, true
		}
	}
	return time.Time{}, false
}

// HasCanary reports whether one of the pods has an unproven lower limit.
func (s *State) HasCanary(pods []Pod) bool {
	return slices.ContainsFunc(pods, func(p Pod) bool {
		return slices.ContainsFunc(p.Containers, func(c Container) bool { _, found := s.unproven(c); return found })
	})
}

// restore rolls back a lowering on every pod, and with it all lowerings from the same or a lower limit.
func (o *observation) restore(l Lowering, pod Pod, why string, killed bool) {
	o.state.Lowerings = slices.DeleteFunc(slices.Clone(o.state.Lowerings), func(other Lowering) bool {
		return other.of(l.Container, l.Program) && other.From.Limit <= l.From.Limit
	})
	r := Revert{
		Container: l.Container, Program: l.Program, Tried: l.To, Restored: l.From, At: toSeconds(o.Now), Why: why,
	}
	o.state.revert(r)
	f := o.rolledBack(&r, pod.Name, pod.UID)
	if !killed && l.From.Limit == NoLimit && !o.Policy.OnlyRecommend && o.Conflict == "" {
		f.Message += fmt.Sprintf(". A resize cannot remove the limit of a running pod; to remove it: kubectl -n %s "+
			"delete pod %s", o.Namespace, pod.Name)
	}
	o.findings = append(o.findings, f)
	from, to := map[string]memory.Size{l.Container: l.To}, map[string]memory.Size{l.Container: {Limit: l.From.Limit}}
	if l.From.Limit == NoLimit {
		to = nil
	}
	o.state.record(withSizes(Change{Kind: Reverted, At: o.Now, Pod: pod.Name, Why: why}, from, to), l.At)
}

// RolledBack returns the findings of the rollbacks since a time again, if the pods that caused them still exist: memfit
// may end after it stored a rollback and before it reported the rollback.
func RolledBack(in Input, since time.Time) (all []Finding) {
	o := observation{Input: in, state: in.State}
	for i := range in.State.Reverts {
		r := &in.State.Reverts[i]
		if r.At.Before(since) {
			continue
		}
		of := func(c Change) bool {
			_, found := c.From[r.Container]
			return found && c.Kind == Reverted && c.At.Equal(r.At)
		}
		for _, c := range in.State.Changes {
			if at := slices.IndexFunc(in.Pods, func(p Pod) bool { return of(c) && p.Name == c.Pod }); at >= 0 {
				all = append(all, o.rolledBack(r, c.Pod, in.Pods[at].UID))
				break
			}
		}
	}
	return all
}

func (o *observation) rolledBack(r *Revert, pod string, uid types.UID) Finding {
	return Finding{
		Kind: Reverted, Pod: pod, UID: uid, At: r.At, ID: r.Container + " " + r.Program,
		Message: fmt.Sprintf("Limit %s of container %s is rolled back %s, to %s, because %s. It is not lowered again "+
			"before %s", r.Tried.Limit, r.Container, o.rolledBackWhere(r.Restored.Limit), r.Restored.Limit.OrNone(), r.Why,
			format.Time(r.At.Add(RevertHold.Duration()))),
	}
}

// rolledBackWhere returns from where a limit is removed. A resize cannot remove the limit of a running pod.
func (o *observation) rolledBackWhere(to memory.Bytes) string {
	onlyRecommend := o.Policy.OnlyRecommend || o.Conflict != ""
	switch {
	case onlyRecommend && to == NoLimit:
		return "in the recommendation only"
	case to == NoLimit:
		return "from new pods"
	}
	return "from every pod that has it"
}

// revert rolls back lower limits after kills, and after a symptom of a watched pod ([observation.findSymptom]).
func (o *observation) revert() {
	for range maxLowerings { // each kill may disprove another lowering
		l, pod, why := o.disproved()
		if why == "" {
			break
		}
		o.restore(l, pod, why, true)
		for key := range o.state.Rollout.Targets {
			if o.state.Rollout.Decrease && l.of(key.Container, key.Program) {
				o.state.end(o.pods)
				break
			}
		}
	}
	if !o.state.Rollout.Decrease {
		return
	}
	s := o.findSymptom()
	if s == nil {
		return
	}
	for _, l := range slices.Clone(o.state.Lowerings) {
		tried := s.st.To[l.Container].Limit
		if l.Proven && l.least() != tried || !sameProgram(l.Program, s.st.Programs[l.Container]) ||
			!slices.Contains(s.containers, l.Container) {
			continue
		}
		l.To.Limit = tried
		o.restore(l, *s.pod, s.why, false)
	}
	o.state.end(o.pods)
}
