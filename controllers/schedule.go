// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/signals"
)

// restPerPod is the time a workload rests after a step, for each of its pods. A step compares every pod with its profile, which takes
// some 20 us each: without a rest, rolling out 1000 replicas would be 3000 events of 1000 comparisons.
const restPerPod = 2 * time.Millisecond

// fewPods is the number of pods up to which a workload does not rest: a step takes a millisecond.
const fewPods = 50

// postpone is how long a workload's next step may wait; 0: not at all. Samples that wait are absorbed. It is the only place that holds a
// step back; the step itself says when the next is due without news.
func (r *WorkloadReconciler) postpone(workload memory.WorkloadRef, events *PendingEvents, pods int, now time.Time) time.Duration {
	e, known := r.states.get(workload)
	if !known {
		return 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if pods >= fewPods && !e.state.somethingEnded(events) {
		if wait := e.state.steppedAt.Add(time.Duration(pods) * restPerPod).Sub(now); wait > 0 {
			return wait
		}
	}
	wait := e.restUntil.Sub(now)
	if wait <= 0 || e.suspect || !events.onlySamples() {
		return 0
	}
	pressing := e.state.absorb(events, now)
	r.Inbox.Done(workload)
	if pressing {
		return 0
	}
	return wait
}

// onlySamples: nothing came but samples.
func (m *PendingEvents) onlySamples() bool {
	return !m.Look && len(m.Samples) > 0 && len(m.Observations)+len(m.Counters) == 0 && m.Last == nil
}

// somethingEnded says whether events tell of something that ended since the last step.
func (m *state) somethingEnded(events *PendingEvents) bool {
	if len(events.Counters) > 0 || events.Last != nil {
		return true
	}
	return slices.ContainsFunc(events.Observations, func(o signals.Observation) bool {
		in, known := m.instances[o.Container]
		return len(o.Ended) > 0 && (!known || o.Restarts > in.restarts || o.Running.IsZero())
	})
}

// absorb takes in samples between two steps, and says whether one is pressing. What decisions rest on grows by a sample a minute at most,
// and a step takes a hundred times as long. An instance that is close to its limit and uses more and more does not wait, nor does a stall
// that begins or ends.
func (m *state) absorb(events *PendingEvents, now time.Time) (pressing bool) {
	pressing = m.watchStalls(nil, events.Samples)
	m.measure(events.Samples, now)
	m.source = cmp.Or(events.Source, m.source)
	pressing = pressing || slices.ContainsFunc(events.Samples, func(s memory.Sample) bool { return m.instances[s.Container].nearLimit() })
	events.Samples = nil
	return pressing
}
