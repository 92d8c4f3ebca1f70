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
	Rollout    Rollout    `json:"rollout,omitzero"`    // the current change; zero: none
	Steps      []Step     `json:"steps,omitempty"`     // pods being changed or watched, oldest first, at most maxSteps
	LastChange time.Time  `json:"lastChange,omitzero"` // when a pod was last changed
	Lowerings  []Lowering `json:"lowerings,omitempty"` // at most maxLowerings
	Reverts    []Revert   `json:"reverts,omitempty"`   // of the last week, one per container and program
	Refusals   []Refusal  `json:"refusals,omitempty"`  // until they expire, at most maxRefusals
	// Restart is a step without sizes: a pod is evicted for a new one of the same size, which is not ready yet. Nil: none.
	Restart *Step `json:"restart,omitempty"`
	// PastRestarts are the restarted pods of the last week, oldest first, at most maxRestarts.
	PastRestarts      []PastRestart `json:"pastRestarts,omitempty"`
	ConflictingWriter *conflict     `json:"conflictingWriter,omitempty"`
	Changes           []Change      `json:"changes,omitempty"` // oldest first, at most maxChanges
	// Spent is the use of the cluster's change budget within the last hour, at most maxSpent. It is stored before an
	// action is sent, so that the action is counted once, also across a restart of memfit.
	Spent []Spent `json:"spent,omitempty"`
	// Loans are higher limits of single containers (sizing.rescue), oldest first: the current loans, and those that ended
	// within the last hour. [rescue.Decide] allows at most rescue.MaxWorkloadLoans, of 300 bytes each.
	Loans []rescue.Loan `json:"loans,omitempty"`
}

// Rollout is one change of a workload's pods to one set of sizes.
type Rollout struct {
	Began time.Time `json:"began"`
	// Previous is State.LastChange before the rollout. It is restored if the rollout changes no pod.
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
	// Why is the summary of the recommendation when the step began, at most maxText.
	Why string `json:"why,omitempty"`
	// The maps have the container names as keys.
	Programs map[string]string      `json:"programs,omitempty"`
	From     map[string]memory.Size `json:"from"` // the previous sizes
	To       map[string]memory.Size `json:"to"`   // the new sizes
	// Served is true if the pod was ready when its change began.
	Served bool `json:"served,omitempty"`

	Phase   Phase         `json:"phase"`
	Request request       `json:"request,omitzero"` // in Resizing and Deferred
	Present present       `json:"present,omitzero"` // in Evicting and AwaitingSuccessor: pods that cannot be the successor
	Watch   watch         `json:"watch,omitzero"`   // in Watching
	Held    RestartDemand `json:"held,omitzero"`    // of a restart
}

// request is the last sent resize. An ineffective resize is sent again with a slightly different limit.
type request struct {
	At time.Time `json:"at,omitzero"`
	// Spec holds the sizes in the pod's spec before the request, if they differ from Step.From.
	Spec      map[string]memory.Size `json:"spec,omitempty"`
	Instances int32                  `json:"lives,omitempty"` // [Pod.instances] at the request
	Tries     int                    `json:"tries,omitempty"` // the number of earlier requests
}

// Phase is the progress of the change of a pod.
type Phase string

// The phases.
const (
	// Resizing: To is not effective yet. The step is stored before the request is sent, so only the pod's spec shows
	// whether it was sent.
	Resizing Phase = "Resizing"
	// Deferred: the node lacks free memory for To, maybe for days. Changes of other pods do not wait.
	Deferred Phase = "Deferred"
	Undoing  Phase = "Undoing"  // the resize was ineffective, and From is written again
	Evicting Phase = "Evicting" // the pod still exists and must be evicted
	// AwaitingSuccessor: the pod is gone. Its successor replaces it in the step when the successor is ready.
	AwaitingSuccessor Phase = "AwaitingSuccessor"
	Watching          Phase = "Watching" // the pod runs with To
)

