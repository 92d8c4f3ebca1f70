// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"slices"

	"github.com/memfit/memfit/internal/memory"
)

const (
	// turnShare of the limit, and at least a MiB, must be gained and given back to be a turn.
	turnShare = 32
	// levelShare of the limit is the same level.
	levelShare = 64
	// turnHours is for how many hours the highest turn of each is remembered: what a job does once a day is known when it
	// comes back.
	turnHours = 24
)

// turns are the levels at which demand turned around by itself, as that of a garbage-collected heap or of a batch of
// work does: the highest of each of the last turnHours. Highest and not last ones, because the many small turns between
// two bursts say nothing about the next.
type turns struct {
	highest   [turnHours]memory.Bytes // by hour since 1970, modulo turnHours
	hour      int64                   // of the newest reading
	low, high memory.Bytes            // of the climb that goes on
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
	case demand < t.low: // the climb has not begun
		t.low, t.high = demand, demand
	}
}

// forget drops the hours that are too old.
func (t *turns) forget(hour int64) {
	if hour-t.hour > turnHours {
		t.highest, t.hour = [turnHours]memory.Bytes{}, hour
	}
	for t.hour < hour {
		t.hour++
		t.highest[t.hour%turnHours] = 0
	}
}

// turned reports whether memory has turned around at the predicted container's level, or above it and below the limit.
// An hour in which it turned around above the limit, while that was higher, is none to go by: it may do so again.
func (t *turns) turned(p *Prediction) bool {
	return slices.ContainsFunc(t.highest[:], func(highest memory.Bytes) bool {
		return highest < p.Limit && highest.Plus(p.Limit/levelShare) >= p.Demand
	})
}
