// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/rescue"
)

// State is stored between two decisions, also across a restart of memfit. The zero value is empty.
type State struct {
	// Rollout is the change under way; zero: none. Steps are the pods that it changes or watches, oldest first, at most
	// maxSteps.
	Rollout Rollout `json:"rollout,omitzero"`
	Steps   []Step  `json:"steps,omitempty"`
	// LastChange is when a pod was last changed.
	LastChange time.Time  `json:"lastChange,omitzero"`
	Lowerings  []Lowering `json:"lowerings,omitempty"` // at most maxLowerings
	Reverts    []Revert   `json:"reverts,omitempty"`   // of the last week, one per container and program
	Refusals   []Refusal  `json:"refusals,omitempty"`  // until they end, at most maxRefusals
	// Restart is a step without sizes: a pod evicted for a new one, which is not ready yet. Nil: none.
	Restart *Step `json:"restart,omitempty"`
	// PastRestarts are the pods evicted for a new one within the last week, oldest first, at most maxRestarts.
	PastRestarts      []PastRestart `json:"pastRestarts,omitempty"`
	ConflictingWriter *conflict     `json:"conflictingWriter,omitempty"`
	Changes           []Change      `json:"changes,omitempty"` // oldest first, at most maxChanges
	// Spent is the use of the cluster's change budget within the last hour, at most maxSpent. It is stored before an
	// action, so that it is counted once, also across a restart of memfit.
	Spent []Spent `json:"spent,omitempty"`
	// Loans are higher limits of single containers (sizing.rescue), oldest first: current ones, and ended ones for an
	// hour. [rescue.Decide] gives at most rescue.MaxWorkloadLoans of 300 bytes.
	Loans []rescue.Loan `json:"loans,omitempty"`
}

// Rollout is one change of a workload's pods to one set of sizes.
type Rollout struct {
	Began time.Time `json:"began"`
	// Previous is State.LastChange before it, restored if it changes no pod.
	Previous time.Time           `json:"previous,omitzero"`
	Targets  map[Key]memory.Size `json:"targets"`
	Decrease bool                `json:"decrease,omitempty"` // a limit is lowered, so that pods are watched
	// Completed is the number of pods that were changed and, if a limit was lowered, watched for long enough.
	Completed int `json:"completed,omitempty"`
}

// Step is one pod being changed.
type Step struct {
	Pod string    `json:"pod"`
	UID types.UID `json:"uid"`
	At  time.Time `json:"at"`
	// Why is the summary of the recommendation when the step began, at most maxWords.
	Why string `json:"why,omitempty"`
	// Programs, From and To are by container: what it runs, the size before and the new one.
	Programs map[string]string      `json:"programs,omitempty"`
	From     map[string]memory.Size `json:"from"`
	To       map[string]memory.Size `json:"to"`
	// Served is true if the pod was ready when its change began.
	Served bool `json:"served,omitempty"`

	Phase   Phase   `json:"phase"`
	Request request `json:"request,omitzero"` // in Resizing and Deferred
	Present present `json:"present,omitzero"` // in Evicting and AwaitingSuccessor: none of these is the successor
	Watch   watch   `json:"watch,omitzero"`   // in Watching
	Held    Held    `json:"held,omitzero"`    // of a restart
}

// request is the last sent resize. An ineffective one is sent again with another number.
type request struct {
	At time.Time `json:"at,omitzero"`
	// Spec are the sizes in the pod's spec then, if they differ from Step.From.
	Spec      map[string]memory.Size `json:"spec,omitempty"`
	Instances int32                  `json:"lives,omitempty"` // [Pod.instances] then
	Tries     int                    `json:"tries,omitempty"` // the number of earlier requests
}

// Phase is the progress of the change of a pod.
type Phase string

// The phases.
const (
	// Resizing: To is not effective yet. The step is stored before the request is sent, so only the pod's spec shows
	// whether it was sent.
	Resizing Phase = "Resizing"
	// Deferred: To waits for memory of the node, maybe for days. Changes of other pods do not wait for that.
	Deferred Phase = "Deferred"
	Undoing  Phase = "Undoing"  // the resize was ineffective, and From is written again
	Evicting Phase = "Evicting" // the pod is to be evicted, and exists
	// AwaitingSuccessor: it is gone; its successor replaces it in the step when it is ready.
	AwaitingSuccessor Phase = "AwaitingSuccessor"
	Watching          Phase = "Watching" // the pod runs with To
)

