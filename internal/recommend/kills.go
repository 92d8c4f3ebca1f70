// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"cmp"
	"time"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

const (
	// killHold is how long a kill alone determines the size. After that, use at the new limit does, and the kill counts as
	// a peak of its day.
	killHold = period.Hour
	// quickRepeat is how soon after a kill at a lower limit the next kill doubles the limit, instead of raising it by the
	// policy's factor. It is real time, because the kubelet's back-off paces a crash loop.
	quickRepeat = time.Hour
	// slowDeath and longerPercent bound the uptime from which a repeated kill does not double the limit: at least
	// slowDeath, and longerPercent of the uptime at the lower limit. Such a process takes memory gradually, so its use
	// shows the need.
	slowDeath     = 30 * time.Second
	longerPercent = 150
	// suspectPercent is the peak, in percent of the limit, from which an unconfirmed kill counts.
	suspectPercent = 85
)

// judgeKills finds the kills that a higher limit prevents, and their need. It adds reasons and advice for the others.
func (e *evaluation) judgeKills() {
	var heap, pod, debugged, child int // kills of these kinds that do not count
	var share bool                     // some heap aborts count
	for _, k := range e.Kills {
		switch {
		case PreventedByHigherLimit(k, e.Kills, e.Traits):
			e.kills = append(e.kills, k)
			share = share || k.Kind == memory.OOMHeapAbort
		case k.Kind == memory.OOMHeapAbort:
			heap++
			e.notPrevented = k
		case k.Kind == memory.OOMPodLimit:
			if e.notPrevented = k; k.Debugged {
				debugged++
			} else {
				pod++
			}
		case k.Kind == memory.OOMChildProcess:
			child++
			e.childKilled = e.childKilled || e.since(k.Time) < killHold
		}
	}
	for i := range e.kills {
		if limit, raced := e.precedesRaise(i); raced {
			e.kills[i].Limit, e.kills[i].Requested = limit, e.kills[i].Limit
		}
	}
	e.withoutLoans()
	e.rec.Evidence.Kills = len(e.kills)
	if heap > 0 {
		e.note(
			"%s not counted: the runtime gave up at its own heap cap, not at the limit", format.Count(int64(heap), "heap abort"),
		)
		e.advise(
			"%s: %s; a higher limit alone does not help", format.Count(int64(heap), "heap abort"),
			cmp.Or(e.Traits.CapSetBy, "raise the runtime's heap cap (heapPercent or heapLimit)"),
		)
	}
	if child > 0 {
		e.note("1 kill of a child process not counted: the container used far less than its limit, as in a debug session; " +
			"a second one raises the limit")
	}
	if share {
		e.advise(
			"the heap cap is a share of the limit, so the limit is raised; if demand stays far below the limit, raise the " +
				"share (heapPercent) instead",
		)
	}
	if pod > 0 {
		e.note(
			"%s not counted: the pod's own limit was hit while this container was below its limit",
			format.Count(int64(pod), "kill"),
		)
		e.advise(
			"raise the pod's memory limit (spec.resources.limits.memory), or reduce the memory of its containers: %s at the "+
				"pod's limit",
			format.Count(int64(pod), "kill"),
		)
	}
	if debugged > 0 {
		kills := format.Count(int64(debugged), "kill")
		e.note("%s not counted: this container was far below its limit while a debug session ran in its pod", kills)
		e.advise(
			"debug a copy of the pod (kubectl debug --copy-to), because the memory of a session counts against the pod's "+
				"limit: %s during a session", kills,
		)
	}
	e.growth = e.confirmGrowth()
	e.findKillNeed()
}

// withoutLoans counts a kill of a container with a loan (sizing.rescue) at the limit without the loan. A loan is for
// one pod only, and most containers that use up a loan have a leak.
func (e *evaluation) withoutLoans() {
	for i := range e.kills {
		k := &e.kills[i]
		if k.LimitWithoutLoan == 0 || k.Requested > 0 {
			continue
		}
		if e.since(k.Time) < killHold {
			e.note("the kill at %s was at %s, which was a loan to one pod (sizing.rescue): it counts as a kill at %s",
				e.at(k.Time), k.Limit, k.LimitWithoutLoan)
		}
		k.Limit = k.LimitWithoutLoan
	}
}

