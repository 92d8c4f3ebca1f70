// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"cmp"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/stats"
)

const stepsKept = 8 // sizes in Shape.Steps

// severity decides between equally frequent shapes: the one with the worst consequences is reported.
var severity = map[Kind]int{Climb: 6, StepRetention: 5, FollowsLimit: 4, Burst: 3, Sawtooth: 2, Flat: 1, Unknown: 0}

// Classify returns the shape of one container's memory over time. It classifies every instance, and the longer history
// of the instance with the highest use, and returns the most frequent shape. It also compares replicas.
func Classify(in Input) Shape {
	var points []series
	for _, instance := range in.Instances {
		points = append(points, newSeries(instance))
	}
	past := instancesOf(in.Past)
	recent, long := classifyAll(points, in), classifyAll(past, in)
	if died := crashedWhileGrowing(past, float64(in.Limit)); len(died) > 0 {
		long = died
	}
	if died := crashedWhileGrowing(points, float64(in.Limit)); len(died) > 0 {
		recent = died
	}
	outliers := outlierReplicas(in)
	winner, votes, ok := elect(recent, long, outliers)
	if !ok {
		return Shape{Kind: Unknown, Confidence: memory.Low, Outliers: outliers, Summary: tooFewSamples(in)}
	}
	s := Shape{
		Kind: winner.kind, Confidence: winner.confidence, Outliers: outliers, Trough: toBytes(winner.growth.to),
		Peak: peak(recent, long), Pods: podsOf(votes),
	}
	if followsAcrossLimits(in.Regimes) {
		s.Kind, s.Confidence = FollowsLimit, memory.High
	}
	if s.Kind == Climb {
		s.RatePerDay = perDay(winner.growth.slope)
		s.TimeToLimit = soonest(votes, in.Limit)
	}
	if s.Kind == StepRetention {
		s.Steps = winner.steps()
	}
	s.Summary = summary(s, winner, len(recent))
	return s
}

func classifyAll(instances []series, in Input) (all []classified) {
	for _, s := range instances {
		if j, ok := classifySeries(s, in); ok {
			all = append(all, j)
		}
	}
	return all
}

// instancesOf returns the history as one series per instance.
func instancesOf(past []history.Span) []series {
	var out []series
	from := 0
	for i := 1; i <= len(past); i++ {
		if i == len(past) || past[i].Another {
			out = append(out, pastSeries(past[from:i]))
			from = i
		}
	}
	return out
}

// crashedWhileGrowing returns the instances that grew for hours, if there are at least two, they are at least half of
// the instances that ran for minClimbSpan, and one of them ended near the limit. Growing instances that ended far below
// the limit do not count.
func crashedWhileGrowing(instances []series, limit float64) []classified {
	var climbed []classified
	longLived, killed := 0, 0
	for i, s := range instances {
		if len(s.cells) < fewest/2 || s.span < minClimbSpan {
			continue
		}
		longLived++
		ended, lows := replaced(instances[i:]), s.lows()[1:]
		slope, slow, fast := stats.TheilSen(s.hours()[1:], lows)
		if slow <= 0 || !stats.Rises(lows, trendZ) || lows[len(lows)-1] < 1.3*lows[len(lows)/8] {
			continue
		}
		if ended {
			if s.last < 0.85*limit {
				continue
			}
			killed++
		}
		g := growth{from: lows[0], to: lows[len(lows)-1], slope: slope, slow: slow, fast: fast}
		climbed = append(climbed, classified{series: s, kind: Climb, confidence: memory.Medium, growth: g})
	}
	if killed == 0 || len(climbed) < 2 || 2*len(climbed) < longLived {
		return nil
	}
	return climbed
}

// replaced reports whether the first instance ended, because a later instance of the same pod exists.
func replaced(instances []series) bool {
	return slices.ContainsFunc(instances[1:], func(l series) bool { return l.pod == instances[0].pod })
}