// watch is the observation of a pod with a lower limit.
type watch struct {
	// Since is when the new size was seen effective, Restarts the count of each container then, or when it last ended
	// with exit code 0.
	Since    time.Time        `json:"since"`
	Restarts map[string]int32 `json:"counts,omitempty"`
	Unready  time.Time        `json:"unready,omitzero"`  // when the pod became not ready; zero: it is ready
	Created  bool             `json:"created,omitempty"` // the pod was created with To
}

// evicts reports whether the pod gets its size by eviction.
func (st *Step) evicts() bool { return st.Phase == Evicting || st.Phase == AwaitingSuccessor }

func (st *Step) action() Action {
	if st.Phase == Undoing {
		return Action{Pod: st.Pod, UID: st.UID, Sizes: st.From, Undo: true, Why: changes(st.To, st.From)}
	}
	return Action{Pod: st.Pod, UID: st.UID, Evict: st.evicts(), Sizes: st.To, Why: st.describe()}
}

// Revert is a lower limit that was rolled back.
type Revert struct {
	Container string      `json:"container"`
	Program   string      `json:"program,omitempty"`
	Tried     memory.Size `json:"tried"`
	Restored  memory.Size `json:"restored"`
	At        time.Time   `json:"at"`
	Why       string      `json:"why"`
}

// Refusal is a pod that could not be changed.
type Refusal struct {
	Pod   string    `json:"pod"`
	UID   types.UID `json:"uid"`
	Until time.Time `json:"until"`
	// Sizes are the refused ones, by container. The refusal does not apply to others.
	Sizes map[string]memory.Size `json:"sizes,omitempty"`
	// Evict: the eviction was refused. All: the cause is not the pod, so it applies to all pods of the workload.
	Evict bool `json:"evict,omitempty"`
	All   bool `json:"all,omitempty"`
	// OnlyLower: it does not apply to a higher limit.
	OnlyLower bool   `json:"onlyLower,omitempty"`
	Reason    string `json:"reason"`
	Why       string `json:"why"`
}

// conflict is a conflict with another writer.
type conflict struct {
	Until time.Time `json:"until"`
	Why   string    `json:"why"`
}

const (
	// RevertHold is how long a rolled back size is not tried again: a week contains the weekly rhythm.
	RevertHold = 7 * period.Day
	// refusalHold is how long memfit waits after the API server or the kubelet refused a change, rightHold after a
	// missing right, which a user may grant soon, budgetHold after a PodDisruptionBudget refused. In real time.
	refusalHold = time.Hour
	rightHold   = 10 * time.Minute
	budgetHold  = time.Minute
	// conflictHold is how long memfit stops after another writer resized the same pods, unsizedHold how long no pod is
	// evicted for a lower limit that a new pod did not get.
	conflictHold = period.Day
	unsizedHold  = period.Day
	// The numbers of pods bound the state: 200 bytes each, and maxWords for a reason. maxHeld are refused or deferred, so
	// a larger workload has as many attempts per hour; full pods have another maxHeld.
	maxHeld     = 128
	maxRefusals = 2 * maxHeld
	maxWatched  = 32
	maxSteps    = maxHeld + maxWatched
)

// ActiveRevert returns the rollback of a container and program whose restored size still holds; false: none.
func (s *State) ActiveRevert(of Key, now time.Time) (Revert, bool) {
	for _, r := range s.Reverts {
		if r.Container == of.Container && sameProgram(r.Program, of.Program) && now.Sub(r.At) < RevertHold.Duration() {
			return r, true
		}
	}
	return Revert{}, false
}

