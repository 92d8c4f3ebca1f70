// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"slices"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// A kill proves that more is needed only if the limit it is reported with was effective. A resize that never reached
// the container or its pod looks the same from outside: the container dies at the old limit, status shows the new one,
// and growing from that runs away. So growth must be confirmed: by use above the limit before, or by a pod that was
// created with the limit.
const (
	// reachWindow is the age of kills that count for growth. Earlier kills at a lower limit show the limit before memfit
	// raised it; earlier kills at a higher limit, and use at that time, belong to another release or load.
	reachWindow = 7 * period.Day
	// unprovenSteps is the number of raises without confirmation. They find a need of up to four times the limit for a
	// process that takes all its memory within a second, between two readings.
	unprovenSteps = 2
	// unprovenTimes bounds the result of these steps, in multiples of the highest limit or use that is proven: two
	// doublings. minUnproven is the same for small limits, where minIncrease and the allowance for young containers
	// make up most of a step: two such steps from a few MiB come to that much. 32Mi to 300Mi is found within it.
	unprovenTimes = 4
	minUnproven   = 512 * memory.MiB
	// provenPercent of the limit before must be exceeded by what was seen; the history rounds up by less.
	provenPercent = 101
)

// reach is the confirmed and unconfirmed growth after kills.
type reach struct {
	// proven is the highest limit that was effective without doubt, or the highest use seen.
	proven memory.Bytes
	// unproven are the limits above it of killed containers, by their status, lowest first.
	unproven []memory.Bytes
	// seen is the highest use ever seen.
	seen memory.Bytes
}

// findReach walks the limits that the container was killed at, lowest first. The first precedes any increase by memfit.
// Any other was effective if use exceeded the previous one.
func (e *evaluation) findReach() reach {
	r := reach{seen: max(e.highestDay(), e.rec.Evidence.PeakWorkingSet)}
	created := map[memory.Bytes]bool{}
	var highest memory.Bytes // of the kills in reachWindow
	for _, k := range e.kills {
		if e.since(k.Time) <= reachWindow {
			created[k.Limit] = created[k.Limit] || k.Proven
			highest, r.seen = max(highest, k.Limit), max(r.seen, k.Peak)
		}
	}
	var limits []memory.Bytes
	for _, k := range e.kills {
		if k.Limit > 0 && k.Limit <= highest {
			limits = append(limits, k.Limit)
		}
	}
	slices.Sort(limits)
	limits = slices.Compact(limits)
	for i, l := range limits {
		if i == 0 || created[l] || r.seen > limits[i-1].Percent(provenPercent) {
			r.proven, r.unproven = l, nil
		} else {
			r.unproven = append(r.unproven, l)
		}
	}
	r.proven = max(r.proven, r.seen)
	return r
}

// stopped: a kill at this limit asks for nothing, because too many raises before it are unconfirmed.
func (r *reach) stopped(limit memory.Bytes) bool {
	return len(r.unproven) >= unprovenSteps && limit >= r.unproven[unprovenSteps-1]
}

// most returns the highest limit that kills may grow to. Call it only with something unproven.
func (r *reach) most() memory.Bytes {
	most := max(r.proven.Percent(100*unprovenTimes), r.proven.Plus(minUnproven))
	if n := len(r.unproven); n >= unprovenSteps {
		most = min(most, r.unproven[n-1])
	}
	return most
}

// boundGrowth bounds unconfirmed growth and the growth of a leak. It does not lower the current limit.
func (e *evaluation) boundGrowth(limit memory.Bytes) memory.Bytes {
	return e.stopLeak(e.stopUnproven(limit))
}

func (e *evaluation) stopUnproven(limit memory.Bytes) memory.Bytes {
	r := &e.reach
	if len(r.unproven) == 0 {
		return limit
	}
	most := max(r.most(), e.Current.Limit)
	if limit > most {
		e.note("held at %s instead of %s: no raise since %s is confirmed by use, so at most %d times that, or %s more",
			most, limit, r.proven,
			unprovenTimes, minUnproven)
		limit = most
	}
	if at := e.newest.Limit; e.grown.limit > 0 && (r.stopped(at) || at >= r.most()) {
		e.alarm("killed at a limit of %s at %s, but use above %s was never seen: growth stops at %s. Either the raised "+
			"limits did not become effective "+
			"(compare the pod's status with memory.max inside the container, and replace the pod), or it takes its memory "+
			"faster than it is measured: "+
			"then set sizing.limit.min to what it needs", at, e.at(e.newest.Time), r.proven, limit.CeilTo(memory.MiB))
	}
	return limit
}

func (e *evaluation) stopLeak(limit memory.Bytes) memory.Bytes {
	if e.Leak == "" {
		return limit
	}
	if most := max(e.leakBound(), e.Current.Limit); limit > most || e.grown.limit > 0 {
		limit = min(limit, most)
		if e.Doubt != "" {
			e.note("%s: a leak, or still loading after its start, because %s. Until that is known it stays at %s; if it only "+
				"loads data at its start, set sizing.limit.min to what that takes", e.Leak, e.Doubt, limit.CeilTo(memory.MiB))
			return limit
		}
		e.alarm("leak: %s. A higher limit only delays the next kill, so it stays at %s: find what holds the memory (a heap "+
			"dump or profile just before the kill); "+
			"if it only loads data at its start, set sizing.limit.min to what that takes", e.Leak, limit.CeilTo(memory.MiB))
	}
	return limit
}

// leakBound returns the limit of a leak: the highest that it was killed at, one step above the first, or the use before
// it began.
func (e *evaluation) leakBound() memory.Bytes {
	var most memory.Bytes
	first := e.Now
	for _, k := range e.kills {
		if e.since(k.Time) <= reachWindow {
			most = max(most, k.Limit)
			if k.Time.Before(first) {
				first = k.Time
			}
		}
	}
	var healthy memory.Bytes
	for _, d := range e.History.Days() {
		if !d.Start.Add(period.Day.Duration()).After(first) {
			healthy = max(healthy, d.Peak)
		}
	}
	if healthy > 0 {
		most = max(most, e.plusHeadroom(healthy))
	}
	return most
}
