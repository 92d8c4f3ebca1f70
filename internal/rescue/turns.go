// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"slices"

	"github.com/memfit/memfit/internal/memory"
)

const (
	// turnShare: demand must rise and then fall by at least limit/turnShare, and 1 MiB, for its peak to be a turn.
	turnShare = 32
	// levelShare: a turn is at the current demand if it is at most limit/levelShare below it.
	levelShare = 64
	// turnHours is the number of hours with a stored highest turn: enough for daily jobs.
	turnHours = 24
)

// turns has the highest turn of each hour: a peak of demand that ended by itself, as with a garbage collection. Lower
// turns of that hour say nothing about the next burst.
type turns struct {
	highest   [turnHours]memory.Bytes // by hour since 1970, modulo turnHours
	hour      int64                   // the hour of the newest reading
	low, high memory.Bytes            // the bounds of the current climb
	begun     bool                    // low and high are set
}

// add adds the next reading.
func (t *turns) add(at memory.Instant, demand, limit memory.Bytes) {
	t.forget(at.Time().Unix() / 3600)
	fall := max(limit/turnShare, memory.MiB)
	switch {
	case !t.begun:
		t.low, t.high, t.begun = demand, demand, true
	case demand > t.high:
		t.high = demand
	case t.high-demand >= fall:
		if t.high-t.low >= fall {
			of := &t.highest[t.hour%turnHours]
			*of = max(*of, t.high)
		}
		t.low, t.high = demand, demand
	case demand < t.low: // no climb yet
		t.low, t.high = demand, demand
	}
}

// forget drops the hours that are turnHours before hour.
func (t *turns) forget(hour int64) {
	if hour-t.hour > turnHours {
		t.highest, t.hour = [turnHours]memory.Bytes{}, hour
	}
	for t.hour < hour {
		t.hour++
		t.highest[t.hour%turnHours] = 0
	}
}

// turned reports whether demand has fallen by itself from a level between the current demand and the limit.
func (t *turns) turned(p *Prediction) bool {
	return slices.ContainsFunc(t.highest[:], func(highest memory.Bytes) bool {
		return highest < p.Limit && highest.Plus(p.Limit/levelShare) >= p.Demand
	})
}
