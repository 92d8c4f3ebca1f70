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

// State is what memfit knows of one workload between two reconciles: at most 1.5 KiB per container name, plus the
// ledger. [Step] makes the next one of it. The MemoryCheckpoint is its copy on the API server: always current for what
// was counted and begun, and at most Settings.CheckpointEvery of the reconciler old for the rest.
type State struct {
	// steppedAt is the time of the last step; zero: there was none since memfit started.
	steppedAt time.Time
	// measuredSince is the first step of this process, since when the pods are measured; zero: they are not.
	measuredSince time.Time

	ledger oom.Ledger
	// containers is what is known of each container name, by program, the newest first.
	containers map[string][]*evidence
	// programs are those of the containers of the snapshot's pods, during a step.
	programs map[instanceKey]inject.Program
	// instances are the running containers, to know the highest use of one before it was killed. Not checkpointed: after a
	// restart of memfit, a kill's peak is what was seen since.
	instances map[instanceKey]*instance
	// profile governed the workload at the last step, and template was its newest pod.
	profile  *profile.Profile
	template *corev1.Pod
	backfill
	// rollout is what was begun to do to running pods.
	rollout rollout.State
	decided
	measurements
	// shapes are the shapes of memory found last, by container.
	shapes map[string]shapeCache
	// completes: the workload's pods run to completion, and each is a run.
	completes bool
	// countsFaults: the source of usage counts major page faults.
	countsFaults bool
}

// NewState knows nothing.
func NewState() *State {
	return &State{
		containers: map[string][]*evidence{}, instances: map[instanceKey]*instance{},
		decided: decided{Published: map[string]published{}},
	}
}

// SteppedAt is the time of the last step; zero: there was none since memfit started.
func (st *State) SteppedAt() time.Time { return st.steppedAt }

// Last is the profile that governed the workload at the last step, and its newest pod then.
func (st *State) Last() (*profile.Profile, *corev1.Pod) { return st.profile, st.template }

// Clone is a copy that shares nothing that a step changes in place.
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
	all := make([]instance, 0, len(st.instances)) // in one piece: an allocation each would be most of the time
	for key, in := range st.instances {
		all = append(all, *in)
		of := &all[len(all)-1]
		of.stalls = in.stalls.Clone()
		c.instances[key] = of
	}
	c.since = slices.Clone(st.since)
	return &c
}

// History returns that of a container's newest program. It is made when first needed.
func (st *State) History(container string) *history.Container {
	e := st.newest(container)
	if e == nil {
		e = &evidence{history: history.New()}
		st.containers[container] = []*evidence{e}
	}
	return e.history
}

// forgetGone drops what belongs to pods that are gone.
func (st *State) forgetGone(existing map[types.UID]bool, now time.Time) {
	st.ledger.Forget(existing, now)
	maps.DeleteFunc(st.instances, func(key instanceKey, in *instance) bool {
		return !existing[key.uid] && now.Sub(in.seen.Time()) > instanceKept
	})
}

// forgetNames drops the histories of containers that no governed pod has any more, once there are more than a
// checkpoint holds: names of older versions of the workload would otherwise displace those that run, and be kept for
// ever.
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
