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
// [Step] computes the next one. The MemoryCheckpoint is its copy in the API server: always current for counts and
// started changes, and at most Settings.CheckpointEvery of the reconciler old for the rest.
type State struct {
	steppedAt time.Time
	// measuredSince is the first step of this process, at which measurements of the pods began; zero: none.
	measuredSince time.Time

	ledger oom.Ledger
	// containers has the evidence of each container name by program, the newest first.
	containers map[string][]*evidence
	// programs are what the containers of the snapshot's pods run, during a step.
	programs map[instanceKey]inject.Program
	// instances are the running containers, for the peak before a kill. They are not stored.
	instances map[instanceKey]*instance
	// profile is the workload's profile at the last step, and template its newest pod.
	profile  *profile.Profile
	template *corev1.Pod
	backfill
	rollout rollout.State
	decided
	measurements
	shapes map[string]shapeCache // by container
	// completes is true if the workload's pods run to completion, and each is a run. countsFaults is true if the source of
	// usage counts major page faults.
	completes, countsFaults bool
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

func (st *State) forgetDeleted(existing map[types.UID]bool, now time.Time) {
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
	maps.DeleteFunc(st.containers, func(name string, _ []*evidence) bool {
		return !slices.ContainsFunc(governed, func(pod *corev1.Pod) bool {
			return slices.Contains(ContainersOf(&pod.Spec), name)
		})
	})
}

// youngHistory is the length from which a history needs no backfill.
const youngHistory = period.Hour

// Past is the earlier history of a workload.
type Past struct {
	Source string // "prometheus"
	// Read is true when reading has ended; after a failure there are no containers.
	Read       bool
	Containers map[string]*history.Container
}

// backfill is the state of a workload's earlier history.
type backfill struct {
	// pastKnown is true if it was read, or is not needed. asked is true if it was requested, and since are the samples
	// after the request.
	pastKnown, pastRequested bool
	pastSamples              []memory.Sample
}

// note keeps samples until the earlier history arrives.
func (b *backfill) keepSamples(samples []memory.Sample) {
	if b.pastRequested && len(b.pastSamples) < MaxSamples {
		b.pastSamples = append(b.pastSamples, samples...)
	}
}

// WantsPast reports whether an earlier history is needed: none was read, and memfit's own is shorter than youngHistory.
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

// takePast merges a workload's earlier history, once available, with the samples since the request.
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
		of := *h // do not change the history before the step is stored
		for _, s := range st.pastSamples {
			if s.Container.Container == name && s.Time.After(of.Last()) {
				of.Add(s, st.limit(s.Container))
			}
		}
		st.newest(name).history, st.Past = &of, p.Source
	}
	st.pastSamples = nil
}

// KnowsPast reports whether the earlier history was merged, as far as it is available.
func (st *State) KnowsPast() bool { return st.pastKnown }
