// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

const (
	// SpansKept is the number of spans of the timeline: as many as the parts of a series in internal/shape.
	SpansKept = 96
	// finestSpan is the initial length of a span, in seconds of evidence: nine hours fit. When all are used, neighbors
	// are merged and spans double, up to widestSpan: three days, so that a daily pattern repeats three times. After that
	// the oldest is dropped.
	finestSpan = 6 * 60
	widestSpan = 48 * 60
	// fullerPercent: another instance is followed instead if its lowest point in an hour exceeds this share of the
	// followed one's, so that outliers are seen. With a smaller share, unsynchronized sawteeth would resemble growth.
	fullerPercent = 150
)

// timeline is the memory of one instance in spans of equal length. It follows the instance with the highest use, and
// changes to another only when that one ends or another uses far more, because a mixture of replicas has a shape that
// none of them has.
type timeline struct {
	begin   stamp // of the oldest span
	width   uint16
	n       uint8
	follows uint8 // number of the instance
	span    [SpansKept]spanCell
}

// spanCell is one span. A zero high means no data.
type spanCell struct {
	high size16
	// low is the lowest point in 255ths of the highest; mean is the mean in 127ths from low to the highest.
	low uint8
	// mean also has the bit another.
	mean uint8
}

// another marks the first span of another instance.
const another = 1 << 7

// makeSpan requires high above 0, and caps the others to it.
func makeSpan(low, mean, high memory.Bytes) spanCell {
	s := spanCell{high: encode(high)}
	s.low = uint8(part(min(low, high), high, math.MaxUint8)) //nolint:gosec // bounded by part
	if low < high {
		s.mean = uint8(part(min(max(mean, low), high)-low, high-low, math.MaxInt8)) //nolint:gosec // bounded by part
	}
	return s
}

// part returns a size as the nearest number of equal parts of the whole.
func part(of, whole, parts memory.Bytes) memory.Bytes { return (of*parts + whole/2) / whole }

func (s spanCell) lowest() memory.Bytes { return s.high.bytes() * memory.Bytes(s.low) / math.MaxUint8 }

func (s spanCell) usual() memory.Bytes {
	low := s.lowest()
	return low + (s.high.bytes()-low)*memory.Bytes(s.mean&^another)/math.MaxInt8
}

// joined merges two neighboring spans.
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

// add adds a point. A span belongs to one instance: the next one in the same container begins with the next span.
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

// newTimeline begins with the finest span that contains a time. Compressed spans also have whole seconds.
func (c *Container) newTimeline(at int64) timeline {
	finest := int64(max(finestSpan/c.Factor(), 1))
	return timeline{begin: stamp(at / finest * finest), width: uint16(finest)} //nolint:gosec // Add checked it
}

// turn closes the current span if it is over at that time, and adds empty spans for gaps.
func (c *Container) turn(at int64) {
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

// closeSpan stores the span of the followed instance, and resets all spans.
func (c *Container) closeSpan() spanCell {
	s, number := c.openSpan()
	c.past.follows = number
	for i := range c.trackers {
		c.trackers[i].open = openInterval{}
	}
	return s
}

// openSpan returns the current span of the followed instance or, without data, of the one with the highest use.
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

// followFullest changes to the instance with the highest use in the ending hour, if it used far more than the followed
// one.
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

// add appends a span. When the last one is added, it merges or drops immediately, so that the next span has the new
// length, up to widest seconds.
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
