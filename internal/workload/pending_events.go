// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/signals"
)

const (
	// maxObservations bounds a container's unread observations. Restart counts make up for what is dropped: the newest observation
	// carries the sum, and only the details of kills in between are lost.
	MaxObservations = 8
	// maxSamples bounds a workload's unread samples: 1000 replicas for a minute, or a small workload for hours.
	MaxSamples = 4096
)

// PendingEvents is what happened to a workload since the last look.
type PendingEvents struct {
	// Observations are in the order in which they were made.
	Observations []signals.Observation
	// Samples are in the order in which they were taken.
	Samples []memory.Sample
	// Source says where the samples came from.
	Source string
	// Counters are the kernel's counts of kills in containers that live.
	Counters []signals.Counter
	// Look: something else than samples came, or somebody asks for a look.
	Look bool
	// Departed are the UIDs of the workloads to which pods belonged that are gone since, by the pods'.
	Departed map[types.UID]types.UID
	// Profile governed Last, a pod that is gone already. They are used when no pod is left to look at; nil otherwise.
	Profile *profile.Named
	Last    *corev1.Pod
	// Past is what the workload used before memfit saw it; nil: nobody asked. It does not come through the Inbox.
	Past *Past
}

// empty: nothing happened. That somebody asks for a look is nothing that must not be lost.
func (m *PendingEvents) Empty() bool { return len(m.Observations)+len(m.Samples)+len(m.Counters) == 0 }

// Append adds what came in later.
func (m *PendingEvents) Append(newer *PendingEvents) {
	for i := range newer.Observations {
		m.AddObservation(&newer.Observations[i])
	}
	m.AddSamples(newer.Samples...)
	m.AddCounters(newer.Counters...)
	m.Look = m.Look || newer.Look
	m.Source = cmp.Or(newer.Source, m.Source)
	for pod, owner := range newer.Departed {
		if m.Departed == nil {
			m.Departed = map[types.UID]types.UID{}
		}
		m.Departed[pod] = owner
	}
	if newer.Profile != nil {
		m.Profile, m.Last = newer.Profile, newer.Last
	}
}

// Clone shares no list: whoever gets it may drop what is not of his workload.
func (m *PendingEvents) Clone() PendingEvents {
	c := *m
	c.Observations, c.Samples, c.Counters, c.Departed = slices.Clone(m.Observations), slices.Clone(m.Samples), slices.Clone(m.Counters), maps.Clone(m.Departed)
	return c
}

// AddObservation appends o unless it repeats the last observation of its container, and keeps at most maxObservations of each.
func (m *PendingEvents) AddObservation(o *signals.Observation) {
	count, first, last := 0, -1, -1
	for i := range m.Observations {
		if m.Observations[i].Container == o.Container {
			if first < 0 {
				first = i
			}
			count, last = count+1, i
		}
	}
	if last >= 0 && sameObservation(&m.Observations[last], o) {
		return
	}
	if count >= MaxObservations {
		// Keep the first look, which may be the only one that still shows the oldest kill, and drop the one after it.
		for i := first + 1; i < len(m.Observations); i++ {
			if m.Observations[i].Container == o.Container {
				m.Observations = append(m.Observations[:i], m.Observations[i+1:]...)
				break
			}
		}
	}
	m.Observations = append(m.Observations, *o)
}

// AddSamples appends samples; when nobody collects them, the oldest go first.
func (m *PendingEvents) AddSamples(samples ...memory.Sample) {
	m.Samples = append(m.Samples, samples...)
	if over := len(m.Samples) - MaxSamples; over > 0 {
		m.Samples = append(m.Samples[:0], m.Samples[over+MaxSamples/4:]...)
	}
}

// AddCounters appends counters; when nobody collects them, the oldest go first: the newest carry the sum.
func (m *PendingEvents) AddCounters(counters ...signals.Counter) {
	m.Counters = append(m.Counters, counters...)
	if over := len(m.Counters) - MaxSamples; over > 0 {
		m.Counters = append(m.Counters[:0], m.Counters[over+MaxSamples/4:]...)
	}
}

func sameObservation(a, b *signals.Observation) bool { return reflect.DeepEqual(a, b) }

// onlySamples: nothing came but samples.
func (m *PendingEvents) OnlySamples() bool {
	return !m.Look && len(m.Samples) > 0 && len(m.Observations)+len(m.Counters) == 0 && m.Last == nil
}
