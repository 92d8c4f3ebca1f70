// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"fmt"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// judged is the shape of one instance.
type judged struct {
	series
	kind   ShapeKind
	sure   memory.Confidence
	growth growth
	level  level
	why    string
}

// shapeRules are tried in this order; the first that fits gives the shape. Growth comes first, because it is what kills.
var shapeRules = []struct {
	kind ShapeKind
	fits func(judged, ShapeInput) (memory.Confidence, bool)
}{
	{Burst, burstsMoreThanItHolds}, // what it holds on to is little against what comes down again
	{StepRetention, stepsAndStays}, // growth in jumps
	{Climb, climbs},                // growth without end
	{FollowsLimit, followsLimit},   // growth that ended at the cap
	{Flat, levelsOff},              // growth that ended somewhere else: a warm-up, a cache
	{Climb, teethClimb},            // growth below teeth as high as itself
	{Unknown, stillGrowing},        // growth, and too little seen of it
	{Flat, standsStill},            //
	{Burst, bursts},                // up and down again, mostly down
	{Sawtooth, upAndDown},          // up and down, all the time
}

// judge looks at one instance; ok is false when there is too little of it.
func judgeSeries(s series, in ShapeInput) (judged, bool) {
	if len(s.cells) < fewest {
		return judged{series: s, kind: Unknown, sure: memory.Low}, false
	}
	j := judged{series: s, kind: Unknown, sure: memory.Low, growth: grow(s)}
	j.level = levels(s, j.growth)
	for _, rule := range shapeRules {
		if sure, ok := rule.fits(j, in); ok {
			j.kind, j.sure = rule.kind, sure
			break
		}
	}
	return j, true
}

func followsLimit(j judged, in ShapeInput) (memory.Confidence, bool) {
	limit := j.limit
	if limit == 0 {
		limit = float64(in.Limit)
	}
	if in.Cap == 0 {
		return "", false
	}
	half := sortedCopy(j.mids()[len(j.cells)/2:])
	settled, bottom := quantile(half, 0.5), quantile(half, 0.1)
	low, high := float64(in.Cap)*capLow/100, float64(in.Cap)*capHigh/100+float64(in.Overhead)
	if limit > 0 {
		high = min(high, limit)
	}
	if settled < low || settled > high || bottom < 0.8*settled || j.growth.late > 0.08*settled {
		return "", false
	}
	return memory.Medium, true
}

// burstsMoreThanItHolds: four times and more it rose by at least as much as its floor gained in all, and came down again.
func burstsMoreThanItHolds(j judged, _ ShapeInput) (memory.Confidence, bool) {
	g, l := j.growth, j.level
	if g.endless() || len(l.returned) < 4 || l.still() || l.idle < burstIdle || median(l.returned) < g.gained() {
		return "", false
	}
	return memory.Medium, true
}

// teethClimb: the teeth are so high that the floor says little, but all of it drifts upwards, and still does in the second half.
func teethClimb(j judged, _ ShapeInput) (memory.Confidence, bool) {
	mids := j.mids()[j.growth.skip:]
	risen := j.growth.slope * j.span.Hours()
	if j.span < leastClimb || j.growth.trend < 5 || j.growth.slow <= 0 || mannKendall(mids[len(mids)/2:]) < trendZ || risen < j.level.usual/4 {
		return "", false
	}
	return memory.Low, true
}

func stepsAndStays(j judged, _ ShapeInput) (memory.Confidence, bool) {
	g := j.growth
	if !g.significant() || g.change > changeP || !g.inSteps() {
		return "", false
	}
	if len(g.steps) > 1 {
		return memory.High, true
	}
	return memory.Medium, true
}

func climbs(j judged, _ ShapeInput) (memory.Confidence, bool) {
	g := j.growth
	if !g.significant() || g.slow <= 0 || g.trend < trendZ || !g.endless() || j.span < leastClimb {
		return "", false
	}
	switch {
	case j.span >= 24*time.Hour:
		return memory.High, true
	case j.span >= 6*time.Hour:
		return memory.Medium, true
	}
	return memory.Low, true
}

func levelsOff(j judged, _ ShapeInput) (memory.Confidence, bool) {
	g := j.growth
	if !g.significant() || g.endless() {
		return "", false
	}
	rest := j.level
	late := sortedCopy(j.mids()[len(j.cells)*2/3:])
	rest.top, rest.base, rest.usual = quantile(late, 0.98), quantile(late, 0.02), quantile(late, 0.5)
	if !rest.still() {
		return "", false
	}
	if g.late < 0.03*g.to {
		return memory.Medium, true
	}
	return memory.Low, true
}

func stillGrowing(j judged, _ ShapeInput) (memory.Confidence, bool) {
	return memory.Low, j.growth.significant() && j.growth.endless() && j.growth.trend >= trendZ
}

func standsStill(j judged, _ ShapeInput) (memory.Confidence, bool) {
	return j.seenEnough(), j.level.still()
}

func bursts(j judged, _ ShapeInput) (memory.Confidence, bool) {
	l := j.level
	if l.duty > burstDuty || l.idle < burstIdle {
		return "", false
	}
	if len(l.returned) < 2 {
		return memory.Low, true
	}
	return j.seenEnough(), true
}

func upAndDown(j judged, _ ShapeInput) (memory.Confidence, bool) { return j.seenEnough(), true }

func (j judged) seenEnough() memory.Confidence {
	switch {
	case j.span >= 24*time.Hour && j.points >= 200:
		return memory.High
	case j.span >= 2*time.Hour && j.points >= 48:
		return memory.Medium
	}
	return memory.Low
}

// severity orders shapes by what they lead to.
var severity = map[ShapeKind]int{Climb: 6, StepRetention: 5, FollowsLimit: 4, Burst: 3, Sawtooth: 2, Flat: 1, Unknown: 0}

// Classify says what the memory of one container of one workload does over time.
func Classify(in ShapeInput) Shape {
	var all []judged
	for _, instance := range in.Instances {
		if j, ok := judgeSeries(newSeries(instance), in); ok {
			all = append(all, j)
		}
	}
	if len(all) == 0 {
		return Shape{Kind: Unknown, Confidence: memory.Low}
	}
	slices.SortStableFunc(all, func(a, b judged) int { return severity[b.kind] - severity[a.kind] })
	j := all[0]
	g, l := j.growth, j.level
	st := ""
	for _, x := range g.steps {
		st += fmt.Sprintf(" %d:%.0f", x.at, x.by/1048576)
	}
	return Shape{Kind: all[0].kind, Confidence: all[0].sure, Summary: fmt.Sprintf("%.0f>%.0f step%.2f pace%.2f late%.0f Z%.1f p%.3f slope%.1f[%.1f %.1f] lvl %.0f/%.0f/%.0f pk%d duty%.2f idle%.2f ctr%.2f st%s n%d",
		g.from/1048576, g.to/1048576, g.stepped/g.gained(), g.pace, g.late/1048576, g.trend, g.change, g.slope/1048576, g.slow/1048576, g.fast/1048576, l.base/1048576, l.usual/1048576, l.top/1048576, len(l.returned), l.duty, l.idle, g.centre, st, len(all))}
}
