// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"cmp"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

const (
	// usualQuantile is the share of past hours whose peak the request covers.
	usualQuantile = 0.9
	// requestRest is how long a request is not lowered below the memory that was in use. In six hours, bursts that recur
	// several times a day do not move the request up and down each time.
	requestRest = 6 * period.Hour
)

// request returns the request for a limit (0: unlimited): the limit itself, or usual use with a third of the headroom,
// but at least the memory in use. Use that sometimes exceeds the request makes an eviction under node pressure more
// likely, but causes no OOM kill. The request is lowered only after a day of use, and never within an hour of a kill.
func (e *evaluation) request(limit memory.Bytes) memory.Bytes {
	p := e.Policy
	request := limit
	if !p.RequestEqualsLimit || limit == 0 {
		usual := e.History.Quantile(usualQuantile)
		if usual == 0 && limit > 0 {
			// a kill, but no samples: the container used its limit at the kill
			usual = min(max(e.growth.proven, e.Current.Request), limit)
		}
		request = usual.Plus(e.headroom(usual) / 3).CeilTo(memory.MiB)
		e.note("request: %.0f %% of hours peaked at %s or less, + a third of the headroom = %s", 100*usualQuantile, usual,
			request)
	}
	request = max(request, e.requestInUse(limit))
	if least := e.leastRequest(); request < least {
		e.note(
			"request stays at %s although %s is enough: it is lowered after a day of exact demand of all pods, but not "+
				"within hours of needing it or of a kill",
			least, request,
		)
		request = least
	}
	withCache := min(request.Plus(e.cacheInUse()), e.Current.Request)
	if limit > 0 {
		withCache = min(withCache, limit)
	}
	if withCache > request {
		e.note("request stays at %s although %s is enough: the kubelet counts %s of page cache in use, and evicts pods that "+
			"exceed their requests first", withCache, request, e.cacheInUse())
		request = withCache
	}
	return p.boundRequest(request, limit, e.Current.Request)
}

// cacheInUse returns the page cache in active use: peak working set minus peak demand; 0 if that is little. The kernel
// reclaims page cache at the limit, but the kubelet counts it when it ranks pods for eviction.
func (e *evaluation) cacheInUse() memory.Bytes {
	ev := e.rec.Evidence
	if ev.PeakWorkingSet <= e.plusHeadroom(ev.PeakDemand) {
		return 0
	}
	return ev.PeakWorkingSet.Minus(ev.PeakDemand).CeilTo(memory.MiB)
}

// leastRequest returns the size below which the request is not lowered now; 0: none.
func (e *evaluation) leastRequest() memory.Bytes {
	cur := e.Current.Request
	switch {
	case e.afterKill.limit > 0, e.age() < period.Day, e.certainty != history.Exact:
		return cur
	case e.UnmeasuredContainer != "":
		return min(cur, cmp.Or(e.Last.Request, cur))
	case e.InUse == 0:
		return 0
	}
	var buf [history.HoursKept]history.Hour
	var recent memory.Bytes
	for _, h := range e.History.AppendHours(buf[:0]) {
		if e.since(h.Start) < requestRest {
			recent = max(recent, h.Peak)
		}
	}
	return min(cur, recent)
}

// requestInUse returns a request that covers the memory in use; 0 if that is unknown. A raised request includes
// headroom, so that it is not raised again with each MiB.
func (e *evaluation) requestInUse(limit memory.Bytes) memory.Bytes {
	p, cur := e.Policy, e.Current.Request
	switch {
	case e.InUse == 0:
		return 0
	case p.RequestMax > 0 && e.InUse > p.RequestMax:
		e.note(
			"request is limited to request.max %s although %s is in use: the scheduler may give the rest to other pods",
			p.RequestMax, e.InUse,
		)
	case e.InUse <= cur:
		return p.boundRequest(e.InUse.CeilTo(memory.MiB), limit, cur)
	}
	return p.boundRequest(e.plusHeadroom(e.InUse).CeilTo(memory.MiB), limit, cur)
}
