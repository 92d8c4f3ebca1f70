// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"fmt"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// Evidence thresholds. They are the same for every workload; the settings of owners are in [Policy].
const (
	// staleAfter is the age of the last sample from which use is unknown. It is twelve times the longest interval between
	// reads of the kubelet, so it is real time even if evidence is compressed.
	staleAfter = time.Hour
	// enoughSpan and enoughSamples are the least evidence for a size by use. An hour includes the start, the warm-up and
	// some work.
	enoughSpan    = period.Hour
	enoughSamples = 10
)

// Evaluate returns the recommended size, or Hold with the reason that evidence is missing.
func Evaluate(in Input) Recommendation {
	e := newEvaluation(in)
	e.judgeKills()
	e.rollbackTo = e.rollbackLimit()
	missing := e.missing()
	if missing != "" && e.rollbackTo > 0 {
		return e.decide(memory.Size{Limit: e.boundLimit(e.rollbackTo), Request: e.Current.Request})
	}
	if missing != "" && e.NoSamplesBecause != "" {
		missing += "; " + e.NoSamplesBecause
	}
	if missing != "" {
		return e.hold(missing)
	}
	limit := e.keepUnlessExact(e.boundGrowth(e.stopClimb(e.requiredLimit())))
	if e.age() < period.Day {
		limit = max(limit, e.rollbackTo)
	}
	if e.afterKill.limit > 0 || e.childKilled { // no decrease after a recent kill
		limit = max(limit, e.Current.Limit)
	}
	limit = e.boundLimit(e.boundIncrease(limit))
	return e.decide(memory.Size{Limit: limit, Request: e.request(limit)})
}

// evaluation is the state of one Evaluate call: the input with defaults, intermediate results, and the reasons so far.
type evaluation struct {
	Input
	model     Model
	rec       Recommendation
	kills     []memory.OOMKill // the kills that a higher limit prevents
	newest    memory.OOMKill   // the last of kills, if it is recent
	afterKill killNeed         // the largest need that a recent kill shows
	// notPrevented is the last kill that a higher limit does not prevent.
	notPrevented memory.OOMKill
	growth       confirmedGrowth
	// rollbackTo is the limit before a raise that did not end its stall; 0: nothing is rolled back.
	rollbackTo memory.Bytes
	// childKilled is true if a child process was killed recently, and its kill does not count.
	childKilled bool
	// certainty is how well the demand of the last day is known.
	certainty history.Certainty
	// least describes the use that the limit must cover, for a reason.
	least string
}

func newEvaluation(in Input) *evaluation {
	e := &evaluation{Input: in}
	if e.model = DefaultModel(); in.Model != nil {
		e.model = *in.Model
	}
	if e.History == nil {
		e.History = history.New()
	}
	h := e.History
	e.certainty = h.Certainty(period.Day.Duration())
	e.rec.Evidence = Evidence{
		PeakDemand: h.HighestDay(), Estimated: e.certainty != history.Exact, PeakRSS: h.PeakRSS(),
		PeakSwap: h.PeakSwap(), PeakWorkingSet: h.PeakWorkingSet(), Trough: h.Trough(),
		Samples: h.Samples(), Window: min(h.Span(), (history.DaysKept * period.Day).Duration()),
	}
	e.rec.RequeueAfter = period.Hour.Duration()
	if period.Compressed() {
		e.note("lab: evidence is compressed by %d: a day in these reasons takes %s (--lab-compress-evidence)",
			period.Factor(), format.Duration(period.Day.Duration()))
	}
	return e
}

// age returns the period of evidence that the history covers.
func (e *evaluation) age() period.Evidence { return period.Of(e.History.Span()) }

// since returns the period of evidence from t to now.
func (e *evaluation) since(t time.Time) period.Evidence { return period.Of(e.Now.Sub(t)) }

// note appends a reason, unless it repeats one.
func (e *evaluation) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(e.rec.Reasons, text) {
		e.rec.Reasons = append(e.rec.Reasons, text)
	}
}

func (e *evaluation) advise(format string, args ...any) {
	e.rec.Advice = append(e.rec.Advice, fmt.Sprintf(format, args...))
}

// heapTooSmall reports whether an agent found the heap at the current limit too small for its live set.
func (e *evaluation) heapTooSmall() bool {
	return e.Current.Limit > 0 && e.Ease.Limit > e.Current.Limit
}

