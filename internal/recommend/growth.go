// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"slices"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// A kill shows that more is needed only if its limit was effective. If a resize does not take effect, the container is
// killed at the previous limit while its status shows the new one, and each raise from the new limit would cause the
// next. So growth must be confirmed: by use above the previous limit, or by a pod that was created with the new limit.
const (
	// growthWindow is the age of kills that count for growth. Of older kills, only those at a lower limit count, as the
	// limit before a raise; those at a higher limit belong to another release or load.
	growthWindow = 7 * period.Day
	// unprovenSteps is the number of raises without confirmation. They find a need of up to four times the limit for a
	// process that takes all its memory between two readings.
	unprovenSteps = 2
	// unprovenTimes bounds unconfirmed growth, in multiples of the highest proven limit or use: two doublings.
	unprovenTimes = 4
	// minUnproven replaces this bound for small limits, for which the smallest raise and the headroom of young containers
	// are most of a raise.
	minUnproven = 512 * memory.MiB
	// provenPercent of the previous limit must be exceeded by use to confirm a raise; the history rounds up by less.
	provenPercent = 101
)

// confirmedGrowth is the confirmed and the unconfirmed growth after kills.
type confirmedGrowth struct {
	proven   memory.Bytes   // the highest limit that was certainly effective, or the highest use
	unproven []memory.Bytes // reported limits of kills above proven, lowest first
	seen     memory.Bytes   // the highest use
}

// confirmGrowth checks the limits that the container was killed at, lowest first. The lowest was effective, because it
// precedes any raise. Any other was effective if use exceeded the limit before it, or if a pod was created with it.
func (e *evaluation) confirmGrowth() confirmedGrowth {
	g := confirmedGrowth{seen: max(e.highestDay(), e.rec.Evidence.PeakWorkingSet)}
	created := map[memory.Bytes]bool{}
	var highest memory.Bytes // of the kills in growthWindow
	for _, k := range e.kills {
		if e.since(k.Time) <= growthWindow {
			created[k.Limit] = created[k.Limit] || k.Proven
			highest, g.seen = max(highest, k.Limit), max(g.seen, k.Peak)
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
		if i == 0 || created[l] || g.seen > limits[i-1].Percent(provenPercent) {
			g.proven, g.unproven = l, nil
		} else {
			g.unproven = append(g.unproven, l)
		}
	}
	g.proven = max(g.proven, g.seen)
	return g
}

// stopped reports whether a kill at a limit causes no raise, because too many raises before it are unconfirmed.
func (g *confirmedGrowth) stopped(limit memory.Bytes) bool {
	return len(g.unproven) >= unprovenSteps && limit >= g.unproven[unprovenSteps-1]
}

// most returns the highest limit that kills may cause while some growth is unproven.
func (g *confirmedGrowth) most() memory.Bytes {
	most := max(g.proven.Percent(100*unprovenTimes), g.proven.Plus(minUnproven))
	if n := len(g.unproven); n >= unprovenSteps {
		most = min(most, g.unproven[n-1])
	}
	return most
}

// boundGrowth bounds unconfirmed growth and the growth of a leak, but not below the current limit.
func (e *evaluation) boundGrowth(limit memory.Bytes) memory.Bytes {
	return e.stopLeak(e.stopUnproven(limit))
}

// stopUnproven bounds unconfirmed growth.
func (e *evaluation) stopUnproven(limit memory.Bytes) memory.Bytes {
	g := &e.growth
	if len(g.unproven) == 0 {
		return limit
	}
	most := max(g.most(), e.Current.Limit)
	if limit > most {
		e.note("limit %s instead of %s: no raise above %s is confirmed by use, so the limit is at most %d times that, or %s "+
			"more", most, limit, g.proven, unprovenTimes, minUnproven)
		limit = most
	}
	if at := e.newest.Limit; e.afterKill.limit > 0 && (g.stopped(at) || at >= g.most()) {
		e.alarm("killed at a limit of %s at %s, but use above %s was never seen: growth stops at %s. Either the raised "+
			"limits did not become effective (compare the pod's status with memory.max inside the container, and replace the "+
			"pod), or the container takes memory faster than it is measured: then set sizing.limit.min to what it needs",
			at, e.at(e.newest.Time), g.proven, limit.CeilTo(memory.MiB))
	}
	return limit
}

// stopLeak bounds the growth of a leak, with an alarm unless there is a doubt.
func (e *evaluation) stopLeak(limit memory.Bytes) memory.Bytes {
	if e.Leak == "" {
		return limit
	}
	if most := max(e.leakBound(), e.Current.Limit); limit > most || e.afterKill.limit > 0 {
		limit = min(limit, most)
		if e.Doubt != "" {
			e.note("%s: a leak, or still loading after its start, because %s. Until that is known, the limit stays at %s; if "+
				"the container only loads data at its start, set sizing.limit.min to the memory that this needs", e.Leak,
				e.Doubt, limit.CeilTo(memory.MiB))
			return limit
		}
		e.alarm("leak: %s. A higher limit only delays the next kill, so the limit stays at %s: find what holds the memory "+
			"(a heap dump or profile just before the kill); if the container only loads data at its start, set "+
			"sizing.limit.min to the memory that this needs", e.Leak, limit.CeilTo(memory.MiB))
	}
	return limit
}

// leakBound returns the highest limit of a leak: the highest limit at a recent kill or, if that is more, the highest
// use before these kills with headroom.
func (e *evaluation) leakBound() memory.Bytes {
	var most memory.Bytes
	first := e.Now
	for _, k := range e.kills {
		if e.since(k.Time) <= growthWindow {
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
