// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// Bounds of a Container: one object without pointers, of at most 1536 bytes (checked by a test). docs/design/sizing.md
// shows how sizes change if a bound is a quarter larger or smaller.
const (
	// DaysKept is the number of days whose peak and trough are kept: more than a month, for monthly jobs.
	DaysKept = 35
	// HoursKept is the number of hourly peaks kept: two days, the age at which a container no longer counts as young
	// (OldFrom in internal/recommend).
	HoursKept = 2 * 24
	// lowHours is the number of hours whose low points are kept: a day, because most use has a daily pattern, and the
	// live set of the busiest hours counts.
	lowHours = 24
	// lowBlock is lowsSpan in hours.
	lowBlock = int32(lowsSpan / period.Hour)
	// PointsKept is the number of recent points, of five bytes each: one per 100 s over RecentSpan.
	PointsKept = 72
	// RecentSpan is the period that the recent points cover. With more replicas or a faster source, each point is the
	// highest of several samples.
	RecentSpan = 2 * period.Hour
	// maxTrackers is the number of instances that are tracked individually, in 32 bytes each. Peaks of all replicas count,
	// but low points only of these, because replicas do the same work.
	maxTrackers = 6
	// warmUp is the age from which the low points of a process count. A younger process has not allocated its live set.
	// A smaller value would make the live set too small, a larger one would only delay it.
	warmUp = 10 * period.Minute
	// regimePercent is the smallest change of a limit that starts a new regime. Smaller changes show nothing, and
	// memfit's own are larger (sizing.minChangePercent).
	regimePercent = 5
	// startPercent is how much less a new pod must need after its start, in percent, for the start to count: smaller
	// differences are within the margin of a limit, or below sizing.minChangePercent.
	startPercent = 10
)

// Container is the bounded history of one container name of one workload, for all replicas together. The zero value is
// empty and ready to use. It holds no pointers, so a hundred thousand of them cost the garbage collector nothing. Times
// are seconds, hours or days since 1970, where hours and days are of evidence ([period.Evidence]), compressed by the
// factor at the first sample.
type Container struct {
	first   stamp
	samples uint32
	last    int64

	peakRSS, peakWS       size16
	peakRSSDay, peakWSDay lowDay
	peakSwap              size16
	peakSwapDay           lowDay
	peakStart             size16 // of new pods; see markStart
	peakStartDay          lowDay

	now    size16 // highest demand of the newest hour so far
	factor uint16 // compression factor of internal/period; 0: 1
	day    uint32 // newest day; compressed days do not fit 16 bits
	hour   int32  // newest hour

	days  [DaysKept]dayCell
	hours [HoursKept]size16
	lows  [lowHours]size16
	peaks histogram

	trackers  [maxTrackers]instanceTracker
	instances uint8 // number of the newest instance
	// workingSet is true if the last inexact sample had only the working set.
	workingSet     bool
	exact, inexact stamp  // of the last exact and the last inexact sample
	regime         regime // under the current limit
	before         regime // under the previous limit
	records        Records
	past           timeline
	recent         ring
}

// lowDay is the lower half of a day's number, enough to compare days less than 32768 apart.
type lowDay uint16

// before returns how many days d is before day; negative: after it.
func (d lowDay) before(day uint32) int {
	return int(int16(uint16(day) - uint16(d))) //nolint:gosec // modular on purpose
}

// dayCell has the extremes of one day; a zero peak means no samples.
type dayCell struct{ peak, trough size16 }

// instanceTracker tracks one container instance.
type instanceTracker struct {
	id      uint32 // hash of the pod's name, UID and container; 0: unused
	low     size16 // lowest demand in this hour; 0: none yet, or still warming up
	full    bool   // warm for the whole hour
	number  uint8  // of the instance
	open    openInterval
	last    stamp // newest sample
	started stamp // start, or first sample
	// start and after are the highest demand of a new pod before warmUp and in the rest of its first hour; otherwise 0.
	start, after size16
}

// stamp is a time in Unix seconds, valid until 2106.
type stamp uint32

// regime has the use under one limit. Two regimes show whether use follows the limit.
type regime struct {
	since       int32 // first hour
	limit, peak size16
	low         size16 // live set, set when the regime ends; see Container.lowSince
}

// New returns an empty history.
func New() *Container { return &Container{} }