// elect returns the instances with the most frequent shape, and first the one of these with the highest memory. It
// returns false if there are no instances.
func elect(recent, long []classified, outliers []string) (classified, []classified, bool) {
	votes := recent
	if len(long) > 0 {
		votes = longerEvidence(recent, long)
	}
	growing := slices.DeleteFunc(slices.Clone(recent), func(j classified) bool {
		return !slices.Contains(outliers, j.pod) || j.kind != Climb && j.kind != StepRetention
	})
	if len(growing) > 0 { // growing outliers count alone
		votes = growing
	}
	count := map[Kind]int{}
	for _, j := range votes {
		if j.kind != Unknown {
			count[j.kind]++
		}
	}
	best := Unknown
	for kind, n := range count {
		if n > count[best] || n == count[best] && severity[kind] > severity[best] {
			best = kind
		}
	}
	votes = slices.DeleteFunc(slices.Clone(votes), func(j classified) bool { return j.kind != best })
	if len(votes) == 0 {
		return classified{}, nil, false
	}
	return slices.MaxFunc(votes, func(a, b classified) int { return cmp.Compare(a.last, b.last) }), votes, true
}

// longerEvidence returns the classifications that count: those of the last minutes, or of the history. A longer history
// of the running instance is preferred, because a rise within an hour may be a daily pattern. Earlier instances that
// climbed count more than a new one.
func longerEvidence(recent, long []classified) []classified {
	if slices.ContainsFunc(recent, func(j classified) bool { return j.urgent }) {
		return recent
	}
	if newest := long[len(long)-1:]; coversMore(newest[0], recent) {
		return newest
	}
	if slices.ContainsFunc(long, func(j classified) bool { return j.kind == Climb }) {
		return long
	}
	return recent
}

// coversMore reports whether the history is of the running instance, and at least twice as long as the recent points.
func coversMore(past classified, recent []classified) bool {
	for _, j := range recent {
		if past.newest.Before(j.newest) || past.span < 2*j.span {
			return false
		}
	}
	return true
}

// podsOf returns the known pods of instances, without duplicates.
func podsOf(instances []classified) (pods []string) {
	for _, l := range instances {
		if l.pod != "" && !slices.Contains(pods, l.pod) {
			pods = append(pods, l.pod)
		}
	}
	return pods
}

func peak(all ...[]classified) memory.Bytes {
	var top float64
	for _, some := range all {
		for _, j := range some {
			top = max(top, j.top)
		}
	}
	return toBytes(top)
}

// steps returns the sizes of the last jumps.
func (j classified) steps() []memory.Bytes {
	var out []memory.Bytes
	for _, s := range j.growth.steps {
		out = append(out, toBytes(s.by))
	}
	return out[max(0, len(out)-stepsKept):]
}

// rateMargin is the factor by which the interval of a rate is widened on both sides: the estimate of the interval
// assumes independent points, which samples are not. For 11 recorded leaks, at 60 % of their duration, the interval was
// right 6 times without the margin and 10 times with it.
const rateMargin = 1.2

// soonest returns the shortest and the longest time to the limit, of the instance that reaches it first. It uses the
// rates of the whole window and of its second half.
func soonest(climbing []classified, limit memory.Bytes) [2]time.Duration {
	var first [2]time.Duration
	for _, j := range climbing {
		half := j.cells[j.growth.skip+(len(j.cells)-j.growth.skip)/2:]
		late, slow, fast := stats.TheilSen(
			each(half, func(c cell) float64 { return c.hours }), each(half, func(c cell) float64 { return c.low }),
		)
		slow, fast = min(slow, j.growth.slow, late)/rateMargin, max(fast, j.growth.fast, late)*rateMargin
		if slow <= 0 {
			slow = min(j.growth.slow, j.growth.slope) / 2
		}
		when := toLimit(j.last, float64(limit), fast, slow)
		if when[1] != 0 && (first[1] == 0 || when[0] < first[0]) {
			first = when
		}
	}
	return first
}
