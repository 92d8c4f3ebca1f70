// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import "github.com/memfit/memfit/internal/memory"

// minHeadroom keeps very small containers from being sized within one allocation of their peak.
const minHeadroom = 8 * memory.MiB

func (e *evaluation) headroom(need memory.Bytes) memory.Bytes {
	return max(need.Percent(e.Policy.HeadroomPercent), minHeadroom)
}

func (e *evaluation) plusHeadroom(need memory.Bytes) memory.Bytes { return need.Plus(e.headroom(need)) }

// headroomWords is the headroom as it was chosen: "15 %", or "8Mi" where that is more.
func (e *evaluation) headroomWords(need memory.Bytes) string {
	if need.Percent(e.Policy.HeadroomPercent) < minHeadroom {
		return minHeadroom.String()
	}
	return sprintf("%d %%", e.Policy.HeadroomPercent)
}

// boundLimit rounds up to whole MiB and keeps the owner's bounds, naming the one that applied.
func (e *evaluation) boundLimit(limit memory.Bytes) memory.Bytes {
	p, want := e.Policy, limit.CeilTo(memory.MiB)
	limit = want
	if p.DecreaseNever && limit < e.Current.Limit {
		e.say("limit stays at %s although %s would do: decrease is Never", e.Current.Limit, limit)
		limit = e.Current.Limit
	}
	if limit < p.LimitMin {
		e.say("raised from %s to limit.min %s", limit, p.LimitMin)
		limit = p.LimitMin
	}
	if p.LimitMax > 0 && limit > p.LimitMax {
		e.say("clamped from %s to limit.max %s", limit, p.LimitMax)
		limit = p.LimitMax
		e.alarmAtMax()
	}
	return limit
}

// alarmAtMax: kills at the bound will go on until somebody decides.
func (e *evaluation) alarmAtMax() {
	for _, k := range e.kills {
		if k.Limit >= e.Policy.LimitMax && e.Now.Sub(k.Time) < day {
			e.alarm("killed at limit.max %s, growth stops here: raise limit.max, or look for a leak", e.Policy.LimitMax)
			return
		}
	}
}

// usualQuantile is the share of past hours whose peak the request covers.
const usualQuantile = 0.9

// request follows from the limit: the limit itself, or usual use with a third of the headroom, because a request that is passed now and
// then costs a place in the eviction order and no kill.
func (e *evaluation) request(limit memory.Bytes) memory.Bytes {
	p := e.Policy
	if limit == 0 {
		return 0
	}
	request := limit
	if !p.RequestEqualsLimit {
		usual := e.History.Quantile(usualQuantile)
		if usual == 0 {
			usual = limit // after a kill without samples: nothing says that less is usual
		}
		request = usual.Plus(e.headroom(usual) / 3).CeilTo(memory.MiB)
	}
	if p.DecreaseNever {
		request = max(request, e.Current.Request)
	}
	if p.RequestMax > 0 {
		request = min(request, p.RequestMax)
	}
	return min(max(request, p.RequestMin), limit)
}
