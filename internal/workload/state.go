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
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/rollout"
)

// State is memfit's state of one workload between two reconciles: at most 1.5 KiB per container name, plus the ledger.
// [Step] computes the next state. The MemoryCheckpoint in the API server is a copy. Its counts and started changes are
// always current; the rest is at most as old as the reconciler's Settings.CheckpointEvery.
type State struct {
	steppedAt time.Time
	// measuredSince is the time of this process's first step with usage; zero: no such step yet.
	measuredSince time.Time

	ledger oom.Ledger
	// containers holds the evidence of each program, newest first, by container name.
	containers map[string][]*evidence
	// programs are the programs of the snapshot's containers; nil between two steps.
	programs map[instanceKey]inject.Program
	// instances hold recent usage of running containers. The checkpoint does not contain them.
	instances map[instanceKey]*instance
	// profile and template are the workload's profile and its newest pod at the last step.
	profile  *profile.Profile
	template *corev1.Pod
	backfill
	rollout rollout.State
	decided
	measurements
	shapes       map[string]shapeCache // by container
	completes    bool                  // the workload's pods run to completion
	countsFaults bool                  // the source of usage counts major page faults
}

// NewState returns an empty state.
func NewState() *State {
	return &State{
		containers: map[string][]*evidence{}, instances: map[instanceKey]*instance{},
		decided: decided{Published: map[string]published{}},
	}
}

// SteppedAt returns the time of the last step since memfit started; zero: none.
func (st *State) SteppedAt() time.Time { return st.steppedAt }

// Last returns the workload's profile and newest pod at the last step.
func (st *State) Last() (*profile.Profile, *corev1.Pod) { return st.profile, st.template }

// Clone returns a copy that shares no data that a step changes in place.
func (st *State) Clone() *State {
	c := *st
	c.ledger = st.ledger.Clone()
	c.containers = make(map[string][]*evidence, len(st.containers))
	for name, all := range st.containers {
		for _, e := range all {
			clone, copiedHistory := *e, *e.history
			clone.history, clone.Runs = &copiedHistory, slices.Clone(e.Runs)
			c.containers[name] = append(c.containers[name], &clone)
		}
	}
	c.instances = make(map[instanceKey]*instance, len(st.instances))
	all := make([]instance, 0, len(st.instances)) // one allocation for all is much faster
	for key, in := range st.instances {
		all = append(all, *in)
		c.instances[key] = &all[len(all)-1]
		c.instances[key].stalls = in.stalls.Clone()
	}
	c.pastSamples = slices.Clone(st.pastSamples)
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

// forgetDeleted drops the data of deleted pods, instances after [instanceKept].
func (st *State) forgetDeleted(existing map[types.UID]bool, now time.Time) {
	st.ledger.Forget(existing, now)
	maps.DeleteFunc(st.instances, func(key instanceKey, in *instance) bool {
		return !existing[key.uid] && now.Sub(in.seen.Time()) > instanceKept
	})
}

// forgetNames drops the histories of containers that no governed pod has any more, if there are too many for a
// checkpoint. Otherwise old containers would displace current ones.
func (st *State) forgetNames(governed []*corev1.Pod) {
	if len(st.containers) <= MaxContainers {
		return
	}
	maps.DeleteFunc(st.containers, func(name string, _ []*evidence) bool {
		return !slices.ContainsFunc(governed, func(pod *corev1.Pod) bool {
			return slices.Contains(ContainersOf(&pod.Spec), name)
		})
	})
}

// youngHistory is the length below which memfit's own history is merged with an earlier one.
const youngHistory = period.Hour

// Past is the history of a workload before memfit measured it.
type Past struct {
	Source string // "prometheus"
	// Read is true when reading has ended. Containers is empty after a failure.
	Read       bool
	Containers map[string]*history.Container
}

// backfill is the state of reading a workload's earlier history.
type backfill struct {
	pastKnown     bool // reading has ended
	pastRequested bool
	pastSamples   []memory.Sample // since the request
}

// keepSamples keeps samples until the earlier history arrives.
func (b *backfill) keepSamples(samples []memory.Sample) {
	if b.pastRequested && len(b.pastSamples) < MaxSamples {
		b.pastSamples = append(b.pastSamples, samples...)
	}
}

// WantsPast reports whether to read an earlier history: none was read, and reading has begun or memfit's own history of
// every container is shorter than youngHistory.
func (st *State) WantsPast() bool {
	if st.pastKnown {
		return false
	}
	for name := range st.containers {
		if period.Of(st.newest(name).history.Span()) >= youngHistory && !st.pastRequested {
			return false
		}
	}
	return true
}

// takePast handles the earlier history p. Once p is read, its histories replace those with fewer samples, and takePast
// adds the samples since the request.
func (st *State) takePast(p *Past) {
	switch {
	case p == nil:
		return
	case !p.Read:
		st.pastRequested = true
		return
	}
	st.pastKnown, st.pastRequested = true, false
	for name, h := range p.Containers {
		if h.Samples() == 0 || st.History(name).Samples() >= h.Samples() {
			continue
		}
		past := *h // a copy: the input of a step does not change
		for _, s := range st.pastSamples {
			if s.Container.Container == name && s.Time.After(past.Last()) {
				past.Add(s, st.limit(s.Container))
			}
		}
		st.newest(name).history, st.Past = &past, p.Source
	}
	st.pastSamples = nil
}

// KnowsPast reports whether reading the earlier history has ended, with or without success.
func (st *State) KnowsPast() bool { return st.pastKnown }
