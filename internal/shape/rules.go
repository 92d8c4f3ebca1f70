// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/stats"
)

// classified is the shape of one instance.
type classified struct {
	series
	kind       Kind
	confidence memory.Confidence
	urgent     bool // the rule that matched is aboutToHit
	growth     growth
	level      level
}

const (
	// urgentPercent is the share of the limit from which growth is reported for any window, after urgentPoints samples. A
	// history has 16 points of a single instance after half an hour, and of each of four instances after two hours.
	urgentPercent = 70
	urgentPoints  = 16
)

// rules are tried in this order; the first that fits is the shape. Growth comes first, because it leads to kills.
var rules = []struct {
	kind Kind
	fits func(classified, Input) (memory.Confidence, bool)
}{
	{Climb, aboutToHit},            // reaches the limit soon; for any window
	{Burst, burstsExceedGrowth},    // growth is small compared with bursts
	{FollowsLimit, followsLimit},   // growth that ended at the cap
	{StepRetention, stepsAndStays}, // growth in jumps
	{Climb, climbs},                // growth without bound
	{Flat, levelsOff},              // growth that ended elsewhere: a warm-up or a cache
	{Climb, trendUnderSawtooth},    // growth below sawteeth
	{Flat, isFlat},                 // hardly any change
	{Burst, bursts},                // short rises from a floor
	{Sawtooth, risesAndFalls},      // rises and falls all the time
}

// classifySeries classifies one instance; ok is false if it is too short.
func classifySeries(s series, in Input) (classified, bool) {
	if len(s.cells) < fewest {
		return classified{series: s, kind: Unknown, confidence: memory.Low}, false
	}
	j := classified{series: s, kind: Unknown, confidence: memory.Low, growth: grow(s)}
	j.level = levels(s, j.growth)
	for i, rule := range rules {
		if confidence, ok := rule.fits(j, in); ok {
			j.kind, j.confidence, j.urgent = rule.kind, confidence, i == 0
			break
		}
	}
	return j, true
}

func followsLimit(j classified, in Input) (memory.Confidence, bool) {
	if in.Cap == 0 || in.CapUnknown {
		return "", false
	}
	half := stats.Sorted(j.mids()[len(j.cells)/2:])
	settled, bottom := stats.Quantile(half, 0.5), stats.Quantile(half, 0.1)
	low, high := float64(in.Cap)*capLow/100, float64(in.Cap)*capHigh/100+float64(in.Overhead)
	if in.Limit > 0 {
		high = min(high, float64(in.Limit))
	}
	if settled < low || settled > high || bottom < 0.8*settled || j.growth.all.late > settled/25 ||
		j.growth.significant() && j.growth.all.endless() {
		return "", false
	}
	return memory.Medium, true
}

// aboutToHit reports whether memory grew steadily close to the limit, and at its rate reaches the limit within the
// length of the window. With a known cap, memory must be above the cap, because a filling heap would stop there.
func aboutToHit(j classified, in Input) (memory.Confidence, bool) {
	g, limit := j.growth, float64(in.Limit)
	if limit == 0 || j.points < urgentPoints || len(j.cells) < urgentPoints/2 || j.last < limit*urgentPercent/100 ||
		j.last >= limit {
		return "", false
	}
	if in.Cap != 0 && j.last < float64(in.Cap)*capHigh/100+float64(in.Overhead) {
		return "", false
	}
	if !g.significant() || g.gained() < g.from/4 || g.slow <= 0 || !stats.Rises(j.lows()[g.skip:], trendZ) ||
		!g.all.steady() || g.inSteps() {
		return "", false
	}
	return memory.Medium, (limit-j.last)/g.slow < j.span.Hours()
}

// burstsExceedGrowth reports whether memory rose and fell four times or more, by far more in total than its floor.
func burstsExceedGrowth(j classified, _ Input) (memory.Confidence, bool) {
	g, l := j.growth, j.level
	total := 0.0
	for _, height := range g.returned {
		total += height
	}
	if g.all.endless() || len(g.returned) < 4 || l.flat() || !l.bursty() || total < 4*g.gained() {
		return "", false
	}
	return memory.Medium, true
}

// trendUnderSawtooth reports whether sawteeth hide a rise of the low points that continues in the second half.
func trendUnderSawtooth(j classified, _ Input) (memory.Confidence, bool) {
	lows, mids := j.lows()[j.growth.skip:], j.mids()[j.growth.skip:]
	risen := j.growth.slope * j.span.Hours()
	if j.span < earlySpan || len(j.growth.returned) < 2 || j.growth.all.pace < minPace ||
		j.growth.slow <= 0 || !stats.Rises(lows, 5) ||
		!stats.Rises(mids[len(mids)/2:], trendZ) || risen < j.level.usual/4 {
		return "", false
	}
	return memory.Low, true
}

func stepsAndStays(j classified, _ Input) (memory.Confidence, bool) {
	g := j.growth
	if !g.significant() || !g.inSteps() {
		return "", false
	}
	switch {
	case g.gained() < g.from*muchPercent/100:
		return memory.Low, true
	case len(g.steps) > 1:
		return memory.High, true
	}
	return memory.Medium, true
}

func climbs(j classified, in Input) (memory.Confidence, bool) {
	g := j.growth
	if !g.significant() || !stats.Rises(j.lows()[g.skip:], trendZ) || !g.all.endless() || g.ending < minEnding ||
		j.span < minClimbSpan {
		return "", false
	}
	if j.span < earlySpan && (!g.all.steady() || in.Cap != 0) {
		return "", false
	}
	confidence := memory.Low
	switch {
	case j.span >= longEnough:
		confidence = memory.High
	case j.span >= earlySpan && g.gained() >= g.from*muchPercent/100:
		confidence = memory.Medium
	}
	if in.Cap != 0 && j.last < float64(in.Cap)*capLow/100 { // a heap below its cap may still be filling
		return confidence.Lower(), g.gained() >= g.from*fillsPercent/100
	}
	return confidence, true
}

func levelsOff(j classified, _ Input) (memory.Confidence, bool) {
	g := j.growth
	if !g.significant() || g.all.endless() {
		return "", false
	}
	rest := j.level
	late := stats.Sorted(j.mids()[len(j.cells)*2/3:])
	rest.top, rest.base, rest.usual = stats.Quantile(late, 0.98), stats.Quantile(late, 0.02), stats.Quantile(late, 0.5)
	if !rest.flat() {
		return "", false
	}
	if g.all.late < 0.03*g.to {
		return memory.Medium, true
	}
	return memory.Low, true
}

func isFlat(j classified, _ Input) (memory.Confidence, bool) {
	return j.seenEnough(), j.level.flat()
}

func bursts(j classified, _ Input) (memory.Confidence, bool) {
	if !j.level.bursty() {
		return "", false
	}
	if len(j.growth.returned) < 2 {
		return memory.Low, true
	}
	return j.seenEnough(), true
}

func risesAndFalls(j classified, _ Input) (memory.Confidence, bool) {
	onlyUp := j.growth.significant() && len(j.growth.returned) == 0 && stats.Rises(j.lows()[j.growth.skip:], trendZ)
	return j.seenEnough(), !onlyUp
}

func (j classified) seenEnough() memory.Confidence {
	switch {
	case j.span >= longEnough && j.points >= 200:
		return memory.High
	case j.span >= 2*period.Hour && j.points >= 48:
		return memory.Medium
	}
	return memory.Low
}
