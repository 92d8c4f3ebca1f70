// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// Point is one recent sample of one instance.
type Point struct {
	// Instance numbers container instances; the same pod after a restart has another number. Numbers wrap around at 256.
	Instance int
	Time     time.Time
	// Demand is that of the sample (see [memory.Sample.Demand]).
	Demand memory.Bytes
}

// Day is one day (UTC) of the workload.
type Day struct {
	// Start is midnight UTC.
	Start time.Time
	// Peak is the highest demand seen in any replica.
	Peak memory.Bytes
	// Trough is the lowest of the low points of whole hours: below it the workload did not go that day. 0: unknown,
	// because no followed instance was up for a whole hour.
	Trough memory.Bytes
}

// Hour is one hour that had samples.
type Hour struct {
	Start time.Time
	Peak  memory.Bytes
}

// Span is a piece of time in which one instance was followed: the one that held most (see timeline).
type Span struct {
	Start  time.Time
	Length time.Duration
	// Low and Peak are the lowest and the highest demand, Usual is the mean.
	Low, Usual, Peak memory.Bytes
	// Another is true when it is not the instance of the span before, which ended.
	Another bool
}

// Recent is the last two hours in points, those of a slow source in all of them (see [RecentSpan]), oldest first.
func (c *Container) Recent() []Point {
	r := &c.recent
	points := make([]Point, r.n)
	at := r.newest
	for i := int(r.n) - 1; i >= 0; i-- {
		j := r.index(i)
		points[i] = Point{int(r.number[j]), unix(at), r.value[j].bytes()}
		at -= int64(r.gap[j])
	}
	return points
}

// Days are the up to 35 days that have samples, oldest first. The newest is not over yet.
func (c *Container) Days() []Day { return c.AppendDays(nil) }

// AppendDays is [Container.Days] into the caller's buffer.
func (c *Container) AppendDays(days []Day) []Day {
	if c.samples == 0 {
		return days
	}
	for d := int(c.day) - DaysKept + 1; d <= int(c.day); d++ {
		if d < 0 {
			continue
		}
		if cell := c.days[d%DaysKept]; cell.peak != 0 {
			days = append(days, Day{unix(int64(d) * c.seconds(period.Day)), cell.peak.bytes(), cell.trough.bytes()})
		}
	}
	return days
}

// AppendHours appends the up to 48 hours that have samples, oldest first. The newest is not over yet.
func (c *Container) AppendHours(hours []Hour) []Hour {
	if c.samples == 0 {
		return hours
	}
	for h := c.hour - HoursKept + 1; h <= c.hour; h++ {
		if h < 0 {
			continue
		}
		if peak := c.hours[h%HoursKept]; peak != 0 {
			hours = append(hours, Hour{unix(int64(h) * c.seconds(period.Hour)), peak.bytes()})
		}
	}
	return hours
}

// AppendSpans appends the spans of the last half day to two days that have samples, oldest first: the longer the
// workload is known, the longer they are (see [SpansKept]). The newest is not over yet.
func (c *Container) AppendSpans(spans []Span) []Span {
	t := &c.past
	spans = slices.Grow(spans, int(t.n)+1)
	for i, s := range t.span[:t.n] {
		spans = c.appendSpan(spans, s, int64(t.begin)+int64(i)*int64(t.width))
	}
	open, _ := c.openSpan()
	return c.appendSpan(spans, open, t.open())
}

// Quantile is the demand that the share q (0 to 1) of past hours, recent ones weighing more, stayed below. 0 without
// data.
func (c *Container) Quantile(q float64) memory.Bytes {
	h := c.peaks
	h.add(c.now, c.hour)
	return h.quantile(q)
}

// Trough is the live set: of the last day, the highest of the lowest points of six hours each. Six hours hold a
// collection of any runtime that collects at all, and of the four the busiest counts. 0: unknown, because no followed
// instance was up for a whole hour.
func (c *Container) Trough() memory.Bytes { return c.lowSince(c.hour - lowHours).bytes() }

// HighestDay is the highest demand of the days kept.
func (c *Container) HighestDay() memory.Bytes {
	var peak size16
	for _, d := range c.days {
		peak = max(peak, d.peak)
	}
	return peak.bytes()
}

// Samples is the number of samples taken in so far.
func (c *Container) Samples() int64 { return int64(c.samples) }

// First is the time of the oldest sample; zero without samples.
func (c *Container) First() time.Time { return unix(int64(c.first)) }

// Last is the time of the newest sample; zero without samples.
func (c *Container) Last() time.Time { return unix(c.last) }

// Span is the time between the oldest and the newest sample.
func (c *Container) Span() time.Duration { return time.Duration(c.last-int64(c.first)) * time.Second }

// PeakRSS is the highest anonymous memory in the days kept; 0 when the source never reported it.
func (c *Container) PeakRSS() memory.Bytes { return c.peakRSS.bytes() }

// PeakSwap is the most that was swapped out in the days kept.
func (c *Container) PeakSwap() memory.Bytes { return c.peakSwap.bytes() }

// PeakWorkingSet is the highest working set in the days kept.
func (c *Container) PeakWorkingSet() memory.Bytes { return c.peakWS.bytes() }

// Certainty is how well demand is known.
type Certainty uint8

// The certainties.
const (
	// Unknown: no sample was exact.
	Unknown Certainty = iota
	// Exact: demand was measured.
	Exact
	// RSSOnly: shared memory is missing in some samples, so that demand may be higher.
	RSSOnly
	// WorkingSetOnly: some samples are working sets, which contain page cache, so that demand may be lower.
	WorkingSetOnly
)

// Certainty returns how well the demand of the last span of time is known: Exact when some sample was exact in it, and
// none of an instance that is older than ten minutes was not.
func (c *Container) Certainty(span time.Duration) Certainty {
	within := func(at stamp) bool { return at > 0 && c.last-int64(at) < int64(span/time.Second) }
	switch {
	case within(c.inexact) && c.workingSet:
		return WorkingSetOnly
	case within(c.inexact):
		return RSSOnly
	case within(c.exact):
		return Exact
	}
	return Unknown
}

// Regime is what was seen under one limit.
type Regime struct {
	// Limit is 0 when no regime was seen.
	Limit memory.Bytes
	// Peak is the highest demand under that limit, Low the live set as [Container.Trough] finds it (0: unknown).
	Peak, Low memory.Bytes
}

// Regimes are what was seen under the effective limit and under the one before it.
func (c *Container) Regimes() (now, before Regime) {
	see := func(r regime) Regime { return Regime{Limit: r.limit.bytes(), Peak: r.peak.bytes(), Low: r.low.bytes()} }
	current := c.regime
	current.low = c.lowSince(current.since)
	return see(current), see(c.before)
}

func unix(sec int64) time.Time {
	if sec == 0 {
		return time.Time{}
	}
	return time.Unix(sec, 0).UTC()
}
