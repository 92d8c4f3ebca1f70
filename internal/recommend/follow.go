// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"math"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// What a runtime that sizes its heap from the limit makes of its memory. Use up to that cap is not demand: it would be used whatever the
// limit, and a size taken from it would drive itself up or down for ever (VPA does, above 87 % and below 80 % fill).
const (
	// usualHeapPercent is assumed when the share of the heap is not known.
	usualHeapPercent = 50
	// fillsPercent: from this share of its cap on, a peak says nothing about demand.
	fillsPercent = 80
	// collectedPercent: low points above this share of the peak show no collection, so the live set is not known.
	collectedPercent = 80
	// liveRoomPercent is the heap that a live set is given to collect in peace: garbage collectors slow down sharply below 1.3 times.
	liveRoomPercent = 150
	// followsElasticity: low points that move at least half as much as the limit did, in proportion, are no live set.
	followsElasticity = 0.5
)

// followerLimit sizes a runtime that fills what it is given, by its live set. When that is not known, the limit stays.
func (e *evaluation) followerLimit() memory.Bytes {
	now, before := e.History.Regimes()
	limit := max(e.Current.Limit, now.Limit)
	name := e.Traits.Name
	if name == "" {
		name = "the runtime"
	}
	heap := e.Traits.HeapPercent
	if heap <= 0 || heap > 100 {
		heap = usualHeapPercent
	}
	if limit == 0 || now.Peak < limit.Percent(heap).Percent(fillsPercent) {
		return e.unfilledLimit(heap)
	}
	live := now.Low
	switch {
	case live == 0:
		e.say("%s sizes its heap from the limit: use of %s is not demand, and no whole hour has shown its live set yet; limit stays at %s", name, now.Peak, limit)
		return limit
	case followed(now, before):
		e.say("%s follows its limit: low points went from %s to %s when the limit went from %s to %s; limit stays at %s",
			name, before.Low, live, before.Limit, now.Limit, limit)
		return limit
	case live > now.Peak.Percent(collectedPercent):
		e.say("%s fills its cap: low points of %s are close to the peak of %s, so its live set is not known; limit stays at %s", name, live, now.Peak, limit)
		return limit
	}
	room := live.Minus(e.Traits.Overhead).Percent(liveRoomPercent)
	capped := room.Percent(10000 / heap) // the limit at which the heap's share is that room
	sized := max(capped, e.plusHeadroom(room.Plus(e.Traits.Overhead)))
	e.say("%s fills its heap cap, so its peak of %s is not demand: live set %s (low points), %d %% of it as heap room, heap %d %% of the limit: %s",
		name, now.Peak, live, liveRoomPercent, heap, sized)
	return sized
}

// unfilledLimit is for a runtime that has not filled its heap cap: its peak is demand, and its heap must go on fitting below the cap.
func (e *evaluation) unfilledLimit(heap int32) memory.Bytes {
	limit := e.demandLimit()
	peak := e.highestDay().Minus(e.Traits.Overhead)
	if fits := peak.Percent(10000 / heap); fits > limit {
		e.say("%s so that a heap of %s stays below its cap, %d %% of the limit", fits, peak, heap)
		return fits
	}
	return limit
}

// followed is true when low points moved with the limit.
func followed(now, before history.Regime) bool {
	if before.Low == 0 || now.Low == 0 || before.Limit == now.Limit || before.Limit == 0 {
		return false
	}
	moved := math.Log(float64(now.Low) / float64(before.Low))
	return moved/math.Log(float64(now.Limit)/float64(before.Limit)) >= followsElasticity
}
