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
	// Instance is the number of the container instance; a restarted container has another number. It wraps around at 256.
	Instance int
	Time     time.Time
	// Demand is the highest [memory.Sample.Demand] of the samples merged into the point.
	Demand memory.Bytes
}

// Day is one day (UTC) of the workload.
type Day struct {
	// Start is midnight UTC.
	Start time.Time
	// Peak is the highest demand seen in any replica.
	Peak memory.Bytes
	// Trough is the lowest of the low points of whole hours. 0: unknown, because no tracked instance ran for a whole hour.
	Trough memory.Bytes
}

// Hour is one hour that had samples.
type Hour struct {
	Start time.Time
	Peak  memory.Bytes
}

// Span is a period of the timeline, which follows the instance with the highest use.
type Span struct {
	Start  time.Time
	Length time.Duration
	// Low, Usual and Peak are the lowest, the mean and the highest demand.
	Low, Usual, Peak memory.Bytes
	// Another is true if the previous span was of another instance.
	Another bool
}

// Recent returns the points of about the last two hours ([RecentSpan]), oldest first.
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

// Days returns the days with samples, oldest first, at most 35. The newest day is incomplete.
func (c *Container) Days() []Day { return c.AppendDays(nil) }

// AppendDays appends [Container.Days] to days.
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

// AppendHours appends the hours with samples to hours, oldest first, at most 48. The newest hour is incomplete.
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

// AppendSpans appends the spans with samples to spans, oldest first, at most [SpansKept] and the newest, which is
// incomplete. All spans have equal lengths, which double as the history grows: from nine hours in total to three days.
func (c *Container) AppendSpans(spans []Span) []Span {
	t := &c.past
	spans = slices.Grow(spans, int(t.n)+1)
	for i, s := range t.span[:t.n] {
		spans = c.appendSpan(spans, s, int64(t.begin)+int64(i)*int64(t.width))
	}
	open, _ := c.openSpan()
	return c.appendSpan(spans, open, t.open())
}

// Quantile returns the q-quantile (0 to 1) of hourly peaks, weighted towards recent hours; 0 without data.
func (c *Container) Quantile(q float64) memory.Bytes {
	h := c.peaks
	h.add(c.now, c.hour)
	return h.quantile(q)
}

// Trough returns the live set: the highest of the lowest points of the last four blocks of six hours. Any garbage
// collector runs within six hours. 0: unknown, because no tracked instance ran for a whole hour.
func (c *Container) Trough() memory.Bytes { return c.lowSince(c.hour - lowHours).bytes() }

// HighestDay returns the highest demand of the kept days.
func (c *Container) HighestDay() memory.Bytes {
	var peak size16
	for _, d := range c.days {
		peak = max(peak, d.peak)
	}
	return peak.bytes()
}

// Samples returns the number of samples so far.
func (c *Container) Samples() int64 { return int64(c.samples) }

// First returns the time of the oldest sample; zero without samples.
func (c *Container) First() time.Time { return unix(int64(c.first)) }

// Last returns the time of the newest sample; zero without samples.
func (c *Container) Last() time.Time { return unix(c.last) }

// Span returns the time between the oldest and the newest sample.
func (c *Container) Span() time.Duration { return time.Duration(c.last-int64(c.first)) * time.Second }

// RunningSince returns the start of the oldest tracked instance (at most maxTrackers) with samples in the last hour.
func (c *Container) RunningSince() time.Time {
	oldest := c.last
	for i := range c.trackers {
		if t := &c.trackers[i]; t.id != 0 && c.last-int64(t.last) <= c.seconds(period.Hour) {
			oldest = min(oldest, int64(t.started))
		}
	}
	return unix(oldest)
}

// PeakRSS returns the highest anonymous memory of the kept days; 0 if never reported.
func (c *Container) PeakRSS() memory.Bytes { return c.peakRSS.bytes() }

// PeakStart returns the highest demand of new pods in their first ten minutes, in the kept days. Only pods that needed
// less in the rest of their first hour count. 0: none.
func (c *Container) PeakStart() memory.Bytes {
	if c.peakStartDay.before(c.day) >= DaysKept {
		return 0
	}
	return c.peakStart.bytes()
}

// PeakSwap returns the highest swap of the kept days.
func (c *Container) PeakSwap() memory.Bytes { return c.peakSwap.bytes() }

// PeakWorkingSet returns the highest working set of the kept days.
func (c *Container) PeakWorkingSet() memory.Bytes { return c.peakWS.bytes() }

// Certainty is how well demand is known.
type Certainty uint8

// The certainties.
const (
	// Unknown: no sample was exact.
	Unknown Certainty = iota
	// Exact: demand was measured.
	Exact
	// RSSOnly: some samples lack shared memory, so demand may be higher.
	RSSOnly
	// WorkingSetOnly: some samples are working sets, which contain page cache, so demand may be lower.
	WorkingSetOnly
)

// Certainty returns how well the demand of the last span is known. Exact: the span has an exact sample, and no inexact
// sample of an instance older than ten minutes.
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

// Regime is the use under one limit.
type Regime struct {
	// Limit is 0 if there was no regime.
	Limit memory.Bytes
	// Peak is the highest demand under Limit.
	Peak memory.Bytes
	// Low is the live set under Limit, as [Container.Trough] returns it; 0: unknown.
	Low memory.Bytes
}

// Regimes returns the use under the current limit and under the previous one.
func (c *Container) Regimes() (now, before Regime) {
	export := func(r regime) Regime { return Regime{Limit: r.limit.bytes(), Peak: r.peak.bytes(), Low: r.low.bytes()} }
	current := c.regime
	current.low = c.lowSince(current.since)
	return export(current), export(c.before)
}

func unix(sec int64) time.Time {
	if sec == 0 {
		return time.Time{}
	}
	return time.Unix(sec, 0).UTC()
}
