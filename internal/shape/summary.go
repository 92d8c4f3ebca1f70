// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"fmt"
	"strings"
	"time"

	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// summary describes the shape in a sentence with numbers.
func summary(s Shape, j classified, n int) string {
	words := describe(s, j)
	if n > 1 {
		words += fmt.Sprintf(" (%d instances compared)", n)
	}
	if len(s.Outliers) > 0 {
		words += "; far above their replicas: " + strings.Join(s.Outliers, ", ")
	}
	return words
}

func describe(s Shape, j classified) string {
	from, to := toBytes(j.growth.from), toBytes(j.growth.to)
	switch s.Kind {
	case Flat:
		if j.growth.significant() {
			return fmt.Sprintf("grew from %s and levels off at %s: a warm-up or a cache that filled", from, to)
		}
		return fmt.Sprintf("stays at %s, peak %s", s.Trough, s.Peak)
	case Sawtooth:
		return fmt.Sprintf("rises and falls between %s and %s; the live set is %s", s.Trough, s.Peak, s.Trough)
	case Burst:
		peaks := format.Count(len(j.growth.returned), "peak")
		return fmt.Sprintf("stays at %s with %s to %s, each of which falls again", s.Trough, peaks, s.Peak)
	case StepRetention:
		var by []string
		for _, step := range s.Steps {
			by = append(by, step.String())
		}
		return fmt.Sprintf("jumped %s (%s) from %s to %s and stays there",
			format.Count(len(s.Steps), "time"), strings.Join(by, ", "), from, to)
	case Climb:
		return describeClimb(s, j)
	case FollowsLimit:
		return fmt.Sprintf("fills the cap its runtime derives from the limit and stays at %s: use, not demand", to)
	case Unknown:
		if j.growth.significant() {
			return fmt.Sprintf("grows, and %s is too short to distinguish a climb from a start or a filling heap",
				format.InWords(j.span.Duration()))
		}
	}
	return "matches no known shape"
}

func describeClimb(s Shape, j classified) string {
	words := fmt.Sprintf("climbs %s a day without slowing down, now at %s", s.RatePerDay, toBytes(j.last))
	if s.TimeToLimit[1] == 0 {
		return words
	}
	return words + fmt.Sprintf("; reaches the limit in %s to %s", format.InWords(s.TimeToLimit[0]),
		format.InWords(s.TimeToLimit[1]))
}

// toLimit returns the real time to the limit at the rates fast and slow, in bytes per hour of evidence.
func toLimit(now, limit, fast, slow float64) [2]time.Duration {
	const never = 10 * 365 * 24 * time.Hour
	if limit <= now || fast <= 0 || slow <= 0 {
		return [2]time.Duration{}
	}
	when := func(rate float64) time.Duration {
		hours := (limit - now) / rate / float64(period.Factor())
		if hours > never.Hours() {
			return never
		}
		return time.Duration(hours * float64(time.Hour))
	}
	return [2]time.Duration{when(fast), when(slow)}
}

// perDay converts a rate in bytes per hour of evidence to one per real day.
func perDay(bytesPerHour float64) memory.Bytes {
	return toBytes(bytesPerHour * 24 * float64(period.Factor()))
}

func tooFewSamples(in Input) string {
	points := 0
	for _, i := range in.Instances {
		points += len(i.Points)
	}
	points = max(points, len(in.Past)) // the spans are of the same samples
	if points == 0 {
		return "nothing was measured yet"
	}
	return fmt.Sprintf("%s are too few to classify memory over time", format.Count(points, "sample"))
}
