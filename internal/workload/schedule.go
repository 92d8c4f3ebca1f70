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

// Bounds of the time to the next step.
const (
	// maxRequeue is after how long a workload without events is stepped, so that a lost event is made up for from the
	// cache. minRequeue keeps a workload that always has something under way from being stepped all the time.
	maxRequeue = 10 * period.Minute
	minRequeue = 10 * time.Second
	// restPart is the part of its history for which a workload rests at most while nothing comes but samples, a quarter:
	// what is hardly known changes with every sample.
	restPart = 4
	// Samples alone cause at most stepsPerSecond steps, of half a millisecond each: 3 % of a core. If there are more
	// workloads than can be stepped in an Interval at that rate, each waits longer, but never more than longestRest:
	// samples far from the limit change nothing within five minutes. Other events do not wait.
	stepsPerSecond = 50
	longestRest    = 5 * time.Minute
	// restPerPod is the time a workload rests after a step, for each of its pods, whatever happens. A step compares every
	// pod with its profile, which takes some 20 us each: without a rest, rolling out 1000 replicas would be 3000 events of
	// 1000 comparisons. Up to fewPods it does not rest: a step takes a millisecond.
	restPerPod = 2 * time.Millisecond
	fewPods    = 50
	// restOfRuns is the time between two steps of an identity: at most 24 writes a minute, however many runs there are.
	restOfRuns = 5 * time.Second
)

// Timing is all that the time of a workload's next step depends on, once a step is done. [Step] fills in what follows
// from the workload, and the reconciler the rest.
type Timing struct {
	// Recommendation and Rollout are when the answers about sizes and about changes of running pods may differ although
	// nothing happens; 0: only with news.
	Recommendation, Rollout time.Duration
	// Known is how far back the shortest history of a container goes.
	Known time.Duration
	// Interval is the least time between two steps for samples alone, as the administrator sets it, and Workloads the
	// number of workloads that share the processor.
	Interval  time.Duration
	Workloads int
	// Checkpoint is after how long the stored history will be too old; 0 or less: there is no history to store.
	Checkpoint time.Duration
}

// recommend notes when a container's recommendation may differ although nothing happens; 0: with news only.
func (t *Timing) recommend(after time.Duration) {
	if after > 0 && (t.Recommendation == 0 || after < t.Recommendation) {
		t.Recommendation = after
	}
}

// Next is when the next step is due: requeueAfter although nothing happens, and rest when nothing comes but samples.
func (t *Timing) Next() (requeueAfter, rest time.Duration) {
	requeueAfter = maxRequeue.Duration()
	for _, due := range [...]time.Duration{
		t.Recommendation, // evidence ages: a kill is urgent for an hour, and a limit is lowered after a day of use
		t.Rollout,        // not all that is under way sends an event, and a maintenance window opens by the clock
	} {
		if due > 0 {
			requeueAfter = min(requeueAfter, due)
		}
	}
	requeueAfter = max(requeueAfter, minRequeue)

	fair := min(longestRest, time.Duration(t.Workloads)*time.Second/stepsPerSecond)
	rest = min(
		max(t.Interval, fair), // no more steps than the processor is to be used for
		requeueAfter,          // what is due comes true with samples, too
		t.Known/restPart,      // what is hardly known changes with every sample
	)
	if t.Checkpoint > 0 {
		rest = min(rest, t.Checkpoint) // a crash loses no more samples than was promised
	}
	return requeueAfter, rest
}

// Arrival is all that decides how long a step waits for which an event asks.
type Arrival struct {
	// SteppedAt was the last step, and until RestUntil samples alone do not cause another.
	Now, SteppedAt, RestUntil time.Time
	// Pods is the number of the workload's pods.
	Pods int
	// Runs: the pods are runs of one identity, of which there may be a thousand in a minute. The webhook consults their
	// kills itself, so that the next run is not created small while a step waits.
	Runs bool
	// Ended: a container ended, or a kill was counted. OnlySamples: only samples and unchanged counters came.
	Ended, OnlySamples bool
	// Suspect: it is not known whether the last write succeeded, and so whether the state is the stored one.
	Suspect bool
}

// Wait is how long a step that something asks for waits; 0: not at all. absorb: meanwhile, the samples that came are
// taken into the state, which may show that they do not wait ([State.Absorb]).
func (a *Arrival) Wait() (wait time.Duration, absorb bool) {
	if a.Runs {
		if wait := a.SteppedAt.Add(restOfRuns).Sub(a.Now); wait > 0 {
			return wait, false
		}
	}
	if a.Pods >= fewPods && !a.Ended { // an OOM kill waits for nothing
		if wait := a.SteppedAt.Add(time.Duration(a.Pods) * restPerPod).Sub(a.Now); wait > 0 {
			return wait, false
		}
	}
	if wait := a.RestUntil.Sub(a.Now); wait > 0 && a.OnlySamples && !a.Suspect {
		return wait, true
	}
	return 0, false
}

// SomethingEnded reports whether events tell of something that ended since the last step.
func (st *State) SomethingEnded(events *PendingEvents) bool {
	if len(events.Counters) > 0 || events.Last != nil {
		return true
	}
	return slices.ContainsFunc(events.Observations, func(o oom.Observation) bool {
		in := st.instance(&o.Container)
		return len(o.Ended) > 0 && (in == nil || o.Restarts > in.restarts || o.Running.IsZero())
	})
}

// DropOldCounters drops counters of kills that have not changed, and reports whether there were any. One is read of
// every container every minute, and nearly none has changed.
func (st *State) DropOldCounters(events *PendingEvents) (dropped bool) {
	had := len(events.Counters)
	events.Counters = slices.DeleteFunc(events.Counters, func(c memory.KillCounter) bool { return !st.ledger.News(c) })
	return len(events.Counters) < had
}

// Absorb takes in samples between two steps, and reports whether one is pressing. What decisions rest on grows by a
// sample a minute at most, and a step takes a hundred times as long. An instance that is close to its limit and uses
// more and more does not wait, nor does a stall that begins or ends.
func (st *State) Absorb(events *PendingEvents, now time.Time) (pressing bool) {
	pressing = st.watchStalls(events.Samples)
	st.measure(events.Samples, now)
	st.Source = cmp.Or(events.Source, st.Source)
	for i := range events.Samples {
		pressing = pressing || st.instance(&events.Samples[i].Container).nearLimit()
	}
	events.Samples = nil
	return pressing
}