// watch is the observation of a pod with a lower limit.
type watch struct {
	Since time.Time `json:"since"` // when the new size was seen to be effective
	// Restarts holds the restart count of each container at Since or, if later, when it last ended with exit code 0.
	Restarts map[string]int32 `json:"counts,omitempty"`
	Unready  time.Time        `json:"unready,omitzero"`  // when the pod became unready; zero: it is ready
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

// Refusal is a refused change of a pod, which is not retried before Until.
type Refusal struct {
	Pod   string    `json:"pod"`
	UID   types.UID `json:"uid"`
	Until time.Time `json:"until"`
	// Sizes holds the refused sizes by container. The refusal does not apply to other sizes.
	Sizes     map[string]memory.Size `json:"sizes,omitempty"`
	Evict     bool                   `json:"evict,omitempty"`     // an eviction was refused, not a resize
	All       bool                   `json:"all,omitempty"`       // the refusal applies to all pods of the workload
	OnlyLower bool                   `json:"onlyLower,omitempty"` // the refusal does not apply to a higher limit
	Reason    string                 `json:"reason"`
	Why       string                 `json:"why"`
}

// conflict is a conflict with another writer. Before Until, memfit changes nothing except rollbacks.
type conflict struct {
	Until time.Time `json:"until"`
	Why   string    `json:"why"`
}

const (
	// RevertHold is how long a rolled back size is not tried again: a week includes the weekly rhythm.
	RevertHold = 7 * period.Day
	// How long memfit waits after a refusal, in real time.
	refusalHold = time.Hour        // by the API server or the kubelet
	rightHold   = 10 * time.Minute // for a missing right, which a user may grant soon
	budgetHold  = time.Minute      // by a PodDisruptionBudget
	// conflictHold is how long memfit stops after another writer resized the same pods.
	conflictHold = period.Day
	// unsizedHold is how long memfit evicts no pod for a lower limit after a new pod did not get it.
	unsizedHold = period.Day
	// These numbers of pods bound the state: each takes 200 bytes, and up to maxText for a reason. At most maxHeld pods
	// are refused or deferred, and as many more that use all of their limit.
	maxHeld     = 128
	maxRefusals = 2 * maxHeld
	maxWatched  = 32 // pods being changed or watched
	maxSteps    = maxHeld + maxWatched
)

// ActiveRevert returns the rollback of a container and program within the last [RevertHold]; false: none.
func (s *State) ActiveRevert(of Key, now time.Time) (Revert, bool) {
	for _, r := range s.Reverts {
		if r.Container == of.Container && sameProgram(r.Program, of.Program) && now.Sub(r.At) < RevertHold.Duration() {
			return r, true
		}
	}
	return Revert{}, false
}

// Override replaces a recommendation during a rollback by the restored size, also for new pods. It returns a higher
// recommendation unchanged. current is the current size.
func (r Revert) Override(rec recommend.Recommendation, current memory.Size) recommend.Recommendation {
	same := rec.Size.Limit == r.Restored.Limit // only the reason is added, unless the request is raised
	if rec.Size == (memory.Size{}) || rec.Size.Limit > r.Restored.Limit || r.Restored.Limit == NoLimit ||
		same && rec.Decision == recommend.Increase {
		return rec
	}
	rec.Size = r.Restored.Max(memory.Size{Request: rec.Size.Request})
	rec.Decision = recommend.Keep
	if current.Limit < rec.Size.Limit {
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
	Why  string // why the action was refused
	All  bool   // the refusal applies to all pods of the workload
}

// OutcomeKind is a kind of outcome.
type OutcomeKind int

// The outcomes.
const (
	OutcomeUnknown OutcomeKind = iota // success, or unknown: the next decision reads the pods
	OutcomeGone                       // the pod no longer exists, or another pod has its name
	OutcomeBudget                     // a PodDisruptionBudget does not allow the action now
	OutcomeTooFew                     // not sent: maxUnavailable would be exceeded
	OutcomeRefused                    // the API server refuses the action
	OutcomeNoRight                    // the installation does not grant memfit the right
)

// Note records the outcome of an action; an action without a note was not sent. A refused action is not retried
// immediately. After an unknown outcome, the next decision repeats the action if the pods do not show it, except for a
// restart (drift.action: Restart), which then counts as done, because the pod may have been evicted.
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

// dropRestart removes a restart that was not sent, and its use of the change budget. A sent restart ends with its pod.
func (s *State) dropRestart(uid types.UID) {
	if s.Restart != nil && s.Restart.UID == uid && s.Restart.Phase != AwaitingSuccessor {
		s.refund(uid, s.Restart.At)
		s.Restart = nil
	}
}

func (s *State) underWay() bool { return s.Rollout.Targets != nil }

// begin starts a rollout, unless one in the same direction is under way. It keeps the steps that change a pod's spec.
func (s *State) begin(decrease bool, at time.Time) {
	if s.underWay() && s.Rollout.Decrease == decrease {
		return
	}
	s.Rollout = Rollout{Began: toSeconds(at), Previous: s.LastChange, Decrease: decrease, Targets: map[Key]memory.Size{}}
	s.Steps = slices.DeleteFunc(slices.Clone(s.Steps), func(st Step) bool {
		return st.Phase == Watching || st.evicts()
	})
}

// replace removes from a pod's steps the containers that are now changed to other sizes. It returns the previous sizes
// of those whose change is not effective yet. A container with the same limit is still watched.
func (s *State) replace(uid types.UID, to map[string]memory.Size) map[string]memory.Size {
	from := map[string]memory.Size{}
	kept := make([]Step, 0, len(s.Steps))
	for _, st := range s.Steps {
		if st.UID == uid {
			again := maps.Clone(to)
			for name, size := range to {
				switch old, changed := st.To[name]; {
				case changed && st.Phase != Watching:
					from[name] = st.From[name]
				case changed && old.Limit == size.Limit:
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

// end removes the rollout and its steps, except resizes that are in a pod's spec: these are followed to their end.
func (s *State) end(pods map[types.UID]*Pod) {
	s.Rollout = Rollout{}
	s.Steps = slices.DeleteFunc(slices.Clone(s.Steps), func(st Step) bool {
		pod := pods[st.UID]
		return pod == nil || st.Phase == Watching || st.evicts() || st.Phase == Resizing && !pod.has(st.To, spec)
	})
}

// busy reports whether pods are being changed or watched. A deferred resize does not count.
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

// refusal returns the refusal of a resize that applies to a pod, preferably one that applies to all pods; false: none.
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

// clone returns a copy. Fields that it shares with s are never changed in place.
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

// forget removes expired entries. A refusal also expires when an init container in it has ended: before Kubernetes
// 1.36, the API server refuses each resize that includes a running init container.
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

// Inherit copies a rollback to the program that replaces another program and needs the same memory.
func (s *State) Inherit(of Key, program string) {
	i := slices.IndexFunc(s.Reverts, func(r Revert) bool { return r.Container == of.Container && r.Program == of.Program })
	if i >= 0 && of.Program != "" {
		r := s.Reverts[i]
		r.Program = program
		s.revert(r)
	}
}

// newest returns the last n entries of a list.
func newest[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// toSeconds returns a time as it is stored: in UTC and whole seconds, so that equal states have equal bytes.
func toSeconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// UnmarshalJSON decodes a stored state. A forged state may exceed the bounds: the surplus is dropped.
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

// sized returns the containers that have an entry in sizes.
func (p *Pod) sized(sizes map[string]memory.Size) []Container {
	return slices.DeleteFunc(slices.Clone(p.Containers), func(c Container) bool {
		_, found := sizes[c.Name]
		return !found
	})
}

func (p *Pod) restarts(of map[string]memory.Size) map[string]int32 {
	all := map[string]int32{}
	for _, c := range p.sized(of) {
		all[c.Name] = c.Restarts
	}
	return all
}

// has reports whether get returns these sizes for the containers; 0 matches anything.
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
