// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"slices"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

func (e *evaluation) headroom(need memory.Bytes) memory.Bytes {
	return max(need.Percent(e.Policy.HeadroomPercent), e.model.MinHeadroom)
}

func (e *evaluation) plusHeadroom(need memory.Bytes) memory.Bytes { return need.Plus(e.headroom(need)) }

// headroomWords returns the headroom in words: "15 %", or "8Mi" if the minimum applies.
func (e *evaluation) headroomWords(need memory.Bytes) string {
	if need.Percent(e.Policy.HeadroomPercent) < e.model.MinHeadroom {
		return e.model.MinHeadroom.String()
	}
	return sprintf("%d %%", e.Policy.HeadroomPercent)
}

// Bound returns a size within the bounds of the policy, with a sentence for each bound that changed it. Every use of a
// size calls Bound, because the policy may have changed since the size was computed. current is the size of the
// container, or of its template; with DecreaseNever no size is below it. A limit or request of 0 remains 0 (not set).
func (p Policy) Bound(size, current memory.Size) (memory.Size, []string) {
	var why []string
	if size.Limit > 0 {
		size.Limit, why = p.boundLimit(size.Limit, current.Limit, 0)
	}
	if want := size.Request; want > 0 {
		size.Request = p.boundRequest(want, size.Limit, current.Request)
		if size.Request != want {
			why = append(why, sprintf("request %s instead of %s: %s", orNone(size.Request), want, p.requestWords(size, current)))
		}
	}
	return size, why
}

// boundLimit returns a limit within the bounds, with a sentence for each bound that changed it. rss is the highest
// anonymous memory, which excludes files in volumes; 0: unknown. The limit of the whole pod has precedence, because the
// API server rejects a container limit above it.
func (p Policy) boundLimit(limit, current, rss memory.Bytes) (memory.Bytes, []string) {
	var why []string
	want, least := limit, current
	if current == 0 && !p.SharesLimit {
		least = memory.Max // unlimited
	}
	if p.DecreaseNever && limit < least {
		why = append(why, sprintf("limit stays at %s although %s is enough: decrease is Never", orNone(current), limit))
		limit = least
	}
	if floor := min(p.PreviousNeed, least); limit < floor {
		why = append(why, sprintf("limit stays at %s although %s is enough: the previous program needed it, and ran "+
			"longer than the current one has", floor, limit))
		limit = floor
	}
	if floor := p.volumeFloor(current, rss); limit < floor {
		why = append(why, sprintf("limit stays at %s although %s is enough: memory-backed volumes may hold %s (sizeLimit)",
			floor, limit, p.VolumeSizeLimits))
		limit = floor
	}
	if limit < p.LimitMin {
		why = append(why, sprintf("raised from %s to limit.min %s", limit, p.LimitMin))
		limit = p.LimitMin
	}
	if p.LimitMax > 0 && limit > p.LimitMax {
		why = append(why, sprintf("clamped from %s to limit.max %s", limit, p.LimitMax))
		limit = p.LimitMax
	}
	if limit == memory.Max {
		return 0, why
	}
	if p.PodLimit > 0 && limit > p.PodLimit {
		why = append(
			why, sprintf("clamped from %s to the limit of the whole pod, %s (spec.resources.limits.memory)", limit, p.PodLimit),
		)
		limit = p.PodLimit
	}
	if limit == want { // two bounds that cancel each other out
		return limit, nil
	}
	return limit, why
}

// volumeFloor returns the lowest limit for the memory-backed volumes: their size limits plus anonymous memory, but not
// more than the current limit. A limit is never raised for volumes, because the kubelet sizes them by the limit.
func (p Policy) volumeFloor(current, rss memory.Bytes) memory.Bytes {
	if p.VolumeSizeLimits == 0 {
		return 0
	}
	floor := p.VolumeSizeLimits.Plus(rss).CeilTo(memory.MiB)
	if current == 0 {
		return floor
	}
	return min(floor, current)
}

// boundRequest returns a request within the bounds, and not above limit (0: unlimited).
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
	if request < memory.KiB { // PodRequest is 1 byte if nothing is left
		return 0
	}
	if limit > 0 {
		request = min(request, limit)
	}
	return request
}

// requestWords returns why the request of a bounded size was changed.
func (p Policy) requestWords(size, current memory.Size) string {
	switch {
	case size.Request == 0, size.Request == p.PodRequest:
		return "the request of the whole pod (spec.resources.requests.memory) leaves no more"
	case size.Request == p.RequestMax:
		return "request.max"
	case size.Request == p.RequestMin:
		return "request.min"
	case size.Request == current.Request && p.DecreaseNever:
		return "decrease is Never"
	}
	if p.RequestEqualsLimit {
		return "requestPolicy is EqualsLimit"
	}
	return "a request is at most the limit"
}