// young reports whether there is too little evidence for a size by use.
func (e *evaluation) young() bool {
	return e.age() < enoughSpan || e.History.Samples() < enoughSamples
}

// stale reports whether use is unknown, because the last sample is too old.
func (e *evaluation) stale() bool { return e.Now.Sub(e.History.Last()) > staleAfter }

// missing returns which evidence is missing for a size; "" if there is enough. A recent kill is always enough.
func (e *evaluation) missing() string {
	h := e.History
	switch {
	case e.afterKill.limit > 0:
		return ""
	case h.Samples() == 0:
		return "no memory samples yet"
	case e.stale():
		return fmt.Sprintf("no memory samples since %s: recommendation unchanged until metrics return; see UsageAvailable "+
			"of the profile", format.Time(h.Last()))
	case e.UnmeasuredContainer != "" && e.Current.Limit == 0 && e.Last.Limit == 0: // any limit would be a decrease
		return e.UnmeasuredContainer
	case e.heapTooSmall():
		return ""
	case e.young():
		return fmt.Sprintf(
			"%s over %s so far; a size needs %d over %s", format.About(h.Samples(), "sample"), format.InWords(h.Span()),
			enoughSamples, format.InWords(enoughSpan.Duration()),
		)
	}
	return ""
}

// hold returns Hold with a reason. It only raises a request below the memory in use, because the scheduler gives memory
// above the request to other pods.
func (e *evaluation) hold(why string) Recommendation {
	e.note("%s", why)
	r := &e.rec
	r.Confidence = memory.Low
	r.RequeueAfter = (5 * period.Minute).Duration()
	if k := e.notPrevented; e.since(k.Time) < killHold {
		why += sprintf("; %s at %s, where a higher limit does not help", otherCause(k), e.at(k.Time))
	}
	if request := e.requestInUse(e.Current.Limit); request > e.Current.Request {
		r.Decision, r.UseAboveRequest = Increase, true
		r.Size = memory.Size{Limit: e.Current.Limit, Request: request}
		r.Summary = e.head() + ": " + e.inUseWords() + "; " + why
		return *r
	}
	r.Decision = Hold
	r.Summary = "Hold: " + why
	return *r
}

// requiredLimit returns the limit that use, kills and the live set require, with headroom, before the owner's bounds.
func (e *evaluation) requiredLimit() memory.Bytes {
	var limit memory.Bytes
	switch {
	case e.afterKill.limit == 0 && e.heapTooSmall() && e.young():
		// too little use for a size; only Ease counts
	case !e.stale() && e.History.Samples() > 0:
		limit = e.usageLimit()
	}
	if e.Current.Limit > 0 && e.Ease.Limit > limit {
		e.note("%s: %s", e.Ease.Limit, e.Ease.Why)
		limit = e.Ease.Limit
	}
	if e.afterKill.limit > limit {
		if e.afterKill.headroomWords != "" {
			e.note("grown to %s, + %s = %s", e.afterKill.need, e.afterKill.headroomWords, e.afterKill.limit)
		}
		return e.afterKill.limit
	}
	return limit
}

func (e *evaluation) usageLimit() memory.Bytes {
	if text := twoKinds(e.Runs); text != "" {
		e.note("%s", text)
	}
	if e.Traits.FollowsLimit || e.Traits.MayFollow {
		return e.followerLimit()
	}
	return e.demandLimit()
}

// decide compares size with the current one. If the limit remains, the request for the current limit may change.
func (e *evaluation) decide(size memory.Size) Recommendation {
	r, cur := &e.rec, e.Current
	r.Confidence = e.confidence()
	r.Size = size
	percent := e.Policy.MinChangePercent
	request := e.request(cur.Limit)
	r.UseAboveRequest = e.InUse > cur.Request && request > cur.Request
	switch {
	case !within(cur.Limit, size.Limit, percent),
		cur.Limit != size.Limit && e.Policy.outside(memory.Size{Limit: cur.Limit}):
		r.Decision = direction(cur.Limit, size.Limit)
	case r.UseAboveRequest || !within(cur.Request, request, percent), e.Policy.outside(cur):
		r.Size = memory.Size{Limit: cur.Limit, Request: request}
		r.Decision = direction(cur.Request, request)
		e.noteKept(size.Limit)
	default:
		r.Decision, r.Size = Keep, cur
		e.noteKept(size.Limit)
	}
	if r.Guess == nil {
		e.markGuess(size.Limit)
	}
	r.Summary = e.summary()
	if e.afterKill.limit > 0 {
		r.Urgent = r.Decision != Decrease // other pods may lack this pod's size
		// the first minutes after a kill show whether the raise was enough
		r.RequeueAfter = (10 * period.Minute).Duration()
	}
	return *r
}

