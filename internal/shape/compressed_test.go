// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/compress"
)

// closer returns the input with all times closer to t0 by the factor.
func closer(in Input, factor time.Duration) Input {
	at := func(t time.Time) time.Time { return t0.Add(t.Sub(t0) / factor) }
	in.Instances, in.Past = slices.Clone(in.Instances), slices.Clone(in.Past)
	for i := range in.Instances {
		instance := &in.Instances[i]
		instance.Points = slices.Clone(instance.Points)
		for p := range instance.Points {
			instance.Points[p].Time = at(instance.Points[p].Time)
		}
		if !instance.Started.IsZero() {
			instance.Started = at(instance.Started)
		}
	}
	for i := range in.Past {
		in.Past[i].Start, in.Past[i].Length = at(in.Past[i].Start), in.Past[i].Length/factor
	}
	return in
}

// Compressed samples have the shape of the same samples further apart. What a status reports of it is in real time: the
// rate of a real day, and how long the limit really takes to be reached.
func TestCompressedSamplesHaveTheSameShape(t *testing.T) {
	const factor, limit = 60, 1024 * memory.MiB
	one := func(span time.Duration, f curve) Input {
		return Input{Instances: []Instance{sampled("web-1", span, time.Minute, f)}, Limit: limit}
	}
	for name, in := range map[string]Input{
		"flat": one(24*time.Hour, leaks(200, 0)), "a warm-up": one(24*time.Hour, fills(90, 120, 0.5)),
		"a leak": one(24*time.Hour, leaks(200, 10)), "a short leak": one(5*time.Hour, leaks(200, 10)),
		"too short": one(time.Hour, leaks(200, 40)), "near its limit": one(time.Hour, leaks(400, 550)),
		"teeth": one(24*time.Hour, teeth(200, 400, 1)), "a leak below teeth": one(
			24*time.Hour, plus(leaks(200, 10), teeth(0, 80, 0.7)),
		),
		"steps":      one(24*time.Hour, steps(230, 6, 350, 12, 500, 18, 640)),
		"four hours": one(4*time.Hour, steps(230, 1, 350)),
		"the past":   {Past: spans(96, time.Hour, leaks(200, 2)), Limit: limit},
	} {
		t.Run(name, func(t *testing.T) {
			want := Classify(in)
			compress.By(t, factor)
			got := Classify(closer(in, factor))
			if got.Kind != want.Kind || got.Confidence != want.Confidence || got.Trough != want.Trough ||
				got.Peak != want.Peak || len(got.Steps) != len(want.Steps) {
				t.Fatalf("%s, %s (%s); want %s, %s (%s)", got.Kind, got.Confidence, got.Summary, want.Kind, want.Confidence,
					want.Summary)
			}
			about := func(what string, got, want float64) {
				t.Helper()
				if math.Abs(got-want) > 0.001*math.Abs(want) {
					t.Errorf("%s: %v, want %v", what, got, want)
				}
			}
			about("rate per day", float64(got.RatePerDay), float64(want.RatePerDay)*factor)
			for i := range got.TimeToLimit {
				about("time to limit", got.TimeToLimit[i].Seconds(), want.TimeToLimit[i].Seconds()/factor)
			}
			for i := range got.Steps {
				about("step", float64(got.Steps[i]), float64(want.Steps[i]))
			}
		})
	}
}