// Override returns the recommendation during a rollback: the restored size, for new pods as well. A recommendation for
// more is unchanged.
func (r Revert) Override(rec recommend.Recommendation, have memory.Size) recommend.Recommendation {
	same := rec.Size.Limit == r.Restored.Limit // then only its reason is missing, unless the request goes up
	if rec.Size == (memory.Size{}) || rec.Size.Limit > r.Restored.Limit || r.Restored.Limit == NoLimit ||
		same && rec.Decision == recommend.Increase {
		return rec
	}
	rec.Size = r.Restored.Max(memory.Size{Request: rec.Size.Request})
	rec.Decision = recommend.Keep
	if have.Limit < rec.Size.Limit {
		rec.Decision, rec.Urgent = recommend.Increase, true
	}
	why := fmt.Sprintf("a limit of %s was rolled back at %s, because %s: %s is kept until %s", r.Tried.Limit,
		format.Time(r.At), r.Why, r.Restored.Limit, format.Time(r.At.Add(RevertHold.Duration())))
	rec.Reasons = append(slices.Clone(rec.Reasons[:min(len(rec.Reasons), 15)]), why)
	rec.Summary = fmt.Sprintf("%s limit %s: %s", rec.Decision, rec.Size.Limit, why)
	return rec
}

// Outcome is the outcome of an action.
type Outcome struct {
	Kind OutcomeKind
	// Why it was refused. All: the cause is not the pod.
	Why string
	All bool
}

// OutcomeKind is a kind of outcome.
type OutcomeKind int

// The outcomes.
const (
	OutcomeUnknown OutcomeKind = iota // it succeeded, or this is unknown; the next decision reads what exists
	OutcomeGone                       // the pod no longer exists, or another has its name
	OutcomeBudget                     // a PodDisruptionBudget does not allow it now
	OutcomeTooFew                     // it was not sent, because fewer pods than the owner allows would serve
	OutcomeRefused                    // the API server refuses it
	OutcomeNoRight                    // the installation does not grant memfit the right
)

// Note records the outcome of an action; one without a note was not sent. A refused one is not retried immediately. Any
// other failure is retried by the next decision, because the action is still in the state; except for a restart
// (drift.action: Restart), where the pod may have been evicted, and which counts as done.
func (s *State) Note(a Action, o Outcome, now time.Time) {
	r := Refusal{
		Pod: a.Pod, UID: a.UID, Evict: a.Evict, All: o.All, Sizes: a.Sizes, Reason: v1alpha1.ReasonRefused, Why: o.Why,
	}
	hold := refusalHold
	switch o.Kind {
	case OutcomeUnknown:
		if a.Restart {
			s.evicted(a.UID)
		}
		return
	case OutcomeGone:
		s.drop(a)
		return
	case OutcomeBudget, OutcomeTooFew:
		r.Reason, r.All, hold = v1alpha1.ReasonDisruptionBudget, o.Kind == OutcomeBudget, budgetHold
	case OutcomeNoRight:
		r.All, hold = true, rightHold
	case OutcomeRefused:
	}
	if st, begun := s.step(a.UID); begun && st.Request.Tries == 0 && !a.Undo {
		s.refund(a.UID, st.At)
	}
	s.drop(a)
	r.Until = now.Add(hold)
	s.refuse(r)
}

func (s *State) refuse(r Refusal) {
	r.Until = toSeconds(r.Until)
	s.Refusals = slices.DeleteFunc(slices.Clone(s.Refusals), func(old Refusal) bool {
		return old.Evict == r.Evict && old.OnlyLower == r.OnlyLower && (old.UID == r.UID || old.All && r.All)
	})
	s.Refusals = newest(append(s.Refusals, r), maxRefusals)
}

func (s *State) drop(a Action) {
	if a.Restart {
		s.dropRestart(a.UID)
		return
	}
	s.Steps = slices.DeleteFunc(slices.Clone(s.Steps), func(st Step) bool {
		return st.UID == a.UID && st.Phase != Watching && maps.Equal(st.action().Sizes, a.Sizes)
	})
	s.abandon()
}

// dropRestart removes a restart that was not sent, with its use of the budget. A sent one ends with its pod.
func (s *State) dropRestart(uid types.UID) {
	if s.Restart != nil && s.Restart.UID == uid && s.Restart.Phase != AwaitingSuccessor {
		s.refund(uid, s.Restart.At)
		s.Restart = nil
	}
}

func (s *State) underWay() bool { return s.Rollout.Targets != nil }

