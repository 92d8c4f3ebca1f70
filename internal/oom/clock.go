// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"time"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// maxAhead is how far a node's clock may be ahead of memfit's, as for samples in internal/usage.
const maxAhead = 2 * time.Minute

// reportedLate bounds the delay of the kubelet's report of an end.
const reportedLate = 5 * time.Second

// correctTimes returns the kills of a termination, with time now if the reported time is impossible: before the pod's
// creation, before an observation that did not show the end, or in the future. Otherwise a slow clock of a node would
// date a kill before the change that caused it.
func correctTimes(o Observation, t Termination, now time.Time, kills []memory.OOMKill) []memory.OOMKill {
	// If the pod was created after now, memfit's clock is behind the API server's, and the node's may be correct.
	beforePod := t.Finished.Before(o.PodCreated.Truncate(time.Second)) && !o.PodCreated.After(now)
	beforeLook := !o.LastSeen.IsZero() && len(o.Ended) > 0 && o.Ended[len(o.Ended)-1] == t &&
		t.Finished.Before(o.LastSeen.Add(-reportedLate))
	if !beforeLook && !beforePod && !t.Finished.After(now.Add(maxAhead)) {
		return kills
	}
	for i := range kills {
		k := &kills[i]
		if t.Finished.IsZero() {
			k.Time = now
			continue
		}
		k.Why += "; seen at " + format.TimeOfDay(now, now) + ", the node's clock reports " + format.Time(k.Time)
		k.Time = now
	}
	return kills
}
