// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workload"
)

// restPerPod is the time a workload rests after a step, for each of its pods. A step compares every pod with its
// profile, which takes some 20 us each: without a rest, rolling out 1000 replicas would be 3000 events of 1000
// comparisons.
const restPerPod = 2 * time.Millisecond

// fewPods is the number of pods up to which a workload does not rest: a step takes a millisecond.
const fewPods = 50

// Samples alone cause stepsPerSecond steps at most, of half a millisecond each: 3 % of a core. Where there are more
// workloads than can be looked at in a StepInterval at that rate, each waits longer, but never more than longestQuiet:
// what nothing happened to but samples far from its limit is no other after five minutes. Whatever else happens does
// not wait.
const (
	stepsPerSecond = 50
	longestQuiet   = 5 * time.Minute
)

// rest is how long samples alone are no reason for a step of a workload.
func (r *Reconciler) rest() time.Duration {
	return max(r.StepInterval, min(longestQuiet, time.Duration(r.states.len())*time.Second/stepsPerSecond))
}

// postpone is how long a workload's next step may wait; 0: not at all. Samples that wait are absorbed. It is the only
// place that holds a step back; the step itself says when the next is due without news.
func (r *Reconciler) postpone(
	ref memory.WorkloadRef, events *workload.PendingEvents, pods int, now time.Time,
) time.Duration {
	e, known := r.states.get(ref)
	if !known {
		return 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.state.DropOldCounters(events)
	if pods >= fewPods && !e.state.SomethingEnded(events) {
		if wait := e.state.SteppedAt().Add(time.Duration(pods) * restPerPod).Sub(now); wait > 0 {
			return wait
		}
	}
	wait := e.restUntil.Sub(now)
	if wait <= 0 || e.suspect || !events.OnlySamples() && (!old || !events.Quiet()) {
		return 0
	}
	pressing := e.state.Absorb(events, now)
	r.Inbox.Done(ref)
	if pressing {
		return 0
	}
	return wait
}