// Add adds one sample, with the limit that was effective (0: none or unknown). A duplicate changes nothing, and a late
// sample counts for its hour and day. Add ignores samples older than the kept days, and empty ones.
func (c *Container) Add(s memory.Sample, limit memory.Bytes) {
	demand := s.Demand()
	at := s.Time.Unix()
	if s.HasRSS {
		demand = max(demand, 1) // an idle process counts; only an empty sample does not
	}
	if demand <= 0 || at <= 0 || at > math.MaxUint32 {
		return
	}
	if c.samples == 0 {
		c.factor = uint16(period.Factor()) //nolint:gosec // at most period.MaxFactor
	}
	hour, day := c.hourOf(at), c.dayOf(at)
	if c.samples > 0 && int(c.day)-int(day) >= DaysKept {
		return
	}
	c.advance(hour, day)
	t, isNew := c.trackerFor(s, at)
	if t != nil && !isNew && int64(t.last) == at {
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
	if s.HasRSS || s.Exact { // a working set contains page cache
		c.markStart(t, v, day)
	}
	if hour == c.hour && (t.full || c.warm(t)) && (t.low == 0 || v < t.low) {
		t.low = v
	}
	c.closeSpans(at)
	t.open.add(v, t.number)
	c.recent.add(v, at, t.number, c.spacing())
}

// Factor returns the compression factor of the history's evidence; 1: not compressed.
func (c *Container) Factor() int { return int(max(c.factor, 1)) }

// seconds returns the real length of a period of evidence.
func (c *Container) seconds(p period.Evidence) int64 { return int64(p.At(c.Factor()) / time.Second) }

func (c *Container) hourOf(at int64) int32 { return int32(at / c.seconds(period.Hour)) } //nolint:gosec // of 32-bit seconds
func (c *Container) dayOf(at int64) uint32 { return uint32(at / c.seconds(period.Day)) } //nolint:gosec // of 32-bit seconds

// advance closes all hours and days before the given ones.
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

// closeHour adds the finished hour to the records, the histogram, and the low points of the last hours and days.
func (c *Container) closeHour() {
	c.followFullest()
	c.countRecord()
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

// trackerFor returns the tracker of a sample's instance; nil if all are in use. isNew reports a new instance.
func (c *Container) trackerFor(s memory.Sample, at int64) (t *instanceTracker, isNew bool) {
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
	if !s.Started.IsZero() && at-started < c.seconds(warmUp) {
		free.start = 1 // the least size; markStart has the rest
	}
	return free, true
}

func (c *Container) warm(t *instanceTracker) bool {
	return int64(t.last-t.started) >= c.seconds(warmUp)
}

// markStart tracks a new pod for an hour. If the pod needed less by startPercent after its start, the peak of the start
// is kept; otherwise the days show it. Restarts do not count: after a kill, the load that caused the kill may continue.
func (c *Container) markStart(t *instanceTracker, v size16, day uint32) {
	switch age := int64(t.last) - int64(t.started); {
	case t.start == 0:
	case age < c.seconds(warmUp):
		t.start = max(t.start, v)
	case age < c.seconds(period.Hour):
		t.after = max(t.after, v)
	default:
		if t.after > 0 && t.after.bytes() < t.start.bytes().Percent(100-startPercent) {
			mark(&c.peakStart, &c.peakStartDay, t.start, day)
		}
		t.start, t.after = 0, 0
	}
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

// lowSince returns the live set, from the hours of the last day that are after since: it takes the lowest point of each
// block of lowBlock hours, and returns the highest of these. 0: unknown.
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

// Restarted records that an instance of the container ended at that time. The next sample belongs to a new instance.
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
		open = t.open // the current span remains the previous instance's
	}
	at := stamp(started) //nolint:gosec // callers checked that it fits
	*t = instanceTracker{open: open, id: id, started: at, number: c.instances, last: at - 1}
}

func (c *Container) count(at int64) {
	if c.samples == 0 || at < int64(c.first) {
		c.first = stamp(at) //nolint:gosec // Add checked it
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

// unmeasuredFor is the age up to which inexact samples of an instance are ignored: exact ones may arrive late.
const unmeasuredFor = 10 * time.Minute

// markExact records whether a sample was exact, except in the first minutes of an instance.
func (c *Container) markExact(s memory.Sample, at stamp) {
	switch {
	case s.Exact:
		c.exact = max(c.exact, at)
	case at >= c.inexact && (s.Started.IsZero() || s.Time.Sub(s.Started) >= unmeasuredFor):
		c.inexact, c.workingSet = at, !s.HasRSS
	}
}

// mark updates the peak of the kept days: v replaces a lower peak, and one that is too old.
func mark(peak *size16, on *lowDay, v size16, day uint32) {
	if v >= *peak || on.before(day) >= DaysKept {
		*peak, *on = v, lowDay(day) //nolint:gosec // lower half only
	}
}

// spacing returns the seconds between two recent points of one instance, so that the ring covers about RecentSpan.
func (c *Container) spacing() int64 {
	var busy int64
	for i := range c.trackers {
		if c.trackers[i].id != 0 && c.last-int64(c.trackers[i].last) <= c.seconds(period.Hour) {
			busy++
		}
	}
	return busy * c.seconds(RecentSpan) / PointsKept
}

// instanceID returns FNV-1a over the names: equal on every machine, so that equal input gives equal bytes.
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
