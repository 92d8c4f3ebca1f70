// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"time"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// aheadAtMost is how far ahead of memfit's clock a node's may be: as much as internal/usage lets samples be.
const aheadAtMost = 2 * time.Minute

// toldLate is how late the kubelet may tell of an end: meanwhile it shows the container as running.
const toldLate = 5 * time.Second

// when corrects the times of kills, newest last, that the node's clock cannot be right about: an instance ends after
// its pod was created and after memfit saw it run, and not in the future. The time of a kill is then when memfit saw it
// first. Otherwise a clock that runs behind would move a kill to before the change that caused it.
func when(o Observation, t Termination, now time.Time, kills []memory.OOMKill) []memory.OOMKill {
	// A pod that is created in memfit's future shows that memfit's clock is behind the API server's, and nothing about
	// the node's.
	beforePod := t.Finished.Before(o.PodCreated.Truncate(time.Second)) && !o.PodCreated.After(now)
	ranLater := !o.SeenRunning.IsZero() && len(o.Ended) > 0 && o.Ended[len(o.Ended)-1] == t &&
		t.Finished.Before(o.SeenRunning.Add(-toldLate))
	if !ranLater && !beforePod && !t.Finished.After(now.Add(aheadAtMost)) {
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