// PreventedByHigherLimit reports whether a higher limit prevents kill k. kills are all kills of its container and
// program.
func PreventedByHigherLimit(k memory.OOMKill, kills []memory.OOMKill, t Traits) bool {
	switch k.Kind {
	case memory.OOMHeapAbort: // the next process gets a heap cap from the new limit
		return t.CapFollowsLimit && k.Limit > 0
	case memory.OOMPodLimit:
		return false
	case memory.OOMSuspected:
		return k.Peak > 0 && k.Peak >= k.Limit.Percent(suspectPercent)
	case memory.OOMChildProcess:
		return k.Peak >= k.Limit.Percent(suspectPercent) || childKills(kills) > 1
	case memory.OOMMainProcess, memory.OOMAtStart, memory.OOMStall:
	}
	return k.Limit > 0 || k.Peak > 0
}

// childKills returns the number of kills of child processes. A single kill may be of a debug session (kubectl exec),
// which does not show what the program needs.
func childKills(kills []memory.OOMKill) (n int) {
	for _, k := range kills {
		if k.Kind == memory.OOMChildProcess {
			n++
		}
	}
	return n
}

// killNeed is the limit that a kill requires.
type killNeed struct {
	kill          memory.OOMKill
	need          memory.Bytes
	limit         memory.Bytes // need plus headroom
	headroomWords string
}

// findKillNeed sets afterKill to the largest need that kills of the last hour show. It ignores the current size: a kill
// still counts after memfit raised the limit.
func (e *evaluation) findKillNeed() {
	for i, k := range e.kills {
		if e.since(k.Time) >= killHold {
			continue
		}
		e.newest = k
		if a := e.needAfter(i); a.limit >= e.afterKill.limit {
			e.afterKill = a
		}
	}
	if by := e.afterKill.kill; e.afterKill.limit > 0 {
		count := sprintf("%s of %s in the ledger, last peak demand", format.Count(int64(len(e.kills)), "kill"), by.Kind)
		if by.Kind == memory.OOMStall {
			count = "without a kill, anonymous memory"
		}
		e.note("%s at limit %s at %s (%s %s)", killVerb(by.Kind), orNone(by.Limit), e.at(by.Time), count, orNone(by.Peak))
		if by.Kind == memory.OOMHeapAbort {
			e.note(
				"its heap cap follows from the limit, so a higher limit gives it a larger heap when it starts again%s",
				e.frozenWords(),
			)
		}
	}
	if k := e.newest; k.Requested > 0 {
		e.note(
			"the kill at %s was at %s: the requested %s was not effective yet, so nothing is added for it", e.at(k.Time),
			k.Limit, k.Requested,
		)
	}
}

// precedesRaise returns the limit before the raise to the limit of kill i, and whether the kill may have preceded that
// raise. That is possible for the first kill of a container at a higher limit, within moments of the start of an
// instance. The next kill at the same limit shows whether the raise was effective.
func (e *evaluation) precedesRaise(i int) (limit memory.Bytes, raced bool) {
	k := e.kills[i]
	// A runtime reads its heap cap once, at its start, so even a late abort may be at the previous cap.
	late := k.Uptime >= memory.RaiseLag && k.Kind != memory.OOMHeapAbort
	if late || k.Kind == memory.OOMStall || k.Limit == 0 {
		return 0, false
	}
	var asked memory.Bytes
	for _, b := range e.kills[:i] {
		if b.Container == k.Container {
			limit, asked = b.Limit, max(asked, b.Limit, b.Requested)
		}
	}
	return limit, asked > 0 && asked < k.Limit
}

