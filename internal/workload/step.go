// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/shape"
)

// complete adds to observations what a pod's status does not have: what their containers run (exit code 134 is a full
// heap in Node.js, and anything at all elsewhere), since when memory is measured (only then is a kill without a sample
// one at start), when memfit last saw them run (a node's clock may be wrong), and which nodes are short of memory.
func complete(s *Snapshot, st *State, observations []oom.Observation) {
	if !slices.ContainsFunc(observations, func(o oom.Observation) bool { return len(o.Ended) > 0 }) {
		return
	}
	var annotations map[string]string
	if s.Template != nil {
		annotations = s.Template.Annotations
	}
	plan := inject.MakePlan(inject.Input{Pod: s.Template, Profile: s.Profile, Created: true, PerRun: s.perRun()})
	for i := range observations {
		o := &observations[i]
		o.Measured, o.NodeShort = st.measuredSince, s.Facts.NodesShort[o.Node]
		if in := st.instance(&o.Container); in != nil {
			o.HeapCap = in.heapCap
			if len(o.Ended) > 0 && o.Ended[len(o.Ended)-1].Index == in.restarts {
				o.SeenRunning = in.seenRunning.Time()
			}
		}
		if declared := s.Profile.Container(
			o.Container.Container, annotations,
		).Runtime.Type; declared != v1alpha1.RuntimeAuto {
			o.Runtime = string(declared)
		} else {
			o.Runtime = plan.Container(o.Container.Container).Runs()
		}
	}
}

// Effects are what a step wants the world to know and to do, in this order: the MemoryCheckpoint with the next state,
// the MemoryRecommendation, events, and changes of pods.
type Effects struct {
	// Status is the desired one of the MemoryRecommendation.
	Status v1alpha1.MemoryRecommendationStatus
	// Events are what happened, and what the recommendation says that it did not say before. They are recorded once the
	// checkpoint is written, and no later step finds them new again.
	Events []Event
	// Actions are what is to be done to running pods. They are in the next state already, because memfit may die between
	// writing and doing. Those of which no outcome is noted ([State.Note]) were not sent: if they are still due, the next
	// step has them again.
	Actions []rollout.Action
	// Timing is when the next step is due, as far as that follows from the workload.
	Timing Timing

	// For metrics: the kills and stalls that are new, every stall on file, what became of changes begun earlier, and what
	// memory does, by container.
	Kills     []memory.OOMKill
	NewStalls []memory.Stall
	Stalls    []memory.Stall
	Findings  []rollout.Finding
	Shapes    map[string]shape.Shape

	// Learned is what others that run the same learn from its young containers.
	Learned recommend.Priors
}

// Step is everything memfit decides about a workload: what happened since the last step, what it means, and what should
// change. It changes neither its input nor the world. Equal input gives equal output.
func Step(before *State, s *Snapshot, now time.Time) (*State, Effects) {
	m := before.Clone()
	kills, explained, stalls := m.account(s, now)
	m.knowCaps(s.Governed)
	m.identify(s, now)
	v := decide(s, m, now)
	m.shapes, m.rollout = v.shapeCaches, v.rollout.State
	e := Effects{
		Status: v.status, Actions: v.rollout.Actions, Timing: v.timing,
		Kills: kills, NewStalls: stalls.began, Stalls: m.ledger.AllStalls(), Findings: v.findings, Shapes: v.shapes,
		Learned: v.learned,
	}
	e.Timing.Known = m.youngest()
	changed, announced := changes(s, m, &v)
	e.Events = append(
		news(s, &v, append(m.unreported(before.steppedAt, kills, now), kills...), explained, stalls), changed...,
	)
	m.announced = announced
	m.publish(&v)
	m.programs = nil // the next step finds them anew; the instances know theirs
	return m, e
}

// account takes in what happened, in the order in which it matters: kills are counted with the limits of their own pods
// and the peaks of the instances that ended, then these are forgotten, and samples of their successors come last.
// explained are kills that were counted before, and that an agent explains only now.
func (st *State) account(s *Snapshot, now time.Time) (kills, explained []memory.OOMKill, stalls stallChanges) {
	if st.measuredSince.IsZero() && !s.Unmeasured {
		st.measuredSince = now
	}
	st.learn(s, now)
	in := &s.Events
	// What the pods showed before anybody governed them was not kept, and they may not change for a long time. And
	// whether a resize is effective is judged by the pods as they are here, which may be newer than what was observed.
	observations := append(slices.Clone(in.Observations), s.observations(func(pod types.UID) bool {
		return st.steppedAt.IsZero() || st.rollout.Changing(pod)
	})...)
	complete(s, st, observations)
	st.noteLimits(observations, now)
	kills = st.ledger.Update(observations, st.peak, now)
	kills = append(kills, st.ledger.UpdateCounters(in.Counters, st.peak, st.limit, now)...)
	agentKills, agentStalls := s.seenByAgents()
	ofAgents, explained := st.ledger.UpdateAgents(agentKills, st.peak, st.limit, now)
	kills, explained = merged(append(kills, ofAgents...), explained)
	st.ledger.Attribute(st.ProgramOf)
	st.ledger.UsedUp(now, st.rollout.UsedUp)
	st.watchStalls(in.Samples)
	existing := s.existing()
	stalls = st.fileStalls(agentStalls, existing, now)
	st.forgetGone(existing, now)
	st.forgetNames(s.Governed)
	st.settle(observations, now)
	st.takePast(in.Past)
	st.measure(in.Samples, now)
	st.steppedAt = now
	st.profile, st.template, st.Source = s.Profile, cmp.Or(s.Template, st.template), cmp.Or(in.Source, st.Source)
	return kills, explained, stalls
}

// merged are the kills that are new, each with the account of an agent, and those of explained that are not new.
func merged(kills, explained []memory.OOMKill) (all, before []memory.OOMKill) {
	for _, e := range explained {
		i := slices.IndexFunc(kills, func(k memory.OOMKill) bool {
			return k.Container == e.Container && k.Kind == e.Kind && k.Time.Equal(e.Time) && k.AccountAt.IsZero()
		})
		if i < 0 {
			before = append(before, e)
			continue
		}
		kills[i] = e
	}
	return kills, before
}

// unreported are kills that an earlier process counted just before it ended and may not have reported, where this is
// the first step of a process.
func (st *State) unreported(steppedAt time.Time, kills []memory.OOMKill, now time.Time) (all []memory.OOMKill) {
	if !steppedAt.IsZero() {
		return nil
	}
	for _, k := range st.ledger.All() {
		if k.Seen.IsZero() || now.Sub(k.Seen) > replayed || slices.Contains(kills, k) {
			continue
		}
		all = append(all, k)
	}
	return all
}
