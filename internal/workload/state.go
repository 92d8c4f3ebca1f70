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
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/rollout"
)

// State is memfit's state of one workload between two reconciles: at most 1.5 KiB per container name, plus the ledger.
// [Step] computes the next one. The MemoryCheckpoint is its copy in the API server: always current for counts and
// started changes, and at most Settings.CheckpointEvery of the reconciler old for the rest.
type State struct {
	// steppedAt is the time of the last step; zero: none since memfit started.
	steppedAt time.Time
	// measuredSince is the first step of this process, since when the pods are measured; zero: they are not.
	measuredSince time.Time

	ledger oom.Ledger
	// containers has the evidence of each container name by program, the newest first.
	containers map[string][]*evidence
	// programs are those of the containers of the snapshot's pods, during a step.
	programs map[instanceKey]inject.Program
	// instances are the running containers, for the peak before a kill. Not stored: after a restart of memfit, peaks
	// begin anew.
	instances map[instanceKey]*instance
	// profile is the workload's profile at the last step, and template its newest pod.
	profile  *profile.Profile
	template *corev1.Pod
	backfill
	// rollout is the state of changes of running pods.
	rollout rollout.State
	decided
	measurements
	// shapes are the last shapes of memory, by container.
	shapes map[string]shapeCache
	// completes: the workload's pods run to completion, and each is a run.
	completes bool
	// countsFaults: the source of usage counts major page faults.
	countsFaults bool
}

// NewState returns an empty state.
func NewState() *State {
	return &State{
		containers: map[string][]*evidence{}, instances: map[instanceKey]*instance{},
		decided: decided{Published: map[string]published{}},
	}
}

// SteppedAt returns the time of the last step; zero: none since memfit started.
func (st *State) SteppedAt() time.Time { return st.steppedAt }

// Last returns the profile of the workload at the last step, and its newest pod.
func (st *State) Last() (*profile.Profile, *corev1.Pod) { return st.profile, st.template }

// Clone returns a copy that shares no data that a step changes in place.
func (st *State) Clone() *State {
	c := *st
	c.ledger = st.ledger.Clone()
	c.containers = make(map[string][]*evidence, len(st.containers))
	for name, all := range st.containers {
		for _, e := range all {
			of, copied := *e, *e.history
			of.history, of.Runs = &copied, slices.Clone(e.Runs)
			c.containers[name] = append(c.containers[name], &of)
		}
	}
	c.instances = make(map[instanceKey]*instance, len(st.instances))
	all := make([]instance, 0, len(st.instances)) // one allocation: separate ones would take most of the time
	for key, in := range st.instances {
		all = append(all, *in)
		of := &all[len(all)-1]
		of.stalls = in.stalls.Clone()
		c.instances[key] = of
	}
	c.since = slices.Clone(st.since)
	return &c
}

// History returns the history of a container's newest program, and creates it if needed.
func (st *State) History(container string) *history.Container {
	e := st.newest(container)
	if e == nil {
		e = &evidence{history: history.New()}
		st.containers[container] = []*evidence{e}
	}
	return e.history
}

// forgetGone drops data of deleted pods.
func (st *State) forgetGone(existing map[types.UID]bool, now time.Time) {
	st.ledger.Forget(existing, now)
	maps.DeleteFunc(st.instances, func(key instanceKey, in *instance) bool {
		return !existing[key.uid] && now.Sub(in.seen.Time()) > instanceKept
	})
}

// forgetNames drops the histories of containers that no governed pod has any more, if a checkpoint cannot hold all:
// otherwise old names would displace current ones.
func (st *State) forgetNames(governed []*corev1.Pod) {
	if len(st.containers) <= MaxContainers {
		return
	}
	present := map[string]bool{}
	for _, pod := range governed {
		for _, name := range ContainersOf(&pod.Spec) {
			present[name] = true
		}
	}
	maps.DeleteFunc(st.containers, func(name string, _ []*evidence) bool { return !present[name] })
}