// outside reports whether the policy does not allow a size. Such a size is changed even if the change is small.
func (p Policy) outside(size memory.Size) bool {
	bounded, _ := p.Bound(size, size)
	return bounded != size
}

// boundLimit rounds a limit up to whole MiB and applies all bounds. It adds reasons, advice and alarms for them.
func (e *evaluation) boundLimit(limit memory.Bytes) memory.Bytes {
	p, want := e.Policy, e.belowCeiling(e.aboveOwnHeap(limit.CeilTo(memory.MiB)))
	limit, why := p.boundLimit(want, e.Current.Limit, e.rec.Evidence.PeakRSS)
	for _, text := range why {
		e.note("%s", text)
	}
	switch {
	case limit >= want, limit == 0:
	case limit == p.PodLimit:
		e.advise(
			"raise the limit of the whole pod (spec.resources.limits.memory): a container may have no more than its %s",
			p.PodLimit,
		)
	case limit == p.LimitMax:
		e.alarmAt(p.LimitMax, "limit.max "+p.LimitMax.String(), "raise limit.max")
	}
	return limit
}

// aboveOwnHeap returns at least the limit that the owner's heap cap needs, but not more than the current limit for it.
func (e *evaluation) aboveOwnHeap(limit memory.Bytes) memory.Bytes {
	t := e.Traits
	if t.OwnHeap == 0 {
		return limit
	}
	least := e.plusHeadroom(t.OwnHeap.Plus(t.Overhead)).Plus(t.Reserve).CeilTo(memory.MiB)
	if e.Current.Limit > 0 {
		least = min(least, e.Current.Limit)
	}
	if e.rollbackTo > 0 { // a raise that did not help is rolled back
		least = min(least, e.rollbackTo)
	}
	if limit >= least {
		return limit
	}
	e.note("limit is %s although %s is enough: %s permits a heap of %s; lower it to save memory", least, limit,
		t.OwnHeapBy, t.OwnHeap)
	return least
}

// boundIncrease returns the current limit instead of a higher one if the policy raises limits only after kills, and no
// kill, however old, was at the current limit.
func (e *evaluation) boundIncrease(limit memory.Bytes) memory.Bytes {
	have := e.Current.Limit
	if !e.Policy.IncreaseAfterKill || have == 0 || limit <= have {
		return limit
	}
	if slices.ContainsFunc(e.kills, func(k memory.OOMKill) bool { return max(k.Limit, k.Peak) >= have }) {
		return limit
	}
	e.note("limit stays at %s although use needs %s: increase is AfterKill, and there was no OOM kill at this limit", have,
		limit.CeilTo(memory.MiB))
	return have
}

// alarmAt adds an alarm if there was a recent kill at a bound: kills continue until the owner acts.
func (e *evaluation) alarmAt(bound memory.Bytes, name, remedy string) {
	for _, k := range e.kills {
		if k.Limit >= bound && e.since(k.Time) < period.Day {
			e.alarm("killed at %s, growth stops here: %s, or look for a leak", name, remedy)
			return
		}
	}
}

const (
	// ceilingPercent of the largest node's allocatable memory is the highest limit without limit.max. So after a leak or a
	// wrong reading, the container still fits a node, and the other half remains for other pods.
	ceilingPercent = 50
	// usualNode is the assumed size of the largest node if no node is known: a small node.
	usualNode = 16 * memory.GiB
)

// belowCeiling lowers a limit to the ceiling if limit.max is not set.
func (e *evaluation) belowCeiling(limit memory.Bytes) memory.Bytes {
	most := e.ceiling()
	if e.Policy.LimitMax > 0 || limit <= most {
		return limit
	}
	of := sprintf("%d %% of the largest node's %s", ceilingPercent, e.LargestNode)
	if e.LargestNode == 0 {
		of = sprintf("%d %% of a node of %s, because no node is known", ceilingPercent, usualNode)
	}
	e.note("limit %s instead of %s: without limit.max a limit grows to at most %s", most, limit, of)
	e.alarmAt(most, of, "set sizing.limit.max")
	return most
}

// ceiling returns the highest limit without limit.max. It is not below the current limit or, without a current limit,
// the highest use with headroom.
func (e *evaluation) ceiling() memory.Bytes {
	node := e.LargestNode
	if node == 0 {
		node = usualNode
	}
	most := node.Percent(ceilingPercent).FloorTo(memory.MiB)
	if e.Current.Limit == 0 {
		return max(most, e.plusHeadroom(e.highestDay()).CeilTo(memory.MiB))
	}
	return max(most, e.Current.Limit)
}
