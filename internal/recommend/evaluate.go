// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// Evidence thresholds. They are the same for every workload; what owners may set is in [Policy].
const (
	// staleAfter: with no sample for this long the size is frozen. Twelve kubelet scrapes at the slowest interval memfit uses.
	staleAfter = time.Hour
	// enoughSpan and enoughSamples: below either, a workload is too young for its use to move a size. An hour holds start, warm-up and
	// some work; a day must pass before a size is lowered, because most demand has a daily rhythm.
	enoughSpan    = time.Hour
	enoughSamples = 10
	lowerSpan     = 24 * time.Hour
)

// Evaluate turns evidence into a size, or says what evidence is missing.
func Evaluate(in Input) Recommendation {
	e := newEvaluation(in)
	if missing := e.missing(); missing != "" {
		return e.hold(missing)
	}
	limit := e.boundLimit(e.withHeadroom(e.need()))
	return e.decide(Size{Limit: limit, Request: e.request(limit)})
}

// evaluation carries one Evaluate call: its input with defaults filled in, and the reasons as they come up.
type evaluation struct {
	Input
	rec  Recommendation
	days []history.Day
	buf  [history.DaysKept]history.Day
}

func newEvaluation(in Input) *evaluation {
	e := &evaluation{Input: in}
	e.Policy = in.Policy.withDefaults()
	if e.History == nil {
		e.History = history.New()
	}
	h := e.History
	e.days = h.AppendDays(e.buf[:0])
	e.rec.Evidence = Evidence{
		PeakRSS: h.PeakRSS(), PeakWorkingSet: h.PeakWorkingSet(), Trough: h.Trough(),
		Replicas: h.Replicas(), Samples: h.Samples(), Window: h.Span(),
	}
	e.rec.Confidence = e.confidence()
	e.rec.NextLook = time.Hour
	return e
}

// say appends a reason.
func (e *evaluation) say(format string, args ...any) {
	e.rec.Reasons = append(e.rec.Reasons, fmt.Sprintf(format, args...))
}

// missing says which evidence is missing for any answer; "" when there is enough. A kill is always enough.
func (e *evaluation) missing() string {
	h := e.History
	switch {
	case e.killNeed() > 0:
		return ""
	case h.Samples() == 0:
		return "no memory samples yet"
	case e.Now.Sub(h.Last()) > staleAfter:
		return fmt.Sprintf("no memory samples for %s: sizes are frozen until usage is seen again", ago(e.Now.Sub(h.Last())))
	case h.Span() < enoughSpan || h.Samples() < enoughSamples:
		return fmt.Sprintf("%s samples over %s so far; need %d over %s", count(h.Samples()), ago(h.Span()), enoughSamples, ago(enoughSpan))
	}
	return ""
}

func (e *evaluation) hold(why string) Recommendation {
	e.say("%s", why)
	e.rec.Decision = Hold
	e.rec.Confidence = memory.Low
	e.rec.Summary = "Hold: " + why
	e.rec.NextLook = 5 * time.Minute
	return e.rec
}

// need is the memory the container must be able to use, from usage and kills.
func (e *evaluation) need() memory.Bytes {
	need := e.usageNeed()
	if k := e.killNeed(); k > need {
		last := e.Kills[len(e.Kills)-1]
		e.say("killed at %s (%s) %s ago: grown to %s", last.Limit, last.Kind, ago(e.Now.Sub(last.Time)), k)
		return k
	}
	return need
}

func (e *evaluation) usageNeed() memory.Bytes {
	var peak memory.Bytes
	for _, d := range e.days {
		peak = max(peak, d.Peak)
	}
	if peak > 0 {
		e.say("peak RSS %s, working set %s: demand %s over %s (%s)", e.rec.Evidence.PeakRSS, e.rec.Evidence.PeakWorkingSet, peak,
			ago(e.History.Span()), e.looks())
	}
	return peak
}

