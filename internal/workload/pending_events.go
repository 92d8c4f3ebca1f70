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
	// MaxObservations bounds the pending observations of a container. If some are dropped, the newest restart count still
	// includes all kills, and only details are lost.
	MaxObservations = 8
	// MaxSamples bounds the pending samples of a workload: 1000 replicas for a minute, or a small workload for hours.
	MaxSamples = 4096
	// MaxDeparted bounds Departed, which grows while the checkpoint cannot be written.
	MaxDeparted = 1024
)

// PendingEvents are the events of a workload since the last step, in chronological order.
type PendingEvents struct {
	Observations []oom.Observation
	Samples      []memory.Sample
	Source       string // of the samples
	// Counters are the kernel's counts of kills in running containers.
	Counters []memory.KillCounter
	// Requested is true if anything other than samples requested a step.
	Requested bool
	// Departed are the pods deleted since the last step, in order. Beyond MaxDeparted, the oldest are dropped together
	// with their observations.
	Departed []Departure
	// Last is the last deleted pod of a workload without pods; nil otherwise. Profile is its profile.
	Last    *corev1.Pod
	Profile *profile.Profile
	// Past is the earlier history of the workload; nil: not requested. The reconciler sets it, not the Inbox.
	Past *Past

	// places are the indexes in Observations, by pod; nil: not computed.
	places map[types.UID][]int32
}

// Departure is a deleted pod and its workload (Owner); an empty Owner is unknown.
type Departure struct{ Pod, Owner types.UID }

// Empty reports whether there are no events that must not be lost: observations, samples and counters.
func (e *PendingEvents) Empty() bool { return len(e.Observations)+len(e.Samples)+len(e.Counters) == 0 }

// Append adds newer events.
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

// Clone returns a copy. It shares the samples with e, because they are many: append to them, but do not change them.
// The other lists are copies.
func (e *PendingEvents) Clone() PendingEvents {
	c := *e
	c.Observations, c.Counters = slices.Clone(e.Observations), slices.Clone(e.Counters)
	c.Samples = slices.Clip(e.Samples)
	c.Departed, c.places = slices.Clone(e.Departed), nil
	return c
}

// AddObservation appends o unless it repeats the last observation of its container. It keeps at most MaxObservations of
// each container, in order. Its run time does not depend on the number of pods.
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
	// Drop the second observation. The first may be the only one with details of the oldest kill.
	for i := 1; i < len(own)-1; i++ {
		e.Observations[own[i]] = e.Observations[own[i+1]]
	}
	e.Observations[own[len(own)-1]] = *o
}

// placesOf returns the indexes of a pod's observations, oldest first.
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

// AddDeparted records a deleted pod. Beyond MaxDeparted, it drops the oldest quarter.
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
	e.dropObservations(dropped)
}

// dropObservations drops the observations of the given pods.
func (e *PendingEvents) dropObservations(pods map[types.UID]bool) {
	e.Observations = slices.DeleteFunc(e.Observations, func(o oom.Observation) bool { return pods[o.Container.UID] })
	e.places = nil
}

// AddSamples appends samples, and drops the oldest beyond MaxSamples.
func (e *PendingEvents) AddSamples(samples ...memory.Sample) {
	e.Samples = append(e.Samples, samples...)
	if over := len(e.Samples) - MaxSamples; over > 0 {
		e.Samples = slices.Clone(e.Samples[over+MaxSamples/4:])
	}
}

// AddCounters appends counters, and drops the oldest beyond MaxSamples: newer counters include the kills of older ones.
func (e *PendingEvents) AddCounters(counters ...memory.KillCounter) {
	e.Counters = append(e.Counters, counters...)
	if over := len(e.Counters) - MaxSamples; over > 0 {
		e.Counters = append(e.Counters[:0], e.Counters[over+MaxSamples/4:]...)
	}
}

// OnlySamples reports whether there are samples and no other events.
func (e *PendingEvents) OnlySamples() bool { return len(e.Samples) > 0 && e.Quiet() }

// Quiet reports whether there are no events other than samples.
func (e *PendingEvents) Quiet() bool {
	return !e.Requested && len(e.Observations)+len(e.Counters) == 0 && e.Last == nil
}
