// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// watch adds a sample a minute of some pods, for that long from some time on.
func watch(c *Container, from time.Time, span time.Duration, use map[string]func(m int) memory.Bytes) {
	for m := range int(span / time.Minute) {
		for pod, f := range use {
			c.Add(sampleOf(pod, from.Add(time.Duration(m)*time.Minute), f(m)), 0)
		}
	}
}

func flat(mib memory.Bytes) func(int) memory.Bytes {
	return func(int) memory.Bytes { return mib * memory.MiB }
}

// around allows for the 255ths that low points and means are kept in.
func around(a, b memory.Bytes) bool {
	return math.Abs(float64(a-b)) <= float64(b)/100
}

func TestTheTimelineKnowsLowUsualAndHighOfEverySpan(t *testing.T) {
	c := New()
	teeth := func(m int) memory.Bytes { return (100 + 50*memory.Bytes(m%3)) * memory.MiB }
	watch(c, start, 4*time.Hour, map[string]func(int) memory.Bytes{"web-1": teeth})
	spans := c.AppendSpans(nil)
	if len(spans) != 40 {
		t.Fatalf("%d spans in four hours, want 40 of six minutes", len(spans))
	}
	for i, s := range spans {
		if want := start.Add(time.Duration(i) * finestSpan * time.Second); s.Start != want ||
			s.Length != finestSpan*time.Second {
			t.Fatalf("span %d: %s, for %s; want %s", i, s.Start, s.Length, want)
		}
		if !around(s.Low, 100*mib) || !around(s.Usual, 150*mib) || !near(s.Peak, 200*mib) || s.Another != (i == 0) {
			t.Fatalf("span %d: %+v", i, s)
		}
	}
}

func TestSpansGrowLongerUntilTheyReachThreeDays(t *testing.T) {
	ramp := func(m int) memory.Bytes { return memory.Bytes(100+m) * memory.MiB }
	for _, tc := range []struct {
		after, length time.Duration
		spans         int
	}{
		{9 * time.Hour, 6 * time.Minute, 90}, {12 * time.Hour, 12 * time.Minute, 60},
		{24 * time.Hour, 24 * time.Minute, 60}, {48 * time.Hour, 48 * time.Minute, 60},
		{96 * time.Hour, 48 * time.Minute, 97},
	} {
		c := New()
		watch(c, start, tc.after, map[string]func(int) memory.Bytes{"web-1": ramp})
		spans := c.AppendSpans(nil)
		if len(spans) != tc.spans || spans[0].Length != tc.length {
			t.Errorf("after %s: %d spans of %s, want %d of %s", tc.after, len(spans), spans[0].Length, tc.spans, tc.length)
		}
		for _, s := range spans {
			first := int(s.Start.Sub(start) / time.Minute)
			last := first + int(s.Length/time.Minute) - 1
			if !around(s.Low, ramp(first)) || !around(s.Usual, (ramp(first)+ramp(last))/2) || !near(s.Peak, ramp(last)) {
				t.Fatalf(
					"after %s, at %s: %s to %s, want %s to %s", tc.after, s.Start.Sub(start), s.Low, s.Peak, ramp(first), ramp(last),
				)
			}
		}
	}
}

func TestAGapLeavesNoSpans(t *testing.T) {
	c := New()
	use := map[string]func(int) memory.Bytes{"web-1": flat(100)}
	watch(c, start, time.Hour, use)
	watch(c, start.Add(3*time.Hour), time.Hour, use)
	spans := c.AppendSpans(nil)
	if len(spans) != 20 || spans[9].Start != start.Add(54*time.Minute) || spans[10].Start != start.Add(3*time.Hour) {
		t.Errorf("%d spans around a gap of two hours", len(spans))
	}
	watch(c, start.AddDate(0, 0, 20), time.Hour, use)
	if spans = c.AppendSpans(nil); len(spans) != 10 {
		t.Errorf("%d spans after a gap of weeks, want 10", len(spans))
	}
}

func TestARestartBeginsAnotherSpanAndKeepsThePeakBeforeIt(t *testing.T) {
	c := New()
	watch(c, start, 62*time.Minute, map[string]func(int) memory.Bytes{"web-1": flat(500)})
	c.Restarted(sampleOf("web-1", start, 0).Container, start.Add(62*time.Minute))
	watch(c, start.Add(62*time.Minute), time.Hour, map[string]func(int) memory.Bytes{"web-1": flat(50)})
	for i, s := range c.AppendSpans(nil) {
		want := 500 * mib // the span of the restart is still that of the process that ended
		if i > 10 {
			want = 50 * mib
		}
		if !near(s.Peak, want) || !around(s.Low, want) || s.Another != (i == 0 || i == 11) {
			t.Errorf("span %d: %+v", i, s)
		}
	}
}

func TestTheTimelineStaysWithOneReplica(t *testing.T) {
	c := New()
	tooth := func(phase int) func(int) memory.Bytes {
		return func(m int) memory.Bytes { return memory.Bytes(100+2*((m+phase)%50)) * memory.MiB }
	}
	watch(
		c, start, 6*time.Hour, map[string]func(int) memory.Bytes{"web-1": tooth(0), "web-2": tooth(20), "web-3": tooth(35)},
	)
	low := memory.Max
	for i, s := range c.AppendSpans(nil) {
		low = min(low, s.Low)
		if s.Another && i > 0 {
			t.Errorf("at %s it changes to another replica", s.Start)
		}
	}
	if !around(low, 100*mib) {
		t.Errorf("its lowest point is %s: it is a mixture of replicas", low)
	}
}

func TestTheTimelineTurnsToTheOutlier(t *testing.T) {
	c := New()
	outlier := func(m int) memory.Bytes { return memory.Bytes(100+min(m, 400)) * memory.MiB }
	watch(
		c, start, 10*time.Hour, map[string]func(int) memory.Bytes{"web-1": flat(110), "web-2": outlier, "web-3": flat(105)},
	)
	spans := c.AppendSpans(nil)
	if got := spans[len(spans)-1].Usual; !around(got, 500*mib) {
		t.Errorf("it follows the one at %s, want the one at 500Mi", got)
	}
	for i, s := range spans {
		if s.Another && i > 0 {
			t.Errorf("at %s a replica that goes on is said to have ended", s.Start)
		}
	}
}