// frozenWords returns the end of a sentence about when a heap gets a larger cap, for a cap that needs a new pod.
func (e *evaluation) frozenWords() string {
	if e.Traits.CapFrozen {
		return " in a new pod; a running pod keeps the cap it was created with"
	}
	return ""
}

// needAfter returns the limit that kill i requires. Because the need above the limit is unknown, it has twice the
// headroom, or the headroom of a young container if that is more.
func (e *evaluation) needAfter(i int) killNeed {
	k := e.kills[i]
	need := e.needShown(i)
	if e.growth.stopped(k.Limit) {
		return killNeed{kill: k, need: k.Limit, limit: k.Limit}
	}
	space := 2 * e.headroom(need)
	a := killNeed{kill: k, need: need, limit: need.Plus(space), headroomWords: sprintf("twice the headroom (%s)", space)}
	if young, _ := e.burstSpace(0); young > space {
		a.limit, a.headroomWords = need.Plus(young), young.String()+" for bursts a young container has not shown yet"
	}
	if most := e.maxLimitAfter(k); a.limit > most {
		a.headroomWords += sprintf(", but no more than %s + %d %% of %s", most.Minus(e.maxGrowth(k)), e.model.GuessPercent,
			k.Limit)
		a.limit = most
	}
	return a
}

// maxLimitAfter returns the highest limit that a kill alone can cause: the limit at the kill, or the highest use, plus
// maxGrowth.
func (e *evaluation) maxLimitAfter(k memory.OOMKill) memory.Bytes {
	if k.Limit == 0 {
		return memory.Max
	}
	return max(k.Limit, e.highestDay()).Plus(e.maxGrowth(k))
}

// maxGrowth returns the highest raise that a kill alone can cause.
func (e *evaluation) maxGrowth(k memory.OOMKill) memory.Bytes {
	return k.Limit.Percent(e.model.GuessPercent)
}

// boundAfterKill bounds the limit of an older container in the hour after a kill to [evaluation.maxLimitAfter], or to
// the limit without kills if that is higher.
func (e *evaluation) boundAfterKill(limit memory.Bytes) memory.Bytes {
	most := e.maxLimitAfter(e.afterKill.kill)
	if e.afterKill.limit == 0 || limit <= most {
		return limit
	}
	alone := *e
	alone.kills, alone.afterKill, alone.rec.Reasons = nil, killNeed{}, nil
	if most = max(most, alone.demandLimit()); limit <= most {
		return limit
	}
	e.note("limit %s instead of %s: an hour after the kill at %s, use will show the need", most, limit,
		e.afterKill.kill.Limit)
	return most
}

// maxBurstSpace returns the highest headroom for bursts after a kill at a limit; 0: unbounded. With Cautious, the bound
// ends after an hour of use: then it would be lower than the headroom without a kill.
func (e *evaluation) maxBurstSpace(killedAt memory.Bytes) memory.Bytes {
	if e.Policy.KillPrice >= Cautious && !e.young() {
		return 0
	}
	return killedAt.Percent(e.model.GuessPercent)
}

// needShown returns the need that kill i shows: the limit at the kill, raised by the policy's factor.
func (e *evaluation) needShown(i int) memory.Bytes {
	k, p := e.kills[i], e.Policy
	low := e.limitTooLow(i)
	if low == 0 {
		return k.Peak // the node ran out of memory: nothing shows that the container needs more than it used
	}
	percent := p.OOMFactorPercent
	for _, before := range e.kills[:i] {
		if k.Requested == 0 && before.Limit < low && k.Time.Sub(before.Time) < quickRepeat && !livedLonger(k, before) {
			percent = max(percent, e.model.RepeatPercent)
		}
	}
	need := max(low.Percent(percent), low.Plus(p.OOMMinIncrease))
	if seen := e.highestDay(); seen > need && !e.Traits.FollowsLimit {
		need = min(seen, low.Percent(e.model.RememberedPercent)) // use may be as high again
	}
	return need
}