// begin starts a rollout, unless one of its kind is under way.
func (s *State) begin(decrease bool, at time.Time) {
	if s.underWay() && s.Rollout.Decrease == decrease {
		return
	}
	s.Rollout = Rollout{Began: toSeconds(at), Previous: s.LastChange, Decrease: decrease, Targets: map[Key]memory.Size{}}
	s.Steps = slices.DeleteFunc(slices.Clone(s.Steps), func(st Step) bool { // what the kubelet was asked for is followed
		return st.Phase == Watching || st.evicts()
	})
}

// replace removes from earlier steps the containers of a pod that are changed again, and returns their sizes before
// changes that are not effective. An unchanged limit is still watched.
func (s *State) replace(uid types.UID, to map[string]memory.Size) map[string]memory.Size {
	from := map[string]memory.Size{}
	kept := make([]Step, 0, len(s.Steps))
	for _, st := range s.Steps {
		if st.UID == uid {
			again := maps.Clone(to)
			for name, size := range to {
				switch old, asked := st.To[name]; {
				case asked && st.Phase != Watching:
					from[name] = st.From[name]
				case asked && old.Limit == size.Limit:
					delete(again, name)
				}
			}
			st.From, st.To, st.Request.Spec = without(st.From, again), without(st.To, again), without(st.Request.Spec, again)
			if len(st.To) == 0 {
				continue
			}
		}
		kept = append(kept, st)
	}
	s.Steps = kept
	return from
}

// without returns the sizes of the other containers.
func without(sizes, changed map[string]memory.Size) map[string]memory.Size {
	rest := maps.Clone(sizes)
	maps.DeleteFunc(rest, func(name string, _ memory.Size) bool { _, is := changed[name]; return is })
	return rest
}

// end removes the rollout and its steps, except resizes in the spec of pods, which are followed to their end.
func (s *State) end(pods map[types.UID]*Pod) {
	s.Rollout = Rollout{}
	s.Steps = slices.DeleteFunc(slices.Clone(s.Steps), func(st Step) bool {
		pod := pods[st.UID]
		return pod == nil || st.Phase == Watching || st.evicts() || st.Phase == Resizing && !pod.has(st.To, spec)
	})
}

// busy reports whether pods are changed or watched.
func (s *State) busy() bool {
	return slices.ContainsFunc(s.Steps, func(st Step) bool { return st.Phase != Deferred })
}

// resizing reports whether a resize is not effective yet.
func (s *State) resizing() bool {
	return slices.ContainsFunc(s.Steps, func(st Step) bool { return st.Phase != Watching && !st.evicts() })
}

// abandon ends a rollout that has changed no pod and changes none now.
func (s *State) abandon() {
	changes := func(st Step) bool { return !s.Rollout.Decrease || lowersAny(st.From, st.To) }
	if s.underWay() && s.Rollout.Completed == 0 && !slices.ContainsFunc(s.Steps, changes) {
		s.LastChange, s.Rollout = s.Rollout.Previous, Rollout{}
	}
}

// refusal returns a refused resize of all pods or of this one; false: none.
func (s *State) refusal(uid types.UID) (refused Refusal, found bool) {
	for _, r := range s.Refusals {
		if !r.Evict && (r.All || r.UID == uid && !found) {
			refused, found = r, true
		}
	}
	return refused, found
}

func (s *State) step(uid types.UID) (Step, bool) {
	for _, st := range s.Steps {
		if st.UID == uid {
			return st, true
		}
	}
	return Step{}, false
}

// Changing reports whether a change of the pod is not effective yet.
func (s *State) Changing(pod types.UID) bool {
	st, begun := s.step(pod)
	return begun && st.Phase != Watching
}

// clone returns a copy that shares nothing that is changed in place.
func (s *State) clone() State {
	c := *s
	c.Rollout.Targets = maps.Clone(s.Rollout.Targets)
	c.Steps = slices.Clone(s.Steps)
	if s.Restart != nil {
		r := *s.Restart
		c.Restart = &r
	}
	c.Reverts, c.Refusals, c.Lowerings = slices.Clone(s.Reverts), slices.Clone(s.Refusals), slices.Clone(s.Lowerings)
	c.Loans = slices.Clone(s.Loans)
	return c
}

