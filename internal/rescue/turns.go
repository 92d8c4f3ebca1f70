// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"time"

	"github.com/memfit/memfit/internal/memory"
)

const (
	// teethKept bounds what is remembered of a sawtooth.
	teethKept = 16
	// toothShare of the limit, and at least a MiB, must be gained and given back to be a tooth.
	toothShare = 32
	// levelShare of the limit is the same level.
	levelShare = 64
	// teethLeast at a level show that memory turns around there by itself: one may have been the end of a request.
	teethLeast = 2
	// teethFor is how long they show that. A heap whose live data has grown for an hour turns around elsewhere.
	teethFor = time.Hour
)

// teeth are the levels at which demand turned around by itself, as a garbage-collected heap does.
type teeth struct {
	all       [teethKept]reading
	next      int
	low, high memory.Bytes // of the climb that goes on
	begun     bool
}

// add takes the next reading.
func (t *teeth) add(at memory.Instant, demand, limit memory.Bytes) {
	fall := max(limit/toothShare, memory.MiB)
	switch {
	case !t.begun:
		t.low, t.high, t.begun = demand, demand, true
	case demand > t.high:
		t.high = demand
	case t.high-demand >= fall:
		if t.high-t.low >= fall {
			t.all[t.next] = reading{at, t.high}
			t.next = (t.next + 1) % teethKept
		}
		t.low, t.high = demand, demand
	case demand < t.low: // the climb has not begun
		t.low, t.high = demand, demand
	}
}

// turned reports whether memory has turned around at the predicted container's level before.
func (t *teeth) turned(p *Prediction) bool {
	there := 0
	for _, tooth := range t.all {
		if !tooth.at.IsZero() && p.At.Sub(tooth.at.Time()) <= teethFor &&
			tooth.demand.Plus(p.Limit/levelShare) >= p.Demand {
			there++
		}
	}
	return there >= teethLeast
}
