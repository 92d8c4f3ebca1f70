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
	// killHold is how long a kill alone determines the size. After that, use with the new limit does, and the kill
	// counts as a peak of its day.
	killHold = period.Hour
	// quickRepeat: a kill this soon after a kill at a lower limit doubles the limit, instead of raising it by the
	// policy's factor. It is real time, because the kubelet's back-off paces a crash loop.
	quickRepeat = time.Hour
	// slowDeath and longerPercent: a process that lived longer than slowDeath, and by half longer than under the lower
	// limit, takes its memory gradually. The limit is not doubled as for a crash loop: usage shows the need, and if the
	// process leaks, a raise does not help.
	slowDeath     = 30 * time.Second
	longerPercent = 150
	// suspectPercent: an unconfirmed kill counts only when the process was seen this close to its limit.
	suspectPercent = 85
)

// judgeKills finds the kills that a higher limit prevents, and the need that recent kills show.
func (e *evaluation) judgeKills() {
	var heap, pod, debugged, child int
	var share bool
	for _, k := range e.Kills {
		switch {
		case Helps(k, e.Kills, e.Traits):
			e.kills = append(e.kills, k)
			share = share || k.Kind == memory.OOMHeapAbort
		case k.Kind == memory.OOMHeapAbort:
			heap++
			e.unhelped = k
		case k.Kind == memory.OOMPodLimit:
			if e.unhelped = k; k.Debugged {
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
			e.kills[i].Limit, e.kills[i].Asked = limit, e.kills[i].Limit
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
			"raise the pod's memory limit (spec.resources.limits.memory), or lower the sum of what its containers use: %s at "+
				"the pod's limit",
			format.Count(int64(pod), "kill"),
		)
	}
	if debugged > 0 {
		kills := format.Count(int64(debugged), "kill")
		e.note("%s not counted: this container was far below its limit while a debug session ran in its pod", kills)
		e.advise(
			"debug a copy of the pod (kubectl debug --copy-to): what a session uses counts against the limit of its pod: %s "+
				"during one", kills,
		)
	}
	e.reach = e.findReach()
	e.growAfterKills()
}

// withoutLoans counts the kill of a container with a loan as one at the limit of all pods: a loan is for one pod, and
// most containers that use up a loan leak.
func (e *evaluation) withoutLoans() {
	for i := range e.kills {
		k := &e.kills[i]
		if k.Own == 0 || k.Asked > 0 {
			continue
		}
		if e.since(k.Time) < killHold {
			e.note("the kill at %s was at %s, which was a loan to one pod (sizing.rescue): it counts as a kill at %s",
				e.at(k.Time), k.Limit, k.Own)
		}
		k.Limit = k.Own
	}
}

// Helps reports whether a higher limit helps against k, which is one of the kills of its container and program.
func Helps(k memory.OOMKill, kills []memory.OOMKill, t Traits) bool {
	switch k.Kind {
	case memory.OOMHeapAbort: // the next process takes its share of the new limit
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

// childKills counts the kills of child processes. A single one while the container used far less than its limit may be
// a debug session's (kubectl exec), which is not evidence of what the program needs.
func childKills(kills []memory.OOMKill) (n int) {
	for _, k := range kills {
		if k.Kind == memory.OOMChildProcess {
			n++
		}
	}
	return n
}

// ask is the limit that a kill requires.
type ask struct {
	by    memory.OOMKill
	bare  memory.Bytes // the need
	limit memory.Bytes // with the headroom on top of it
	words string       // what the headroom is
}

// growAfterKills finds the largest need that the kills of the last hour show, and its kill. It ignores the current
// size: a kill still counts after memfit raised the limit.
func (e *evaluation) growAfterKills() {
	for i, k := range e.kills {
		if e.since(k.Time) >= killHold {
			continue
		}
		e.newest = k
		if a := e.ask(i); a.limit >= e.grown.limit {
			e.grown = a
		}
	}
	if by := e.grown.by; e.grown.limit > 0 {
		count := sprintf("%s of %s in the ledger, last peak demand", format.Count(int64(len(e.kills)), "kill"), by.Kind)
		if by.Kind == memory.OOMStall {
			count = "it stalled without being killed, its anonymous memory at"
		}
		e.note("%s at limit %s at %s (%s %s)", diedBy(by.Kind), orNone(by.Limit), e.at(by.Time), count, orNone(by.Peak))
		if by.Kind == memory.OOMHeapAbort {
			e.note(
				"its heap cap follows from the limit, so a higher limit gives it a larger heap when it starts again%s",
				e.frozenWords(),
			)
		}
	}
	if k := e.newest; k.Asked > 0 {
		e.note(
			"the kill at %s was at %s: the requested %s was not effective yet, so nothing is added for it", e.at(k.Time),
			k.Limit, k.Asked,
		)
	}
}

// precedesRaise reports whether kill i may have preceded the raise to its limit, and the limit before that raise. That
// is possible for the first instance killed at a higher limit than its predecessors, within moments of its start. The
// next kill at the same limit decides.
func (e *evaluation) precedesRaise(i int) (limit memory.Bytes, raced bool) {
	k := e.kills[i]
	// A runtime reads its heap cap once, at its start, so any later abort is at the previous cap.
	late := k.Uptime >= memory.RaiseReaches && k.Kind != memory.OOMHeapAbort
	if late || k.Kind == memory.OOMStall || k.Limit == 0 {
		return 0, false
	}
	var asked memory.Bytes
	for _, b := range e.kills[:i] {
		if b.Container == k.Container {
			limit, asked = b.Limit, max(asked, b.Limit, b.Asked)
		}
	}
	return limit, asked > 0 && asked < k.Limit
}

// frozenWords returns the note about a heap cap that does not change with a restart alone.
func (e *evaluation) frozenWords() string {
	if e.Traits.CapFrozen {
		return " in a new pod; a running pod keeps the cap it was created with"
	}
	return ""
}

// ask returns the limit that kill i requires. The need above the limit is unknown: for an hour, the container gets the
// headroom twice.
func (e *evaluation) ask(i int) ask {
	k := e.kills[i]
	bare := e.grow(i)
	if e.reach.stopped(k.Limit) {
		return ask{by: k, bare: k.Limit, limit: k.Limit}
	}
	space := 2 * e.headroom(bare)
	a := ask{by: k, bare: bare, limit: bare.Plus(space), words: sprintf("twice the headroom (%s)", space)}
	if young, _ := e.burstSpace(0); young > space {
		a.limit, a.words = bare.Plus(young), young.String()+" for bursts a young container has not shown yet"
	}
	if most := e.mostAnswer(k); a.limit > most {
		a.words += sprintf(", but no more than %s + %d %% of %s", most.Minus(e.guess(k)), e.model.GuessPercent, k.Limit)
		a.limit = most
	}
	return a
}

// mostAnswer returns the highest limit after a kill alone, because the need above the limit is unknown: four times the
// effective limit, unless more was used.
func (e *evaluation) mostAnswer(k memory.OOMKill) memory.Bytes {
	if k.Limit == 0 {
		return memory.Max
	}
	return max(k.Limit, e.highestDay()).Plus(e.guess(k))
}

func (e *evaluation) guess(k memory.OOMKill) memory.Bytes {
	return k.Limit.Percent(e.model.GuessPercent)
}

// boundAnswer bounds the limit of an older container in the hour after a kill: the kill raises it to at most
// [evaluation.mostAnswer].
func (e *evaluation) boundAnswer(limit memory.Bytes) memory.Bytes {
	most := e.mostAnswer(e.grown.by)
	if e.grown.limit == 0 || limit <= most {
		return limit
	}
	alone := *e
	alone.kills, alone.grown, alone.rec.Reasons = nil, ask{}, nil
	if most = max(most, alone.demandLimit()); limit <= most {
		return limit
	}
	e.note("held at %s instead of %s: an hour after a kill at %s, use shows what is needed", most, limit, e.grown.by.Limit)
	return most
}

// mostGuess bounds the space for bursts after a kill at a limit; 0: unbounded. With Cautious the bound ends after an
// hour of use: from then on it would give less space than without the kill.
func (e *evaluation) mostGuess(killedAt memory.Bytes) memory.Bytes {
	if e.Policy.KillPrice >= Cautious && !e.young() {
		return 0
	}
	return killedAt.Percent(e.model.GuessPercent)
}

// grow returns the need that kill i shows: more than the effective limit. A requested limit that was not effective does
// not count.
func (e *evaluation) grow(i int) memory.Bytes {
	k, p := e.kills[i], e.Policy
	died := e.diedAt(i)
	if died == 0 {
		return k.Peak // the node ran out, not the container: nothing shows that it needs more than it used
	}
	percent := p.OOMFactorPercent
	for _, before := range e.kills[:i] {
		if k.Asked == 0 && before.Limit < died && k.Time.Sub(before.Time) < quickRepeat && !livedLonger(k, before) {
			percent = max(percent, e.model.RepeatPercent)
		}
	}
	grown := max(died.Percent(percent), died.Plus(p.OOMMinIncrease))
	if seen := e.highestDay(); seen > grown && !e.Traits.FollowsLimit {
		grown = min(seen, died.Percent(e.model.RememberedPercent)) // its use was as high before
	}
	return grown
}

// livedLonger reports whether k lived longer with the higher limit, so that its need at start was not the cause.
func livedLonger(k, before memory.OOMKill) bool {
	return k.Uptime >= slowDeath && before.Uptime > 0 && k.Uptime >= before.Uptime*longerPercent/100
}

// diedAt returns the limit that kill i shows to be too low. A heap cap that a pod was created with is unchanged when
// the pod is resized, so all heap aborts of one pod are at the cap of the lowest limit it had.
func (e *evaluation) diedAt(i int) memory.Bytes {
	k := e.kills[i]
	if k.Kind != memory.OOMHeapAbort || !e.Traits.CapFrozen {
		return k.Limit
	}
	died := k.Limit
	for _, before := range e.kills[:i] {
		if before.Kind == k.Kind && before.Container == k.Container && before.Limit > 0 {
			died = min(died, before.Limit)
		}
	}
	return died
}

// killedAt returns the highest limit that the container was killed at; 0: none.
func (e *evaluation) killedAt() (limit memory.Bytes) {
	for _, k := range e.kills {
		limit = max(limit, k.Limit)
	}
	return limit
}

// highestDay returns the highest demand of the days kept.
func (e *evaluation) highestDay() memory.Bytes { return e.History.HighestDay() }

// stopClimb bounds the limit of a likely leak: memory that grows steadily gets one raise after a kill, and then an
// alarm.
func (e *evaluation) stopClimb(limit memory.Bytes) memory.Bytes {
	cur := e.Current.Limit
	if !e.Climbing || cur == 0 || limit <= cur {
		return limit
	}
	steps := 0
	for i := 1; i < len(e.kills); i++ {
		if before := e.kills[i-1]; e.kills[i].Limit > before.Limit && e.since(before.Time) <= reachWindow {
			steps++
		}
	}
	if e.grown.limit > 0 && steps == 0 {
		return limit
	}
	e.alarm(
		"memory grows steadily (possibly a leak): the limit is not raised from %s to %s, because more memory only delays "+
			"the next kill: find what holds it", cur, limit,
	)
	return cur
}

func (e *evaluation) alarm(format string, args ...any) {
	e.note("ALARM: "+format, args...)
	if e.rec.Alarm == "" {
		e.rec.Alarm = sprintf(format, args...)
	}
}

// diedBy returns the verb for a kind of kill: "OOM-killed".
func diedBy(kind memory.OOMKind) string {
	switch kind {
	case memory.OOMHeapAbort:
		return "out of its own heap"
	case memory.OOMStall:
		return "stalled"
	case memory.OOMMainProcess, memory.OOMChildProcess, memory.OOMAtStart, memory.OOMPodLimit, memory.OOMSuspected:
	}
	return "OOM-killed"
}

// correctAnswer records that the limit after the kills of a day was a guess, once use since the last kill has shown the
// need. limit is that need.
func (e *evaluation) correctAnswer(limit memory.Bytes) {
	if e.certainty != history.Exact || e.age() >= period.Day {
		return // demand is an estimate, or a day of evidence decides
	}
	for _, k := range e.Kills {
		if e.since(latest(k)) < killHold {
			return
		}
	}
	var answer Raise
	for _, k := range e.kills {
		if at := latest(k); k.Limit > 0 && e.since(at) < period.Day {
			answer.From = max(answer.From, k.Limit)
			if at.After(answer.At) {
				answer.At = at
			}
		}
	}
	if answer.From == 0 {
		return
	}
	e.rec.Guess = &answer
	if e.rec.Decision == Decrease && limit < e.Current.Limit {
		e.note("the raise after the kill at %s was a guess; an hour of use has shown the need, so one correction does not "+
			"wait for a day of evidence", answer.From)
	}
}

// latest returns the later of the times at which a kill happened and was seen.
func latest(k memory.OOMKill) time.Time {
	if k.Seen.After(k.Time) {
		return k.Seen
	}
	return k.Time
}
