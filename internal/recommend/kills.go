// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"time"

	"github.com/memfit/memfit/internal/memory"
)

const (
	// killHold is how long a kill alone holds the size it asked for. After that, use under the new limit speaks, with the kill
	// remembered as a peak of its day.
	killHold = time.Hour
	// quickRepeat: a kill this soon after one at a lower limit doubles, instead of growing by the policy's factor. Doubling finds
	// a need of 64 times the limit within 7 kills.
	quickRepeat   = time.Hour
	doublePercent = 200
	// rememberedTimes bounds how far a kill may jump at once towards a peak seen before: four doublings' worth would be a guess.
	rememberedTimes = 4
	// suspectPercent: a kill nobody confirmed counts only when the process was seen this close to its limit.
	suspectPercent = 85
)

// judgeKills sorts the kills by what helps against them, and finds the need the recent ones ask for.
func (e *evaluation) judgeKills() {
	var heap, pod int
	for _, k := range e.Kills {
		switch {
		case k.Kind == memory.OOMHeapAbort:
			heap++
		case k.Kind == memory.OOMPodLimit:
			pod++
		case k.Kind == memory.OOMSuspected && k.Peak < k.Limit.Percent(suspectPercent):
		case k.Limit > 0 || k.Peak > 0:
			e.kills = append(e.kills, k)
		}
	}
	e.rec.Evidence.Kills = len(e.kills)
	if heap > 0 {
		e.say("%s not counted: the runtime gave up at its own heap cap, not at the limit", plural(int64(heap), "heap abort"))
		e.advise("%s: raise the runtime's heap cap (heapPercent or heapLimit); a higher limit alone does not help", plural(int64(heap), "heap abort"))
	}
	if pod > 0 {
		e.say("%s not counted: the pod's own limit was hit while this container was below its limit", plural(int64(pod), "kill"))
		e.advise("raise the pod's memory limit (spec.resources.limits.memory), or lower the sum of what its containers use: %s at the pod's limit", plural(int64(pod), "kill"))
	}
	e.growAfterKills()
}

// growAfterKills finds the largest need the kills of the last hour ask for, and says which kill it was.
func (e *evaluation) growAfterKills() {
	var by memory.OOMKill
	for i, k := range e.kills {
		if e.Now.Sub(k.Time) >= killHold || k.Limit < e.Current.Limit.Percent(50) {
			continue
		}
		if grown := e.grow(i); grown >= e.grown {
			e.grown, by = grown, k
		}
	}
	if e.grown > 0 {
		e.say("OOM-killed at limit %s %s ago (%s of %s in the ledger, last peak RSS %s)", orNone(by.Limit), ago(e.Now.Sub(by.Time)),
			plural(int64(len(e.kills)), "kill"), by.Kind, orNone(by.Peak))
	}
}

// grow is the need that kill i asks for.
func (e *evaluation) grow(i int) memory.Bytes {
	k, p := e.kills[i], e.Policy
	died := k.Limit
	if died == 0 {
		return k.Peak // the node ran out, not the container: nothing says that it needs more than it used
	}
	percent := p.OOMFactorPercent
	for _, before := range e.kills[:i] {
		if before.Limit < died && k.Time.Sub(before.Time) < quickRepeat {
			percent = max(percent, doublePercent)
		}
	}
	grown := max(died.Percent(percent), died.Plus(p.OOMMinIncrease))
	if seen := e.highestDay(); seen > grown && !e.Traits.FollowsLimit {
		grown = min(seen, died.Percent(100*rememberedTimes)) // it has been there before
	}
	return grown
}

// highestDay is the highest demand of the days kept.
func (e *evaluation) highestDay() memory.Bytes { return e.History.HighestDay() }

// stopClimb keeps a leak from being fed: memory that climbs without end gets one step after a kill, and then an alarm instead of more.
func (e *evaluation) stopClimb(limit memory.Bytes) memory.Bytes {
	cur := e.Current.Limit
	if !e.Climbing || cur == 0 || limit <= cur {
		return limit
	}
	steps := 0
	for i := 1; i < len(e.kills); i++ {
		if e.kills[i].Limit > e.kills[i-1].Limit {
			steps++
		}
	}
	if e.grown > 0 && steps == 0 {
		return limit
	}
	e.alarm("memory climbs without end (a leak?): the limit is not raised from %s to %s, more memory only delays the next kill", cur, limit)
	return cur
}

func (e *evaluation) alarm(format string, args ...any) {
	e.say("ALARM: "+format, args...)
	if e.rec.Alarm == "" {
		e.rec.Alarm = sprintf(format, args...)
	}
}
