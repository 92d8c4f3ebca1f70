// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/rescue"
	"github.com/memfit/memfit/internal/rollout"
)

// RetainedState returns the part of the state to keep after the workload was deleted, for [Snapshot.Earlier]. The
// result shares data with st.
func (st *State) RetainedState() *State {
	return &State{
		ledger: st.ledger, containers: st.containers, rollout: st.rollout, decided: st.decided,
		measurements: st.measurements,
	}
}

// inheritFrom copies evidence from an earlier workload with the same name, for running programs with an equal owner's
// size. It does not copy changes of pods, permits and lower limits, so the first pod with a lower limit is watched
// again.
func (st *State) inheritFrom(earlier *State, run []*corev1.Pod, now time.Time) {
	if earlier == nil || len(st.containers) > 0 {
		return
	}
	from := earlier.Clone()
	foreign := func(name string, e *evidence) bool {
		return now.Sub(e.Seen) > identity.TimeToLive || !slices.ContainsFunc(run, func(pod *corev1.Pod) bool {
			p := st.programs[instanceKey{pod.UID, name}]
			return p.ID != "" && p.ID == e.Program && (p.Owner == e.Owner || !st.knowsOwner(pod, name))
		})
	}
	maps.DeleteFunc(from.containers, func(name string, all []*evidence) bool {
		all = slices.DeleteFunc(all, func(e *evidence) bool { return foreign(name, e) })
		from.containers[name] = all
		return len(all) == 0
	})
	if st.containers = from.containers; len(st.containers) == 0 {
		return
	}
	from.ledger.Keep(func(name string) bool { return st.newest(name) != nil })
	st.ledger, st.RanOn, st.Refused, st.Past = from.ledger, from.RanOn, from.Refused, from.Past
	st.Published, st.LiveSets = maps.Clone(from.Published), maps.Clone(from.LiveSets)
	maps.DeleteFunc(st.Published, func(name string, p published) bool { return st.evidenceOf(name, p.Program) == nil })
	maps.DeleteFunc(st.LiveSets, func(name string, _ history.LiveSet) bool { return st.newest(name) == nil })
	st.rollout.Reverts = slices.DeleteFunc(slices.Clone(from.rollout.Reverts), func(r rollout.Revert) bool {
		return st.evidenceOf(r.Container, r.Program) == nil
	})
	exists := map[types.UID]bool{}
	for _, pod := range run {
		exists[pod.UID] = true
	}
	st.rollout.Loans = slices.DeleteFunc(slices.Clone(from.rollout.Loans), func(l rescue.Loan) bool {
		return !exists[l.UID]
	})
}
