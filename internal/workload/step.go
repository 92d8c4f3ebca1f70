// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/shape"
)

// completeObservations sets the fields that [oom.Observe] leaves unset, because a pod's status does not contain the
// data: Runtime, HeapCap, CapFor, Measured, LastSeen and NodePressureSince.
func completeObservations(s *Snapshot, st *State, observations []oom.Observation) {
	if !slices.ContainsFunc(observations, func(o oom.Observation) bool { return len(o.Ended) > 0 }) {
		return
	}
	var annotations map[string]string
	if s.Template != nil {
		annotations = s.Template.Annotations
	}
	plan := sync.OnceValue(func() inject.Plan {
		return inject.MakePlan(inject.Input{Pod: s.Template, Profile: s.Profile, Created: true, PerRun: s.perRun()})
	})
	for i := range observations {
		o := &observations[i]
		o.Measured, o.NodePressureSince = st.measuredSince, s.Facts.NodePressureSince[o.Node]
		if in := st.instance(&o.Container); in != nil {
			o.HeapCap = in.heapCap
			if in.endedIn(o) && (!in.ended || o.Ended[len(o.Ended)-1].Index > in.restarts) {
				o.LastSeen = in.statusSeen.Time()
			}
		}
		o.CapFor = capFor(s, o)
		name := o.Container.Container
		declared := s.Profile.Container(name, annotations).Runtime.Type
		if o.Runtime = string(declared); declared == v1alpha1.RuntimeAuto {
			o.Runtime = plan().Container(name).RuntimeName()
		}
	}
}

// capFor returns [oom.Observation.CapFor] for a container that ended by itself, for example with a full heap.
func capFor(s *Snapshot, o *oom.Observation) memory.Bytes {
	i := slices.IndexFunc(s.Governed, func(pod *corev1.Pod) bool { return pod.UID == o.Container.UID })
	byItself := slices.ContainsFunc(o.Ended, func(t oom.Termination) bool { return t.ExitCode != 0 && t.ExitCode != 137 })
	if i < 0 || !byItself {
		return 0
	}
	plan := inject.OfRunning(s.Governed[i], s.Profile, nil)
	return plan.Container(o.Container.Container).StartHeapCap().For
}

// Effects are the outputs of a step. The reconciler writes the MemoryCheckpoint with the next state, then the Status,
// then the Events, then performs the Actions.
type Effects struct {
	Status v1alpha1.MemoryRecommendationStatus
	// Events report kills, stalls, changes of pods and of the recommendation. No later step returns them again.
	Events []Event
	// Actions are changes of running pods. The next state already contains them, because memfit may crash before it
	// performs them. The next step returns Actions without a recorded outcome ([rollout.State.Note]) again if still due.
	Actions []rollout.Action
	// Timing determines when the next step is due. The reconciler completes it.
	Timing Timing

	// The other fields are for metrics, except Learned.
	Kills     []memory.OOMKill       // new
	NewStalls []memory.Stall         // new
	Stalls    []memory.Stall         // all recorded
	Findings  []rollout.Finding      // outcomes of earlier changes
	Shapes    map[string]shape.Shape // by container

	Learned recommend.Priors // data from young containers, for other workloads
}

// Step makes all decisions about a workload: it processes the events since the last step, and returns the next state
// and what should change. It does not change its input and performs no I/O. Equal input gives equal output.
func Step(before *State, s *Snapshot, now time.Time) (*State, Effects) {
	next := before.Clone()
	kills, explained, stalls := next.processEvents(s, now)
	next.readHeapCaps(s.Governed)
	next.recordIdentity(s, now)
	v := decide(s, next, now)
	next.shapes, next.rollout = v.shapeCaches, v.rollout.State
	e := Effects{
		Status: v.status, Actions: v.rollout.Actions, Timing: v.timing,
		Kills: kills, NewStalls: stalls.began, Stalls: next.ledger.AllStalls(), Findings: v.findings, Shapes: v.shapes,
		Learned: v.learned,
	}
	e.Timing.Known = next.shortestHistory()
	if !before.steppedAt.IsZero() {
		v.rolledBack = nil // already reported by this process
	}
	e.Events = newEvents(s, &v, append(next.unreportedKills(before.steppedAt, kills, now), kills...), explained, stalls)
	changed, announced := changeEvents(s, next, &v)
	e.Events, next.announced = append(e.Events, changed...), announced
	next.publish(&v)
	next.programs = nil // the next step computes them again
	return next, e
}

