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
	// requestRest is how long a request that use has needed is kept: a quarter of a day, so that a burst that comes
	// back several times a day, but in fewer hours than usualQuantile sees, does not move it up and down each time.
	requestRest = 6 * period.Hour
)

// request follows from the limit (0: unlimited): the limit itself, or usual use with a third of the headroom, because
// a request that is passed now and then costs a place in the eviction order and no kill. But it is never below what is
// in use, and like a limit it is lowered on a day of use at least, and never because of a kill.
func (e *evaluation) request(limit memory.Bytes) memory.Bytes {
	p := e.Policy
	request := limit
	if !p.RequestEqualsLimit || limit == 0 {
		usual := e.History.Quantile(usualQuantile)
		if usual == 0 && limit > 0 {
			// after a kill without samples: what it died at, it did use
			usual = min(max(e.reach.proven, e.Current.Request), limit)
		}
		request = usual.Plus(e.headroom(usual) / 3).CeilTo(memory.MiB)
		e.say("request: %.0f %% of hours peaked at %s or less, + a third of the headroom = %s", 100*usualQuantile, usual,
			request)
	}
	request = max(request, e.requestInUse(limit))
	if least := e.leastRequest(); request < least {
		e.say(
			"request stays at %s although %s would do: it is lowered on a day of exact demand of all pods, and not within "+
				"hours of needing it or of a kill",
			least, request,
		)
		request = least
	}
	with := min(request.Plus(e.cacheInUse()), e.Current.Request)
	if limit > 0 {
		with = min(with, limit)
	}
	if with > request {
		e.say("request stays at %s although %s would do: the kubelet counts %s of page cache in use, and evicts first what "+
			"exceeds its request", with, request, e.cacheInUse())
		request = with
	}
	return p.boundRequest(request, limit, e.Current.Request)
}

// cacheInUse returns the page cache of files that are read again and again: the working set beyond demand, by the peaks
// of both. The kernel reclaims it at the limit, but the kubelet counts it when it ranks pods for eviction. 0: little.
func (e *evaluation) cacheInUse() memory.Bytes {
	ev := e.rec.Evidence
	if ev.PeakWorkingSet <= e.plusHeadroom(ev.PeakDemand) {
		return 0
	}
	return ev.PeakWorkingSet.Minus(ev.PeakDemand).CeilTo(memory.MiB)
}

// leastRequest returns the request that may not be lowered now; 0: it may.
func (e *evaluation) leastRequest() memory.Bytes {
	cur := e.Current.Request
	switch {
	case e.grown.limit > 0, e.age() < period.Day, e.certainty != history.Exact:
		return cur
	case e.Unseen != "":
		return min(cur, cmp.Or(e.Last.Request, cur))
	case e.InUse == 0:
		return 0
	}
	var buf [history.HoursKept]history.Hour
	var lately memory.Bytes
	for _, h := range e.History.AppendHours(buf[:0]) {
		if e.since(h.Start) < requestRest {
			lately = max(lately, h.Peak)
		}
	}
	return min(cur, lately)
}

// requestInUse returns the request that holds what is in use, with headroom where the request is raised for it, so that
// it is not raised again with each MiB; 0 where nothing is known.
func (e *evaluation) requestInUse(limit memory.Bytes) memory.Bytes {
	p, cur := e.Policy, e.Current.Request
	switch {
	case e.InUse == 0:
		return 0
	case p.RequestMax > 0 && e.InUse > p.RequestMax:
		e.say(
			"request held at request.max %s although %s is in use: the node may promise the rest to others", p.RequestMax,
			e.InUse,
		)
	case e.InUse <= cur:
		return p.boundRequest(e.InUse.CeilTo(memory.MiB), limit, cur)
	}
	return p.boundRequest(e.plusHeadroom(e.InUse).CeilTo(memory.MiB), limit, cur)
}
