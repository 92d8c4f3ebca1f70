// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
)

const (
	// MaxObservations bounds a container's unread observations. Restart counts make up for what is dropped: the newest
	// observation carries the sum, and only the details of kills in between are lost.
	MaxObservations = 8
	// MaxSamples bounds a workload's unread samples: 1000 replicas for a minute, or a small workload for hours.
	MaxSamples = 4096
	// MaxDeparted bounds the deleted pods of a workload with unread observations: pods that exist are bounded by the
	// cluster, deleted ones by nothing while a checkpoint cannot be written.
	MaxDeparted = 1024
)

// PendingEvents is what happened to a workload since the last step.
type PendingEvents struct {
	// Observations are in the order in which they were made.
	Observations []oom.Observation
	// Samples are in the order in which they were taken.
	Samples []memory.Sample
	// Source is where the samples came from.
	Source string
	// Counters are the kernel's counts of kills in containers that live.
	Counters []memory.KillCounter
	// Requested: something else than samples came, or a step was requested.
	Requested bool
	// Departed are the pods that were deleted since, in that order. When there are more than MaxDeparted, the oldest are
	// dropped with their observations.
	Departed []Departure
	// Profile governed Last, a pod that is gone already. They are used when no pod is left to read; nil otherwise.
	Profile *profile.Profile
	Last    *corev1.Pod
	// Past is what the workload used before memfit saw it; nil: it was not requested. It does not come through the Inbox.
	Past *Past

	// places are the positions in Observations of those of each pod; nil: unknown.
	places map[types.UID][]int32
}

// Departure is a pod that was deleted, and the UID of its workload; empty: unknown.
type Departure struct{ Pod, Owner types.UID }

// Empty reports whether nothing happened. The request of a step alone may be lost.
func (e *PendingEvents) Empty() bool { return len(e.Observations)+len(e.Samples)+len(e.Counters) == 0 }

// Append adds what came in later.
func (e *PendingEvents) Append(newer *PendingEvents) {
	for i := range newer.Observations {
		e.AddObservation(&newer.Observations[i])
	}
	e.AddSamples(newer.Samples...)
	e.AddCounters(newer.Counters...)
	e.Requested = e.Requested || newer.Requested
	e.Source = cmp.Or(newer.Source, e.Source)
	for _, d := range newer.Departed {
		e.AddDeparted(d)
	}
	if newer.Profile != nil {
		e.Profile, e.Last = newer.Profile, newer.Last
	}
}

// Clone shares no list but that of samples, the longest by far, to which both may append and which neither may change.
// From the other lists, the receiver of the copy may drop what is not of its workload.
func (e *PendingEvents) Clone() PendingEvents {
	c := *e
	c.Observations, c.Counters = slices.Clone(e.Observations), slices.Clone(e.Counters)
	c.Samples = slices.Clip(e.Samples)
	c.Departed, c.places = slices.Clone(e.Departed), nil
	return c
}

// AddObservation appends o unless it repeats the last observation of its container, and keeps at most MaxObservations
// of each. The observations of one container stay in order; it takes no longer when other pods have many.
func (e *PendingEvents) AddObservation(o *oom.Observation) {
	own := make([]int32, 0, MaxObservations)
	for _, at := range e.placesOf(o.Container.UID) {
		if len(own) < MaxObservations && e.Observations[at].Container == o.Container {
			own = append(own, at)
		}
	}
	if n := len(own); n > 0 && reflect.DeepEqual(&e.Observations[own[n-1]], o) {
		return
	}
	if len(own) < MaxObservations {
		e.places[o.Container.UID] = append(e.places[o.Container.UID], int32(len(e.Observations))) //nolint:gosec // bounded
		e.Observations = append(e.Observations, *o)
		return
	}
	// Keep the first observation, which may be the only one that still shows the oldest kill, and drop the one after it.
	for i := 1; i < len(own)-1; i++ {
		e.Observations[own[i]] = e.Observations[own[i+1]]
	}
	e.Observations[own[len(own)-1]] = *o
}

// placesOf returns the positions of a pod's observations, oldest first.
func (e *PendingEvents) placesOf(pod types.UID) []int32 {
	if e.places == nil {
		e.places = make(map[types.UID][]int32, len(e.Observations))
		for i := range e.Observations {
			uid := e.Observations[i].Container.UID
			e.places[uid] = append(e.places[uid], int32(i))
		}
	}
	return e.places[pod]
}

// AddDeparted notes that a pod was deleted.
func (e *PendingEvents) AddDeparted(d Departure) {
	e.Departed = append(e.Departed, d)
	if len(e.Departed) <= MaxDeparted {
		return
	}
	dropped := map[types.UID]bool{}
	for _, old := range e.Departed[:MaxDeparted/4] {
		dropped[old.Pod] = true
	}
	e.Departed = slices.Clone(e.Departed[MaxDeparted/4:])
	e.Observations = slices.DeleteFunc(
		e.Observations, func(o oom.Observation) bool { return dropped[o.Container.UID] },
	)
	e.places = nil
}

// AddSamples appends samples; if they are not collected, the oldest go first.
func (e *PendingEvents) AddSamples(samples ...memory.Sample) {
	e.Samples = append(e.Samples, samples...)
	if over := len(e.Samples) - MaxSamples; over > 0 {
		e.Samples = slices.Clone(e.Samples[over+MaxSamples/4:])
	}
}

// AddCounters appends counters; if they are not collected, the oldest go first: the newest have the sum.
func (e *PendingEvents) AddCounters(counters ...memory.KillCounter) {
	e.Counters = append(e.Counters, counters...)
	if over := len(e.Counters) - MaxSamples; over > 0 {
		e.Counters = append(e.Counters[:0], e.Counters[over+MaxSamples/4:]...)
	}
}

// OnlySamples reports whether nothing came but samples. Nothing at all is not only samples: the step is due.
func (e *PendingEvents) OnlySamples() bool { return len(e.Samples) > 0 && e.Quiet() }

// Quiet reports whether nothing came but, at most, samples.
func (e *PendingEvents) Quiet() bool {
	return !e.Requested && len(e.Observations)+len(e.Counters) == 0 && e.Last == nil
}