// forget removes what has expired. Before Kubernetes 1.36 an init container may not be resized, so that everything
// requested together with it is refused, until it has ended.
func (s *State) forget(pods map[types.UID]*Pod, waiting []Waiting, now time.Time) {
	s.Reverts = slices.DeleteFunc(s.Reverts, func(r Revert) bool { return now.Sub(r.At) >= RevertHold.Duration() })
	s.Refusals = slices.DeleteFunc(s.Refusals, func(r Refusal) bool {
		pod, ended := pods[r.UID], func(c Container) bool { return c.Done }
		waits := slices.ContainsFunc(waiting, func(w Waiting) bool { return w.UID == r.UID })
		return !now.Before(r.Until) || !r.All && !waits && (pod == nil || slices.ContainsFunc(pod.sized(r.Sizes), ended))
	})
	s.PastRestarts = restartsOf(RevertHold, s.PastRestarts, now)
	if s.ConflictingWriter != nil && !now.Before(s.ConflictingWriter.Until) {
		s.ConflictingWriter = nil
	}
}

func (s *State) revert(r Revert) {
	s.Reverts = slices.DeleteFunc(slices.Clone(s.Reverts), func(old Revert) bool {
		return old.Container == r.Container && old.Program == r.Program
	})
	s.Reverts = newest(append(s.Reverts, r), maxLowerings)
}

// Inherit copies a rollback to a program that replaces another with the same memory.
func (s *State) Inherit(of Key, by string) {
	i := slices.IndexFunc(s.Reverts, func(r Revert) bool { return r.Container == of.Container && r.Program == of.Program })
	if i >= 0 && of.Program != "" {
		r := s.Reverts[i]
		r.Program = by
		s.revert(r)
	}
}

// newest drops the oldest entries of a list that has more than most.
func newest[T any](list []T, most int) []T { return list[max(0, len(list)-most):] }

// toSeconds returns a time as it is stored: in seconds, so that equal states are equal bytes.
func toSeconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// UnmarshalJSON reads a stored state, which a forged one may exceed: it drops the rest.
func (s *State) UnmarshalJSON(data []byte) error {
	type plain State // without this method
	var read plain
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	*s = State(read)
	s.Refusals, s.Changes = newest(s.Refusals, maxRefusals), newest(s.Changes, maxChanges)
	s.Lowerings, s.PastRestarts = newest(s.Lowerings, maxLowerings), newest(s.PastRestarts, maxRestarts)
	s.Spent, s.Steps = compacted(s.Spent), newest(s.Steps, maxSteps)
	if !s.underWay() {
		s.Rollout = Rollout{}
	}
	return nil
}

func (p *Pod) container(name string) (Container, bool) {
	if name == WholePod && p.Whole != nil {
		return Container{Name: WholePod, Spec: p.Whole.Spec, Actual: p.Whole.Actual}, true
	}
	for _, c := range p.Containers {
		if c.Name == name {
			return c, true
		}
	}
	return Container{}, false
}

// sized returns the containers that get a size.
func (p *Pod) sized(sizes map[string]memory.Size) []Container {
	return slices.DeleteFunc(slices.Clone(p.Containers), func(c Container) bool {
		_, asked := sizes[c.Name]
		return !asked
	})
}

func (p *Pod) restarts(of map[string]memory.Size) map[string]int32 {
	all := map[string]int32{}
	for _, c := range p.sized(of) {
		all[c.Name] = c.Restarts
	}
	return all
}

// has reports whether the containers have the sizes, as get reads them; 0 matches anything.
func (p *Pod) has(sizes map[string]memory.Size, get func(Container) memory.Size) bool {
	for name, want := range sizes {
		c, found := p.container(name)
		if !found {
			continue
		}
		have := get(c)
		if want.Limit != 0 && have.Limit != want.Limit || want.Request != 0 && have.Request != want.Request {
			return false
		}
	}
	return true
}

func spec(c Container) memory.Size   { return c.Spec }
func actual(c Container) memory.Size { return c.Actual }

// lowers reports whether a limit is lowered; 0 means unlimited.
func lowers(from, to memory.Bytes) bool { return to > 0 && (from == 0 || to < from) }
