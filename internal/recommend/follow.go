// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"fmt"
	"math"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// Constants for runtimes that size their heap from the limit. Use up to the heap cap is not demand: the runtime would
// fill any limit, and a size computed from use would rise or fall forever.
const (
	// usualHeapPercent is the assumed share of the heap if it is unknown.
	usualHeapPercent = 50
	// fillsPercent is the share of the heap cap from which a peak may be a full heap instead of demand.
	fillsPercent = 80
	// collectedPercent is the share of the peak above which low points show no collection: the live set is unknown.
	collectedPercent = 80
	// liveHeapPercent is the heap for a live set, as a share of it. Garbage collectors slow down sharply below 130 %.
	liveHeapPercent = 150
	// followsElasticity is the relative change of use, divided by that of the limit, from which use follows the limit.
	followsElasticity = 0.5
)

// followerLimit returns the limit of a runtime whose heap may follow the limit. If the heap fills its cap, the limit is
// sized by the live set. It is not changed if the live set is unknown, or if the heap cap may not follow the limit.
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
	live := now.Low
	switch {
	case limit > 0 && followed(now, before):
		e.note("%s sizes its heap from the limit: peaks went from %s to %s since the limit went from %s to %s, so they may "+
			"not be demand; limit stays at %s", name, before.Peak, now.Peak, before.Limit, now.Limit, limit)
		return limit
	case limit == 0 || now.Peak < limit.Minus(e.Traits.Reserve).Percent(heap).Percent(fillsPercent):
		return e.unfilledLimit(heap)
	case !e.Traits.FollowsLimit:
		e.note("%s may size its heap from the limit (%d %%), but memfit neither set nor read its cap: use of %s may be a "+
			"heap that fills the cap, so the limit stays at %s. Set heapPercent in the profile, or run the agent",
			name, heap, now.Peak, limit)
		return limit
	case live == 0:
		e.note(
			"%s sizes its heap from the limit: use of %s is not demand, and no whole hour has shown its live set yet; limit "+
				"stays at %s",
			name, now.Peak, limit,
		)
		return limit
	case live > now.Peak.Percent(collectedPercent):
		e.note(
			"%s fills its cap: low points of %s are close to the peak of %s, so its live set is not known; limit stays at %s",
			name, live, now.Peak, limit,
		)
		return limit
	}
	space := live.Minus(e.Traits.Overhead).Percent(liveHeapPercent)
	capped := e.limitFor(space, heap)
	sized := max(capped, e.plusHeadroom(space.Plus(e.Traits.Overhead)))
	if sized > limit {
		e.advise(
			"the live set of %s leaves the collector little space in a heap of %d %% of %s: try a limit of %s", live, heap,
			limit, sized,
		)
		e.note(
			"%s fills its heap cap, so its peak of %s is not demand; its live set of %s fits, and no kill requires more: "+
				"limit stays at %s",
			name, now.Peak, live, limit,
		)
		return limit
	}
	e.note("%s fills its heap cap, so its peak of %s is not demand: live set %s (low points), %d %% of it as heap, "+
		"heap %d %% of the limit%s: %s",
		name, now.Peak, live, liveHeapPercent, heap, e.reserved(), sized)
	return sized
}

// limitFor returns the limit at which the heap's share is heap, plus the reserve. It does not subtract the reserve from
// observed use, because it is unknown how much of the use was in the reserved part.
func (e *evaluation) limitFor(heap memory.Bytes, percent int32) memory.Bytes {
	return heap.Percent(10000 / percent).Plus(e.Traits.Reserve)
}

// reserved returns the end of a reason about tuning.reserve; "" without a reserve.
func (e *evaluation) reserved() string {
	if e.Traits.Reserve == 0 {
		return ""
	}
	return fmt.Sprintf(" less tuning.reserve %s", e.Traits.Reserve)
}

// unfilledLimit returns the limit of a runtime that has not filled its heap cap: its peak is demand, and its heap must
// still fit below the cap.
func (e *evaluation) unfilledLimit(heap int32) memory.Bytes {
	limit := e.demandLimit()
	peak := e.highestDay().Minus(e.Traits.Overhead)
	if fits := e.limitFor(peak, heap); fits > limit {
		e.note("%s so that a heap of %s stays below its cap, %d %% of the limit%s", fits, peak, heap, e.reserved())
		return fits
	}
	return limit
}

// followed reports whether use moved with the limit when the limit changed. This is also true after memfit sized the
// limit by the live set; the limit is then right, and is kept.
func followed(now, before history.Regime) bool {
	if now.Peak == 0 || before.Peak == 0 || before.Limit == 0 || before.Limit == now.Limit {
		return false
	}
	moved := math.Log(float64(now.Peak) / float64(before.Peak))
	return moved/math.Log(float64(now.Limit)/float64(before.Limit)) >= followsElasticity
}
