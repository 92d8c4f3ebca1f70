// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workload"
)

// [workload.Timing] decides after a step when the next is due, and [workload.Arrival] when an event requests one.
// Elsewhere only failed reconciles wait, with increasing delays (backoffs in timeout.go, and the queue's rate limiter),
// and those with a lagging cache (notYet).

// schedule sets until when samples alone cause no step, and returns when one is due without any event.
func (r *Reconciler) schedule(e *entry, t workload.Timing, now time.Time) (requeueAfter time.Duration) {
	t.Interval, t.Workloads = r.Settings.StepInterval, r.states.len()
	t.Checkpoint = e.savedAt.Add(r.Settings.CheckpointEvery).Sub(now)
	requeueAfter, rest := t.Next()
	e.restUntil = now.Add(rest)
	return requeueAfter
}

// postpone returns how long a workload's next step may wait; 0: not at all. Waiting samples are absorbed into the
// state.
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
	arrival := workload.Arrival{
		Now: now, SteppedAt: e.state.SteppedAt(), RestUntil: e.restUntil, Pods: pods, Suspect: e.suspect,
		Runs:  identity.Is(ref),
		Ended: e.state.ContainerEnded(events), OnlySamples: events.OnlySamples() || old && events.Quiet(),
	}
	wait, absorb := arrival.Wait()
	if !absorb {
		return wait
	}
	pressing := e.state.Absorb(events, now)
	r.Inbox.Done(ref)
	if pressing {
		return 0
	}
	return wait
}