// noteKept adds the reason if minChangePercent prevents a change of the limit.
func (e *evaluation) noteKept(want memory.Bytes) {
	if have := e.Current.Limit; want != have {
		e.note("limit stays at %s: %s is less than minChangePercent %d %% away", have, want, e.Policy.MinChangePercent)
	}
}

func direction(from, to memory.Bytes) Decision {
	if to < from {
		return Decrease
	}
	return Increase
}

// within reports whether a change from a to b is too small: less than percent of a. A change from 0 (unset) is not.
func within(a, b memory.Bytes, percent int32) bool {
	return a == b || a > 0 && max(a, b)-min(a, b) < a.Percent(percent)
}

// head returns the change in words: "Increase limit 256Mi to 512Mi, request 96Mi to 248Mi".
func (e *evaluation) head() string {
	s, cur := e.rec.Size, e.Current
	switch {
	case e.rec.Decision != Increase && e.rec.Decision != Decrease:
		return fmt.Sprintf("Keep limit %s, request %s", orNone(s.Limit), orNone(s.Request))
	case s.Limit == cur.Limit:
		return fmt.Sprintf(
			"%s request %s to %s, limit stays %s", e.rec.Decision, orNone(cur.Request), s.Request, orNone(s.Limit),
		)
	}
	request := fmt.Sprintf("request %s to %s", orNone(cur.Request), s.Request)
	if s.Request == cur.Request {
		request = "request stays " + orNone(s.Request)
	}
	return fmt.Sprintf("%s limit %s to %s, %s", e.rec.Decision, orNone(cur.Limit), s.Limit, request)
}

// summary returns the recommendation in one line, with its most important reason.
func (e *evaluation) summary() string {
	head := e.head()
	switch ev := e.rec.Evidence; {
	case e.rec.Alarm != "":
		return head + "; " + e.rec.Alarm
	case e.afterKill.limit > 0 && e.newest.Requested > 0:
		return fmt.Sprintf("%s: %s at %s at %s, when the requested %s was not effective yet", head, killVerb(e.newest.Kind),
			e.newest.Limit,
			e.at(e.newest.Time), e.newest.Requested)
	case e.afterKill.limit > 0:
		return fmt.Sprintf("%s: %s at %s at %s", head, killVerb(e.newest.Kind), orNone(e.newest.Limit), e.at(e.newest.Time))
	case e.rec.Decision == Decrease && e.rollbackTo > 0:
		return sprintf(
			"%s: the raise to %s did not end the stall of %s and is rolled back", head, e.Unrelieved.RaisedTo,
			e.at(e.Unrelieved.Since),
		)
	case e.rec.Decision == Increase && e.heapTooSmall():
		return head + ": " + e.Ease.Why
	case e.rec.UseAboveRequest:
		return head + ": " + e.inUseWords()
	default:
		return fmt.Sprintf("%s: %s over %s", head, e.peakWords(), format.InWords(ev.Window))
	}
}

// confidence grows with the age: after a day the history includes the daily cycle, after a week the weekly cycle.
func (e *evaluation) confidence() memory.Confidence {
	span := e.age()
	switch {
	case e.afterKill.limit > 0 && span < 7*period.Day:
		return memory.Low // a kill shows that more is needed, not how much
	case span >= 7*period.Day && e.certainty == history.Exact:
		return memory.High
	case span >= period.Day:
		return memory.Medium
	}
	return memory.Low
}

// Differs reports whether the policy makes the change from have to want: the limit or the request of have is not set,
// at least minChangePercent away from want, or outside the bounds.
func Differs(have, want memory.Size, p Policy) bool {
	if have != want && p.outside(have) {
		return true
	}
	percent := p.MinChangePercent
	return !within(have.Limit, want.Limit, percent) || !within(have.Request, want.Request, percent)
}
