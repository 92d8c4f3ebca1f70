// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// What a Container remembers. All together it is one object without pointers of at most 1536 bytes; a test and a
// benchmark hold it to that. docs/design/sizing.md lists what a quarter more or less of each does to sizes.
const (
	// DaysKept is the number of days whose peak and trough are kept: a month and a bit, so that a monthly job is seen
	// again.
	DaysKept = 35
	// HoursKept is the number of hourly peaks kept: two days, for as long as a container is young and gets headroom for
	// its next step (OldFrom in internal/recommend).
	HoursKept = 2 * 24
	// lowHours is the number of hours whose low points are kept: a day, because most use has a daily rhythm, and what is
	// alive at its busiest hours counts.
	lowHours = 24
	// lowBlock is the number of hours of which the lowest point of an instance is taken: lowsSpan.
	lowBlock = int32(lowsSpan / period.Hour)
	// PointsKept is the number of recent points, 72 of five bytes: one in 100 s over two hours. RecentSpan is how far back
	// they reach when a workload has more replicas or a faster source than fits: points of one instance are then thinned,
	// each kept one being the highest since the one before. What lies further back is in the timeline.
	PointsKept = 72
	RecentSpan = 2 * period.Hour
	// maxTrackers is the number of instances followed one by one, each in 28 bytes. Peaks of all replicas count; low
	// points are taken from these, because replicas of one workload do the same work.
	maxTrackers = 6
	// warmUp is how long a new process is left out of the low points: what it has not allocated yet is not part of a live
	// set. Longer only takes time, and shorter gives a live set that is too small.
	warmUp = 10 * period.Minute
	// regimePercent is by how much a limit must change for what was seen under it to be kept apart: less teaches nothing,
	// and what memfit changes by itself is more (sizing.minChangePercent).
	regimePercent = 5
)

// Container is the bounded memory of one container name of one workload, all replicas together. The zero value is empty
// and ready. Times are Unix seconds, hours and days since 1970: a Container holds no pointers, so a hundred thousand of
// them cost the garbage collector nothing. Its hours and days are those of evidence ([period.Evidence]), with the
// factor of its first sample.
type Container struct {
	first   stamp
	samples uint32
	last    int64

	peakRSS, peakWS       size16
	peakRSSDay, peakWSDay lowDay
	peakSwap              size16
	peakSwapDay           lowDay

	now    size16 // highest demand of the newest hour so far
	factor uint16 // of internal/period; 0: as 1
	day    uint32 // newest day; compressed days do not fit 16 bits
	hour   int32  // newest hour

	days  [DaysKept]dayCell
	hours [HoursKept]size16
	lows  [lowHours]size16
	peaks histogram

	trackers  [maxTrackers]instanceTracker
	instances uint8 // number given to the newest instance
	// workingSet: the last sample that was not exact had the working set only. exact and inexact are when demand was last
	// known exactly, and when it was not.
	workingSet     bool
	exact, inexact stamp
	regime         regime // under the effective limit
	before         regime // under the limit before it
	records        Records
	past           timeline
	recent         ring
}

// lowDay is the lower half of a day's number, which is enough to compare days that are less than 32768 apart.
type lowDay uint16

// before is how many days d is before a day; negative: after it.
func (d lowDay) before(day uint32) int {
	return int(int16(uint16(day) - uint16(d))) //nolint:gosec // modular on purpose
}

// dayCell is one day; a zero peak means no samples.
type dayCell struct{ peak, trough size16 }

// instanceTracker follows one container instance.
type instanceTracker struct {
	id      uint32 // hash of the pod's name, UID and container; 0: free
	low     size16 // lowest demand in this hour; 0: none yet, or still warming up
	full    bool   // it was up and warm when the hour began
	number  uint8
	open    openInterval // what it used in the span that is not over yet
	last    stamp
	started stamp // when it started, or when it was first seen
}

// stamp is a time in Unix seconds, good until 2106.
type stamp uint32

// regime is what was seen under one limit: it distinguishes use that follows the limit from demand that does not.
type regime struct {
	since            int32  // the hour it began
	limit, peak, low size16 // low is filled in when the regime ends; until then it is in lows
}

// New is an empty history.
func New() *Container { return &Container{} }

