// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"slices"

	"github.com/memfit/memfit/internal/memory"
)

const (
	// turnShare of the limit, and at least a MiB, must be gained and returned for a turn.
	turnShare = 32
	// levelShare: levels within this share of the limit are equal.
	levelShare = 64
	// turnHours is the number of hours with a stored highest turn: enough for daily jobs.
	turnHours = 24
)

// turns are the levels at which demand fell by itself, as after a garbage collection: the highest of each hour, because
// small turns between two bursts do not predict the next one.
type turns struct {
	highest   [turnHours]memory.Bytes // by hour since 1970, modulo turnHours
	hour      int64                   // of the newest reading
	low, high memory.Bytes            // of the current climb
	begun     bool
}

// add takes the next reading.
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

// forget drops old hours.
func (t *turns) forget(hour int64) {
	if hour-t.hour > turnHours {
		t.highest, t.hour = [turnHours]memory.Bytes{}, hour
	}
	for t.hour < hour {
		t.hour++
		t.highest[t.hour%turnHours] = 0
	}
}

// turned reports whether demand fell by itself at the current level, or above it and below the limit.
func (t *turns) turned(p *Prediction) bool {
	return slices.ContainsFunc(t.highest[:], func(highest memory.Bytes) bool {
		return highest < p.Limit && highest.Plus(p.Limit/levelShare) >= p.Demand
	})
}
