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

// reportedLate is how late the kubelet may report an end.
const reportedLate = 5 * time.Second

// when corrects impossible times of kills, newest last: an instance ends after its pod was created and after a status
// that did not show its end, and not in the future. It uses the time when memfit first saw the kill. Otherwise a slow
// clock would move a kill to before the change that caused it.
func when(o Observation, t Termination, now time.Time, kills []memory.OOMKill) []memory.OOMKill {
	// A pod that is created in memfit's future shows that memfit's clock is behind the API server's, and nothing about
	// the node's.
	beforePod := t.Finished.Before(o.PodCreated.Truncate(time.Second)) && !o.PodCreated.After(now)
	beforeLook := !o.LastLook.IsZero() && len(o.Ended) > 0 && o.Ended[len(o.Ended)-1] == t &&
		t.Finished.Before(o.LastLook.Add(-reportedLate))
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