// killNeed is the size the newest kills ask for, before headroom; 0 without kills. Headroom is taken off, so that the limit grows by
// the factor and no more.
func (e *evaluation) killNeed() memory.Bytes {
	var need memory.Bytes
	for i, k := range e.Kills {
		if k.Kind == memory.OOMHeapAbort || k.Limit == 0 {
			continue
		}
		percent := e.Policy.OOMFactorPercent
		for _, before := range e.Kills[:i] {
			if before.Limit < k.Limit && k.Time.Sub(before.Time) < time.Hour {
				percent = max(percent, 200)
			}
		}
		need = max(need, k.Limit.Percent(percent), k.Limit.Plus(e.Policy.OOMMinIncrease))
	}
	return need
}

// minHeadroom keeps very small containers from being sized within one allocation of their peak.
const minHeadroom = 8 * memory.MiB

func (e *evaluation) withHeadroom(need memory.Bytes) memory.Bytes {
	if k := e.killNeed(); k >= need {
		return k
	}
	head := max(need.Percent(e.Policy.HeadroomPercent), minHeadroom)
	e.say("%s + %d %% headroom = %s", need, e.Policy.HeadroomPercent, need.Plus(head))
	return need.Plus(head)
}

// boundLimit rounds up to whole MiB and keeps the owner's bounds, naming the one that applied.
func (e *evaluation) boundLimit(limit memory.Bytes) memory.Bytes {
	limit = limit.CeilTo(memory.MiB)
	p := e.Policy
	switch {
	case p.LimitMax > 0 && limit > p.LimitMax:
		e.say("clamped from %s by limit.max %s", limit, p.LimitMax)
		limit = p.LimitMax
	case limit < p.LimitMin:
		e.say("raised from %s by limit.min %s", limit, p.LimitMin)
		limit = p.LimitMin
	}
	if p.DecreaseNever && limit < e.Current.Limit {
		e.say("kept at %s although %s would do: decrease is Never", e.Current.Limit, limit)
		limit = e.Current.Limit
	}
	return limit
}

// request follows from the limit: usual use, or the limit itself.
func (e *evaluation) request(limit memory.Bytes) memory.Bytes {
	p := e.Policy
	request := limit
	if !p.RequestEqualsLimit {
		if usual := e.History.Quantile(0.9); usual > 0 {
			request = min(usual.Plus(usual.Percent(5)).CeilTo(memory.MiB), limit)
		}
	}
	if p.RequestMax > 0 {
		request = min(request, p.RequestMax)
	}
	return min(max(request, p.RequestMin), limit)
}

// decide compares the size with what the container has.
func (e *evaluation) decide(size Size) Recommendation {
	r := &e.rec
	r.Size = size
	cur := e.Current.Limit
	switch {
	case cur == 0:
		r.Decision = Raise
	case within(cur, size.Limit, e.Policy.MinChangePercent):
		r.Decision = Keep
		e.say("within %d %% of the limit in force, %s: not worth a change", e.Policy.MinChangePercent, cur)
		r.Size = e.Current
	case size.Limit > cur:
		r.Decision = Raise
	case e.History.Span() < lowerSpan:
		r.Decision = Keep
		r.Size = e.Current
		e.say("limit stays at %s until %s of samples are there", cur, ago(lowerSpan))
	default:
		r.Decision = Lower
	}
	r.Summary = fmt.Sprintf("%s: limit %s, request %s", r.Decision, r.Size.Limit, r.Size.Request)
	return *r
}

// within is true when a change from a to b is smaller than percent of a.
func within(a, b memory.Bytes, percent int32) bool {
	return max(a, b)-min(a, b) < a.Percent(percent) || a == b
}

func (e *evaluation) confidence() memory.Confidence {
	switch span := e.History.Span(); {
	case span >= 7*24*time.Hour:
		return memory.High
	case span >= 24*time.Hour:
		return memory.Medium
	}
	return memory.Low
}
