// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workload"
)

// When a workload is stepped next is decided by [workload.Timing], after a step, and [workload.Arrival], when something
// asks for one. What waits elsewhere has no state to ask: a reconcile that failed is tried again later and later
// (backoffs in timeout.go, and the queue's own rate limiter), and one that the cache is behind for at once (notYet).

// schedule notes until when samples alone lead to no further step, and returns after how long one is due if nothing
// happens at all.
func (r *Reconciler) schedule(e *entry, t workload.Timing, now time.Time) (requeueAfter time.Duration) {
	t.Interval, t.Workloads = r.Settings.StepInterval, r.states.len()
	t.Checkpoint = e.savedAt.Add(r.Settings.CheckpointEvery).Sub(now)
	requeueAfter, rest := t.Next()
	e.restUntil = now.Add(rest)
	return requeueAfter
}

// postpone is how long a workload's next step may wait; 0: not at all. Samples that wait for it are taken into the
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
		Ended: e.state.SomethingEnded(events), OnlySamples: events.OnlySamples() || old && events.Quiet(),
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
