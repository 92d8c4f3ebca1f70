// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

const (
	// SpansKept is the number of closed spans of the timeline: the number of cells of a series in internal/shape.
	SpansKept = 96
	// finestSpan is the initial length of a span, in seconds of evidence: nine hours in total. When all spans are used,
	// neighbors are merged, which doubles the length.
	finestSpan = 6 * 60
	// widestSpan is the greatest length of a span: three days in total, so that a daily pattern repeats three times. A
	// full timeline of such spans drops the oldest.
	widestSpan = 48 * 60
	// fullerPercent is the ratio of hourly low points from which the timeline changes to a fuller instance. A smaller
	// ratio would make unsynchronized sawteeth look like growth.
	fullerPercent = 150
)

// timeline is the memory of one instance in spans of equal length. It follows the instance with the highest use until
// that instance ends or another uses far more. A mixture of replicas would have a shape that no replica has.
type timeline struct {
	begin   stamp  // start of the oldest span
	width   uint16 // seconds
	n       uint8
	follows uint8 // number of the instance
	span    [SpansKept]spanCell
}

// spanCell is one span. A zero high means no data.
type spanCell struct {
	high size16
	low  uint8 // in 255ths of high
	mean uint8 // in 127ths of the way from low to high; the highest bit is another
}

// another is the bit of mean that marks the first span of another instance.
const another = 1 << 7

// makeSpan returns a span. high must be above 0; low and mean are capped to it.
func makeSpan(low, mean, high memory.Bytes) spanCell {
	s := spanCell{high: encode(high)}
	s.low = uint8(part(min(low, high), high, math.MaxUint8)) //nolint:gosec // bounded by part
	if low < high {
		s.mean = uint8(part(min(max(mean, low), high)-low, high-low, math.MaxInt8)) //nolint:gosec // bounded by part
	}
	return s
}

// part returns the share of whole, rounded to the nearest of parts equal parts.
func part(of, whole, parts memory.Bytes) memory.Bytes { return (of*parts + whole/2) / whole }

func (s spanCell) lowest() memory.Bytes { return s.high.bytes() * memory.Bytes(s.low) / math.MaxUint8 }

func (s spanCell) usual() memory.Bytes {
	low := s.lowest()
	return low + (s.high.bytes()-low)*memory.Bytes(s.mean&^another)/math.MaxInt8
}

// joined returns two neighboring spans as one.
func joined(a, b spanCell) spanCell {
	switch {
	case a.high == 0:
		return b
	case b.high == 0:
		return a
	}
	s := makeSpan(min(a.lowest(), b.lowest()), (a.usual()+b.usual())/2, max(a.high, b.high).bytes())
	s.mean |= (a.mean | b.mean) & another
	return s
}

// openInterval is the use of one instance in the current span.
type openInterval struct {
	sum       float32 // bytes
	count     uint16
	low, high size16
	number    uint8 // of the instance
}

// add adds a point. It ignores other instances: after a restart, the new instance begins with the next span.
func (t *openInterval) add(v size16, number uint8) {
	if t.count == 0 {
		t.low, t.number = v, number
	}
	if t.number != number || t.count == math.MaxUint16 {
		return
	}
	t.low, t.high = min(t.low, v), max(t.high, v)
	t.sum += float32(v.bytes())
	t.count++
}

func (t *openInterval) mean() memory.Bytes { return memory.Bytes(t.sum / float32(max(t.count, 1))) }

// open returns the start of the current span.
func (t *timeline) open() int64 { return int64(t.begin) + int64(t.n)*int64(t.width) }

// newTimeline returns an empty timeline whose first span contains the given time. Lengths are whole seconds.
func (c *Container) newTimeline(at int64) timeline {
	finest := int64(max(finestSpan/c.Factor(), 1))
	return timeline{begin: stamp(at / finest * finest), width: uint16(finest)} //nolint:gosec // Add checked it
}

// closeSpans closes the current span if it ends before the given time, and adds empty spans for a gap.
func (c *Container) closeSpans(at int64) {
	t := &c.past
	if t.width == 0 {
		*t = c.newTimeline(at)
	}
	if at-t.open() < int64(t.width) {
		return
	}
	widest := int64(widestSpan / c.Factor())
	t.add(c.closeSpan(), widest)
	if gap := (at - t.open()) / int64(t.width); gap >= SpansKept {
		*t = c.newTimeline(at)
	}
	for at-t.open() >= int64(t.width) {
		t.add(spanCell{}, widest)
	}
}

// closeSpan returns the current span of the followed instance, and resets the current spans of all instances.
func (c *Container) closeSpan() spanCell {
	s, number := c.openSpan()
	c.past.follows = number
	for i := range c.trackers {
		c.trackers[i].open = openInterval{}
	}
	return s
}

// openSpan returns the current span of the followed instance or, if that has no data, of the instance with the highest
// use, marked with another.
func (c *Container) openSpan() (s spanCell, number uint8) {
	var fullest openInterval
	for i := range c.trackers {
		switch t := c.trackers[i].open; {
		case t.count == 0:
		case t.number == c.past.follows:
			return makeSpan(t.low.bytes(), t.mean(), t.high.bytes()), t.number
		case t.mean() > fullest.mean():
			fullest = t
		}
	}
	if fullest.count == 0 {
		return spanCell{}, c.past.follows
	}
	s = makeSpan(fullest.low.bytes(), fullest.mean(), fullest.high.bytes())
	s.mean |= another
	return s, fullest.number
}

// followFullest follows the instance with the highest low point of the finished hour from now on, if that exceeds
// fullerPercent of the followed instance's.
func (c *Container) followFullest() {
	var followed, fullest instanceTracker
	for _, s := range c.trackers {
		if s.full && s.number == c.past.follows {
			followed = s
		}
		if s.full && s.low > fullest.low {
			fullest = s
		}
	}
	if followed.low != 0 && fullest.low.bytes() > followed.low.bytes().Percent(fullerPercent) {
		c.past.follows = fullest.number
	}
}

// add appends a span. A full timeline drops its oldest span. If the spans are shorter than widest seconds, add merges
// them in pairs as soon as the timeline is full, so that the next span already has the new length.
func (t *timeline) add(s spanCell, widest int64) {
	if t.n == SpansKept {
		copy(t.span[:], t.span[1:])
		t.n--
		t.begin += stamp(t.width)
	}
	t.span[t.n] = s
	t.n++
	if t.n < SpansKept || int64(t.width) >= widest {
		return
	}
	for i := range SpansKept / 2 {
		t.span[i] = joined(t.span[2*i], t.span[2*i+1])
	}
	clear(t.span[SpansKept/2:])
	t.n, t.width = SpansKept/2, 2*t.width
}

func (c *Container) appendSpan(spans []Span, s spanCell, at int64) []Span {
	if s.high == 0 {
		return spans
	}
	return append(spans, Span{
		Start: unix(at), Length: time.Duration(c.past.width) * time.Second,
		Low: s.lowest(), Usual: s.usual(), Peak: s.high.bytes(), Another: s.mean&another != 0,
	})
}
