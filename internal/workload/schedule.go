// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/period"
)

const (
	// maxRequeue is the longest time between two steps. A step without events recovers lost events from the cache.
	maxRequeue = 10 * period.Minute
	// minRequeue is the shortest time until a step that no event requested.
	minRequeue = 10 * time.Second
	// restPart bounds the rest after a step to a quarter of the shortest history.
	restPart = 4
	// stepsPerSecond bounds the steps that only samples request, for all workloads together. A step takes half a
	// millisecond, so these steps take 3 % of a core.
	stepsPerSecond = 50
	// longestRest bounds the rest with many workloads: samples far from the limit can wait five minutes.
	longestRest = 5 * time.Minute
	// restPerPod is the rest after a step for each pod, because a step compares every pod with the profile in 20 us.
	// Without a rest, rolling out 1000 replicas would cause 3000 steps with 1000 comparisons each.
	restPerPod = 2 * time.Millisecond
	// fewPods is the number of pods below which restPerPod does not apply: such a step takes a millisecond.
	fewPods = 50
	// restOfRuns is the time between two steps of an identity: at most 24 writes a minute for any number of runs.
	restOfRuns = 5 * time.Second
)

// Timing is the input for the time of a workload's next step. [Step] sets Decision and Known, the reconciler the rest.
type Timing struct {
	// Decision is the time until a decision may change without an event, for example because a maintenance window opens
	// or a kill is no longer urgent; 0: never.
	Decision  time.Duration
	Known     time.Duration // the length of the shortest history of a container
	Interval  time.Duration // the configured least time between two steps that only samples request
	Workloads int           // the number of workloads of this process
	// Checkpoint is the time until the stored history is too old; 0 or less: there is no history to store.
	Checkpoint time.Duration
}

// decide records the time until a decision may change without an event; 0: never.
func (t *Timing) decide(after time.Duration) {
	if after > 0 && (t.Decision == 0 || after < t.Decision) {
		t.Decision = after
	}
}

// Next returns the time until the next step: requeueAfter without events, and at least rest with only samples.
func (t *Timing) Next() (requeueAfter, rest time.Duration) {
	requeueAfter = maxRequeue.Duration()
	if t.Decision > 0 {
		requeueAfter = max(min(requeueAfter, t.Decision), minRequeue)
	}
	fair := min(longestRest, time.Duration(t.Workloads)*time.Second/stepsPerSecond)
	rest = min(
		max(t.Interval, fair), // bounds the processor time of steps
		requeueAfter,          // a due step does not wait
		t.Known/restPart,      // a short history changes with every sample
	)
	if t.Checkpoint > 0 {
		rest = min(rest, t.Checkpoint) // a crash loses no more samples than CheckpointEvery
	}
	return requeueAfter, rest
}

// Arrival is the input for the delay of a step that an event requests.
type Arrival struct {
	Now       time.Time
	SteppedAt time.Time // of the last step
	RestUntil time.Time // samples alone request no step before
	Pods      int
	// Runs is true if the pods are runs of one identity, perhaps a thousand a minute. Their steps can wait even after a
	// kill, because the webhook reads kills itself before it sizes the next run.
	Runs        bool
	Ended       bool // a container ended, or a kill was counted
	OnlySamples bool // there are only samples and unchanged counters
	Suspect     bool // the last write may have failed, so the state may not be stored
}

// Wait returns the delay of a requested step; 0: none. absorb reports whether samples are added to the state during the
// delay, which [State.AddSamples] may end.
func (a *Arrival) Wait() (wait time.Duration, absorb bool) {
	if a.Runs {
		if wait := a.SteppedAt.Add(restOfRuns).Sub(a.Now); wait > 0 {
			return wait, false
		}
	}
	if a.Pods >= fewPods && !a.Ended { // an OOM kill does not wait
		if wait := a.SteppedAt.Add(time.Duration(a.Pods) * restPerPod).Sub(a.Now); wait > 0 {
			return wait, false
		}
	}
	if wait := a.RestUntil.Sub(a.Now); wait > 0 && a.OnlySamples && !a.Suspect {
		return wait, true
	}
	return 0, false
}

// ContainerEnded reports whether events include the end of a container since the last step, or a kill.
func (st *State) ContainerEnded(events *PendingEvents) bool {
	if len(events.Counters) > 0 || events.Last != nil {
		return true
	}
	return slices.ContainsFunc(events.Observations, func(o oom.Observation) bool {
		in := st.instance(&o.Container)
		return len(o.Ended) > 0 && (in == nil || o.Restarts > in.restarts || o.Running.IsZero())
	})
}

// DropOldCounters drops unchanged counters of kills, and reports whether it dropped any. Counters are read every
// minute, and nearly all are unchanged.
func (st *State) DropOldCounters(events *PendingEvents) (dropped bool) {
	had := len(events.Counters)
	events.Counters = slices.DeleteFunc(events.Counters, func(c memory.KillCounter) bool { return !st.ledger.Relevant(c) })
	return len(events.Counters) < had
}

// AddSamples adds samples to the state between two steps, because a step takes a hundred times as long. It reports
// whether a step is pressing: an instance grows close to its limit, or a stall begins or ends.
func (st *State) AddSamples(events *PendingEvents, now time.Time) (pressing bool) {
	pressing = st.watchStalls(events.Samples)
	st.addSamples(events.Samples, now)
	st.Source = cmp.Or(events.Source, st.Source)
	for i := range events.Samples {
		pressing = pressing || st.instance(&events.Samples[i].Container).nearLimit()
	}
	events.Samples = nil
	return pressing
}