// livedLonger reports whether the instance of k lived clearly longer than the instance of an earlier kill at a lower
// limit: it was not killed by its need at start.
func livedLonger(k, before memory.OOMKill) bool {
	return k.Uptime >= slowDeath && before.Uptime > 0 && k.Uptime >= before.Uptime*longerPercent/100
}

// limitTooLow returns the limit that kill i shows to be too low; 0: none. If the heap cap does not change when a pod is
// resized, all heap aborts of one pod are at the cap of the lowest limit that it had.
func (e *evaluation) limitTooLow(i int) memory.Bytes {
	k := e.kills[i]
	if k.Kind != memory.OOMHeapAbort || !e.Traits.CapFrozen {
		return k.Limit
	}
	low := k.Limit
	for _, before := range e.kills[:i] {
		if before.Kind == k.Kind && before.Container == k.Container && before.Limit > 0 {
			low = min(low, before.Limit)
		}
	}
	return low
}

// highestKilledAt returns the highest limit that the container was killed at; 0: none.
func (e *evaluation) highestKilledAt() (limit memory.Bytes) {
	for _, k := range e.kills {
		limit = max(limit, k.Limit)
	}
	return limit
}

// highestDay returns the highest demand of the days kept.
func (e *evaluation) highestDay() memory.Bytes { return e.History.HighestDay() }

// stopClimb returns the current limit instead of a higher one if memory grows steadily, with an alarm. It allows one
// raise after a kill.
func (e *evaluation) stopClimb(limit memory.Bytes) memory.Bytes {
	cur := e.Current.Limit
	if !e.Climbing || cur == 0 || limit <= cur {
		return limit
	}
	raises := 0
	for i := 1; i < len(e.kills); i++ {
		if before := e.kills[i-1]; e.kills[i].Limit > before.Limit && e.since(before.Time) <= growthWindow {
			raises++
		}
	}
	if e.afterKill.limit > 0 && raises == 0 {
		return limit
	}
	e.alarm(
		"memory grows steadily (possibly a leak): the limit is not raised from %s to %s, because more memory only delays "+
			"the next kill: find what holds it", cur, limit,
	)
	return cur
}

// alarm adds a reason, and sets the alarm unless there is one.
func (e *evaluation) alarm(format string, args ...any) {
	e.note("ALARM: "+format, args...)
	if e.rec.Alarm == "" {
		e.rec.Alarm = sprintf(format, args...)
	}
}

// killVerb returns what happened in a kind of kill: "OOM-killed".
func killVerb(kind memory.OOMKind) string {
	switch kind {
	case memory.OOMHeapAbort:
		return "out of its own heap"
	case memory.OOMStall:
		return "stalled"
	case memory.OOMMainProcess, memory.OOMChildProcess, memory.OOMAtStart, memory.OOMPodLimit, memory.OOMSuspected:
	}
	return "OOM-killed"
}

// markGuess sets Guess to the raise after the kills of the last day, once an hour of use has shown the need. limit is
// the limit for that need.
func (e *evaluation) markGuess(limit memory.Bytes) {
	if e.certainty != history.Exact || e.age() >= period.Day {
		return // demand is an estimate, or a day of evidence decides
	}
	for _, k := range e.Kills {
		if e.since(latest(k)) < killHold {
			return
		}
	}
	var raise Raise
	for _, k := range e.kills {
		if at := latest(k); k.Limit > 0 && e.since(at) < period.Day {
			raise.From = max(raise.From, k.Limit)
			if at.After(raise.At) {
				raise.At = at
			}
		}
	}
	if raise.From == 0 {
		return
	}
	e.rec.Guess = &raise
	if e.rec.Decision == Decrease && limit < e.Current.Limit {
		e.note("the raise after the kill at %s was a guess; an hour of use has shown the need, so one correction does not "+
			"wait for a day of evidence", raise.From)
	}
}

// latest returns the later of the times at which a kill happened and was seen.
func latest(k memory.OOMKill) time.Time {
	if k.Seen.After(k.Time) {
		return k.Seen
	}
	return k.Time
}