// Add takes one sample, with the limit that was effective (0: none or unknown). Samples may come twice or late:
// a duplicate changes nothing, a late one still counts for its hour and day. Samples older than the days kept are
// dropped, and so are empty ones.
func (c *Container) Add(s memory.Sample, limit memory.Bytes) {
	demand := s.Demand()
	at := s.Time.Unix()
	if s.HasRSS {
		demand = max(demand, 1) // an idle process is a sample too; only a source that saw nothing at all gives none
	}
	if demand <= 0 || at <= 0 || at > math.MaxUint32 {
		return
	}
	if c.samples == 0 {
		c.factor = uint16(period.Factor()) //nolint:gosec // at most period.MostFactor
	}
	hour, day := c.hourOf(at), c.dayOf(at)
	if c.samples > 0 && int(c.day)-int(day) >= DaysKept {
		return
	}
	c.advance(hour, day)
	t, fresh := c.trackerFor(s, at)
	if t != nil && !fresh && int64(t.last) == at {
		return
	}
	v := encode(demand)
	c.count(at)
	c.markHour(v, hour)
	c.markDay(v, day)
	c.markPeaks(s, day)
	c.markExact(s, stamp(at))
	if t == nil || at < int64(t.last) {
		return
	}
	t.last = stamp(at)
	c.markRegime(v, limit)
	if hour == c.hour && (t.full || c.warm(t)) && (t.low == 0 || v < t.low) {
		t.low = v
	}
	c.turn(at)
	t.open.add(v, t.number)
	c.recent.add(v, at, t.number, c.spacing())
}

// Factor is what the evidence of the history was compressed by; 1: not at all.
func (c *Container) Factor() int { return int(max(c.factor, 1)) }

// seconds is how long a period of evidence takes in this history.
func (c *Container) seconds(p period.Evidence) int64 { return int64(p.At(c.Factor()) / time.Second) }

func (c *Container) hourOf(at int64) int32 { return int32(at / c.seconds(period.Hour)) } //nolint:gosec // of 32-bit seconds
func (c *Container) dayOf(at int64) uint32 { return uint32(at / c.seconds(period.Day)) } //nolint:gosec // of 32-bit seconds

// advance closes the hours and days between the newest seen and this one.
func (c *Container) advance(hour int32, day uint32) {
	if c.samples == 0 {
		c.hour, c.day = hour, day
		return
	}
	if hour <= c.hour {
		return
	}
	c.closeHour()
	c.records.fade(hour - c.hour)
	for h := c.hour + 1; h <= hour && h <= c.hour+HoursKept; h++ {
		c.hours[h%HoursKept] = 0
		c.lows[h%lowHours] = 0
	}
	for d := c.day + 1; d <= day && d <= c.day+DaysKept; d++ {
		c.days[d%DaysKept] = dayCell{}
	}
	c.hour, c.day, c.now = hour, day, 0
}

// closeHour moves the finished hour into the histogram, and the low points of its instances into the day.
func (c *Container) closeHour() {
	c.followFullest()
	c.learn()
	c.peaks.add(c.now, c.hour)
	var low size16
	for i := range c.trackers {
		t := &c.trackers[i]
		if t.full {
			low = max(low, t.low)
		}
		t.low = 0
		t.full = t.id != 0 && c.hourOf(int64(t.last)) == c.hour && (t.full || c.warm(t))
	}
	c.lows[c.hour%lowHours] = low
	if cell := &c.days[c.day%DaysKept]; low != 0 && (cell.trough == 0 || low < cell.trough) {
		cell.trough = low
	}
}

// trackerFor finds or takes the tracker of a sample's instance; nil when all are busy with others. fresh is true for a
// new instance.
func (c *Container) trackerFor(s memory.Sample, at int64) (t *instanceTracker, fresh bool) {
	id := instanceID(s.Container)
	var free *instanceTracker
	for i := range c.trackers {
		t := &c.trackers[i]
		switch {
		case t.id == id:
			if started := s.Started.Unix(); !s.Started.IsZero() && started > int64(t.last) && started <= math.MaxUint32 {
				c.occupy(t, id, started)
				return t, true
			}
			return t, false
		case free == nil && (t.id == 0 || at-int64(t.last) > c.seconds(RecentSpan)):
			free = t
		}
	}
	if free == nil {
		return nil, false
	}
	started := at
	if !s.Started.IsZero() && s.Started.Unix() > 0 {
		started = min(at, s.Started.Unix())
	}
	c.occupy(free, id, started)
	return free, true
}

func (c *Container) warm(t *instanceTracker) bool {
	return int64(t.last-t.started) >= c.seconds(warmUp)
}

// markRegime starts a new regime when the limit changes by more than regimePercent.
func (c *Container) markRegime(v size16, limit memory.Bytes) {
	if l := encode(limit); l != 0 && l != c.regime.limit {
		was := c.regime.limit.bytes()
		if c.regime.limit != 0 && c.regime.peak != 0 && (limit > was.Percent(100+regimePercent) ||
			limit < was.Percent(100-regimePercent)) {
			c.before = c.regime
			c.before.low = c.lowSince(c.regime.since)
			c.regime = regime{since: c.hour}
		}
		c.regime.limit = l
	}
	c.regime.peak = max(c.regime.peak, v)
}

