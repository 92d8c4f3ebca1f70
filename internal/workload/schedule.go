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
	// maxRequeue is the interval of steps without events, to recover a lost event from the cache. minRequeue bounds the
	// steps of a workload with continuous changes.
	maxRequeue = 10 * period.Minute
	minRequeue = 10 * time.Second
	// restPart: with only samples, a workload rests at most for a quarter of its history, because a short history changes
	// with every sample.
	restPart = 4
	// Samples alone cause at most stepsPerSecond steps, of half a millisecond each: 3 % of a core. With more workloads
	// than fit into an Interval at that rate, each waits longer, but at most longestRest: samples far from the limit
	// change nothing within five minutes. Other events do not wait.
	stepsPerSecond = 50
	longestRest    = 5 * time.Minute
	// restPerPod is the rest after a step for each pod of the workload, for any event. A step compares every pod with its
	// profile, at some 20 us each: without a rest, rolling out 1000 replicas would be 3000 events of 1000 comparisons.
	// Below fewPods there is no rest: a step takes a millisecond.
	restPerPod = 2 * time.Millisecond
	fewPods    = 50
	// restOfRuns is the time between two steps of an identity: at most 24 writes a minute, for any number of runs.
	restOfRuns = 5 * time.Second
)

// Timing is the input for the time of a workload's next step. [Step] sets what depends on the workload, and the
// reconciler the rest.
type Timing struct {
	// Decision is when a decision may change without an event: evidence ages (a kill is urgent for an hour), some changes
	// of pods send no event, and maintenance windows open by the clock. 0: never.
	Decision time.Duration
	Known    time.Duration // the shortest history of any container
	// Interval is the administrator's least time between two steps for samples alone, and Workloads the number of
	// workloads that share the processor.
	Interval  time.Duration
	Workloads int
	// Checkpoint is the time until the stored history is too old; 0 or less: there is no history to store.
	Checkpoint time.Duration
}

// decide records when a decision may change without an event; 0: never.
func (t *Timing) decide(after time.Duration) {
	if after > 0 && (t.Decision == 0 || after < t.Decision) {
		t.Decision = after
	}
}

// Next returns when the next step is due: requeueAfter without any event, and rest with only samples.
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
	// SteppedAt was the last step, and until RestUntil samples alone do not cause another.
	Now, SteppedAt, RestUntil time.Time
	Pods                      int
	// Runs is true if the pods are runs of one identity, perhaps a thousand a minute. The webhook reads their kills
	// itself, so that the next run is not too small while a step waits.
	Runs bool
	// Ended is true if a container ended, or a kill was counted. OnlySamples is true if only samples and unchanged
	// counters came.
	Ended, OnlySamples bool
	// Suspect is true if the result of the last write is unknown: it may not have stored the state.
	Suspect bool
}

// Wait returns the delay of a requested step; 0: none. absorb: meanwhile, samples are absorbed into the state, which
// may show that the step must not wait ([State.Absorb]).
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

// DropOldCounters drops unchanged counters of kills, and reports whether there were any. Each is read every minute, and
// nearly all are unchanged.
func (st *State) DropOldCounters(events *PendingEvents) (dropped bool) {
	had := len(events.Counters)
	events.Counters = slices.DeleteFunc(events.Counters, func(c memory.KillCounter) bool { return !st.ledger.News(c) })
	return len(events.Counters) < had
}

// Absorb absorbs samples between two steps, and reports whether a step must not wait: an instance grows close to its
// limit, or a stall begins or ends. A step takes a hundred times as long, and samples change decisions slowly.
func (st *State) Absorb(events *PendingEvents, now time.Time) (pressing bool) {
	pressing = st.watchStalls(events.Samples)
	st.addSamples(events.Samples, now)
	st.Source = cmp.Or(events.Source, st.Source)
	for i := range events.Samples {
		pressing = pressing || st.instance(&events.Samples[i].Container).nearLimit()
	}
	events.Samples = nil
	return pressing
}
