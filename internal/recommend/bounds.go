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

// Bound is a size as the policy allows it now, with a sentence for each bound that changed it. A size that stands from before is no
// exception: the policy may have changed since, so whoever uses a size asks here first. current is what the container has, or what its
// template asks for; with DecreaseNever nothing goes below it. What is 0 stays 0: nobody asked for a limit or request there.
func (p Policy) Bound(size, current Size) (Size, []string) {
	p = p.withDefaults()
	var why []string
	if size.Limit > 0 {
		size.Limit, why = p.boundLimit(size.Limit, current.Limit)
	}
	if want := size.Request; want > 0 {
		size.Request = p.boundRequest(want, size.Limit, current.Request)
		if size.Request != want {
			why = append(why, sprintf("request %s instead of %s: %s", orNone(size.Request), want, p.requestWords(size, current)))
		}
	}
	return size, why
}

// boundLimit keeps a limit within the bounds. What is above the limit of the whole pod, the API server refuses, so that comes last.
func (p Policy) boundLimit(limit, current memory.Bytes) (memory.Bytes, []string) {
	var why []string
	want := limit
	if p.DecreaseNever && limit < current {
		why = append(why, sprintf("limit stays at %s although %s would do: decrease is Never", current, limit))
		limit = current
	}
	if limit < p.LimitMin {
		why = append(why, sprintf("raised from %s to limit.min %s", limit, p.LimitMin))
		limit = p.LimitMin
	}
	if p.LimitMax > 0 && limit > p.LimitMax {
		why = append(why, sprintf("clamped from %s to limit.max %s", limit, p.LimitMax))
		limit = p.LimitMax
	}
	if p.PodLimit > 0 && limit > p.PodLimit {
		why = append(why, sprintf("clamped from %s to the limit of the whole pod, %s (spec.resources.limits.memory)", limit, p.PodLimit))
		limit = p.PodLimit
	}
	if limit == want { // two bounds that cancel each other out
		return limit, nil
	}
	return limit, why
}

// boundRequest does the same for a request, which is never above its limit (0: there is none).
func (p Policy) boundRequest(request, limit, current memory.Bytes) memory.Bytes {
	if p.RequestEqualsLimit && limit > 0 {
		request = limit
	}
	if p.DecreaseNever {
		request = max(request, current)
	}
	if p.RequestMax > 0 {
		request = min(request, p.RequestMax)
	}
	request = max(request, p.RequestMin)
	if p.PodRequest > 0 {
		request = min(request, p.PodRequest)
	}
	if request < memory.KiB { // the byte that stands for nothing left
		return 0
	}
	if limit > 0 {
		request = min(request, limit)
	}
	return request
}

// requestWords names the bound that a request was brought to.
func (p Policy) requestWords(size, current Size) string {
	switch size.Request {
	case 0, p.PodRequest:
		return "the request of the whole pod (spec.resources.requests.memory) leaves no more"
	case p.RequestMax:
		return "request.max"
	case p.RequestMin:
		return "request.min"
	case current.Request:
		if p.DecreaseNever {
			return "decrease is Never"
		}
	}
	if p.RequestEqualsLimit {
		return "requestPolicy is EqualsLimit"
	}
	return "a request is at most the limit"
}

// outside says whether a size is one that the policy does not allow. It then is not right as it is, however near to the right one.
func (p Policy) outside(size Size) bool {
	bounded, _ := p.Bound(size, size)
	return bounded != size
}

// boundLimit rounds up to whole MiB and keeps the owner's bounds, naming the one that applied.
func (e *evaluation) boundLimit(limit memory.Bytes) memory.Bytes {
	p, want := e.Policy, limit.CeilTo(memory.MiB)
	limit, why := p.boundLimit(want, e.Current.Limit)
	for _, text := range why {
		e.say("%s", text)
	}
	switch {
	case limit >= want:
	case limit == p.PodLimit:
		e.advise("raise the limit of the whole pod (spec.resources.limits.memory): a container may have no more than its %s", p.PodLimit)
	case limit == p.LimitMax:
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
	return p.boundRequest(request, limit, e.Current.Request)
}