// lowSince is the live set in the last day, as far as it is after an hour: the highest of the lowest points of lowBlock
// hours each, so that the busiest block counts. 0: unknown.
func (c *Container) lowSince(since int32) size16 {
	var high size16
	for block := c.hour - lowHours; block < c.hour; block += lowBlock {
		var low size16
		for h := max(block, since) + 1; h <= min(block+lowBlock, c.hour); h++ {
			if v := c.lows[(h+lowHours)%lowHours]; v != 0 && (low == 0 || v < low) {
				low = v
			}
		}
		high = max(high, low)
	}
	return high
}

// Restarted records that an instance of the container ended, for whatever reason: what follows is a new process, which
// warms up again.
func (c *Container) Restarted(ref memory.ContainerRef, at time.Time) {
	id := instanceID(ref)
	for i := range c.trackers {
		if t := &c.trackers[i]; t.id == id && at.Unix() > int64(t.started) && at.Unix() <= math.MaxUint32 {
			c.occupy(t, id, at.Unix())
		}
	}
}

func (c *Container) occupy(t *instanceTracker, id uint32, started int64) {
	c.instances++
	var open openInterval
	if t.id == id {
		open = t.open // the span is still that of the one before
	}
	at := stamp(started) //nolint:gosec // callers checked that it fits
	*t = instanceTracker{open: open, id: id, started: at, number: c.instances, last: at - 1}
}

func (c *Container) count(at int64) {
	if c.samples == 0 || at < int64(c.first) {
		c.first = stamp(at) //nolint:gosec // Add takes no others
	}
	c.last = max(c.last, at)
	if c.samples < math.MaxUint32 {
		c.samples++
	}
}

func (c *Container) markHour(v size16, hour int32) {
	if c.hour-hour >= HoursKept {
		return
	}
	cell := &c.hours[hour%HoursKept]
	*cell = max(*cell, v)
	if hour == c.hour {
		c.now = max(c.now, v)
	}
}

func (c *Container) markDay(v size16, day uint32) {
	cell := &c.days[day%DaysKept]
	cell.peak = max(cell.peak, v)
}

func (c *Container) markPeaks(s memory.Sample, day uint32) {
	if s.HasRSS {
		mark(&c.peakRSS, &c.peakRSSDay, encode(s.RSS), day)
	}
	if s.Swap > 0 {
		mark(&c.peakSwap, &c.peakSwapDay, encode(s.Swap), day)
	}
	mark(&c.peakWS, &c.peakWSDay, encode(s.WorkingSet), day)
}

// unmeasuredFor is how long after its start an instance may be sampled before its first exact measurement: those come
// every minute, samples more often, and both may be late.
const unmeasuredFor = 10 * time.Minute

// markExact notes whether a sample was exact. The first minutes of an instance prove nothing about the source.
func (c *Container) markExact(s memory.Sample, at stamp) {
	switch {
	case s.Exact:
		c.exact = max(c.exact, at)
	case at >= c.inexact && (s.Started.IsZero() || s.Time.Sub(s.Started) >= unmeasuredFor):
		c.inexact, c.workingSet = at, !s.HasRSS
	}
}

// mark keeps the highest value of the days kept; a record older than that gives way to what is seen now.
func mark(peak *size16, on *lowDay, v size16, day uint32) {
	if v >= *peak || on.before(day) >= DaysKept {
		*peak, *on = v, lowDay(day) //nolint:gosec // its lower half is meant
	}
}

// spacing is the least time between two recent points of one instance, so that the ring reaches back about RecentSpan.
func (c *Container) spacing() int64 {
	var busy int64
	for i := range c.trackers {
		if c.trackers[i].id != 0 && c.last-int64(c.trackers[i].last) <= c.seconds(period.Hour) {
			busy++
		}
	}
	return busy * c.seconds(RecentSpan) / PointsKept
}

// instanceID is FNV-1a over the names: equal on every machine, so that equal input gives equal bytes.
func instanceID(ref memory.ContainerRef) uint32 {
	const offset, prime = 2166136261, 16777619
	h := uint32(offset)
	for _, part := range [...]string{ref.Namespace, ref.Pod, string(ref.UID), ref.Container} {
		for i := range len(part) {
			h = (h ^ uint32(part[i])) * prime
		}
		h = (h ^ 0xff) * prime
	}
	return max(h, 1)
}
