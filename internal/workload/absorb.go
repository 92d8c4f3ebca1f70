// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/oom"
)

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
	events.Counters = slices.DeleteFunc(events.Counters, func(c oom.Counter) bool { return !st.ledger.News(c) })
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