// processEvents processes events in the required order. First it counts kills, which needs the limits and peaks of the
// killed instances. Then it drops the data of ended instances, and adds the samples last. It returns the new kills and
// stalls; explained are earlier kills with a new report of an agent.
func (st *State) processEvents(s *Snapshot, now time.Time) (kills, explained []memory.OOMKill, stalls stallChanges) {
	if st.measuredSince.IsZero() && !s.Unmeasured {
		st.measuredSince = now
	}
	st.readPrograms(s, now)
	in := &s.Events
	// Observe current pods again at the first step, because observations from before a profile governed them are missing,
	// and during a resize, because the cached pods may be newer than the observations.
	observations := slices.Clone(in.Observations)
	for _, pod := range s.Governed {
		if st.steppedAt.IsZero() || st.rollout.Changing(pod.UID) {
			observations = append(observations, oom.Observe(pod)...)
		}
	}
	completeObservations(s, st, observations)
	st.recordLimits(observations, now)
	kills = st.ledger.Update(observations, st.peak, now)
	kills = append(kills, st.ledger.UpdateCounters(in.Counters, st.peak, st.limit, now)...)
	agentKills, agentStalls := s.seenByAgents()
	ofAgents, explained := st.ledger.UpdateAgents(agentKills, st.peak, st.limit, now)
	kills, explained = mergeKills(append(kills, ofAgents...), explained)
	st.ledger.Attribute(st.ProgramOf)
	st.ledger.SetLimitsWithoutLoan(now, st.rollout.LimitWithoutLoan)
	st.watchStalls(in.Samples)
	existing := uids(s.Pods, nil)
	stalls = st.updateStalls(agentStalls, existing, now)
	st.forgetDeleted(existing, now)
	st.forgetNames(s.Governed)
	st.processEnds(observations, now)
	st.takePast(in.Past)
	st.addSamples(in.Samples, now)
	st.steppedAt = now
	st.profile, st.template, st.Source = s.Profile, cmp.Or(s.Template, st.template), cmp.Or(in.Source, st.Source)
	return kills, explained, stalls
}

// mergeKills returns the new kills with agents' accounts, and the explained kills that are not new.
func mergeKills(kills, explained []memory.OOMKill) (all, others []memory.OOMKill) {
	for _, e := range explained {
		i := slices.IndexFunc(kills, func(k memory.OOMKill) bool {
			child := func(k memory.OOMKill) bool { return k.Kind == memory.OOMChildProcess } // an agent may change other kinds
			return k.Container == e.Container && child(k) == child(e) && k.Time.Equal(e.Time) && k.AccountAt.IsZero()
		})
		if i < 0 {
			others = append(others, e)
			continue
		}
		kills[i] = e
	}
	return kills, others
}

// unreportedKills returns, at the first step of a process, the kills that an earlier process counted just before it
// ended and may not have reported.
func (st *State) unreportedKills(steppedAt time.Time, kills []memory.OOMKill, now time.Time) (all []memory.OOMKill) {
	if !steppedAt.IsZero() {
		return nil
	}
	for _, k := range st.ledger.All() {
		if !k.Seen.IsZero() && now.Sub(k.Seen) <= replayed && !slices.Contains(kills, k) {
			all = append(all, k)
		}
	}
	return all
}
