// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

const (
	// SpansKept is the number of spans of the timeline: as many as internal/shape cuts a series into.
	SpansKept = 96
	// finestSpan is how long a span is at first, in seconds of evidence: nine hours fit. When all are taken, neighbors
	// become one and spans twice as long, up to widestSpan: three days, so that what a day does every day is seen three
	// times. Then the oldest gives way.
	finestSpan = 6 * 60
	widestSpan = 48 * 60
	// fullerPercent of the lowest point that the instance followed had in an hour is where another one that holds more is
	// followed instead: an outlier among its replicas must not stay unseen. Below, teeth that are out of step would look
	// like growth.
	fullerPercent = 150
)

// timeline is how the memory of one instance moved, in spans of equal length. It follows the instance that holds most,
// and changes to another only when that one ends or another holds far more: a mixture of replicas has a shape that none
// of them has.
type timeline struct {
	begin   stamp // of the oldest span
	width   uint16
	n       uint8
	follows uint8 // number of the instance
	span    [SpansKept]spanCell
}

// spanCell is one span. A zero high means that nothing was seen.
type spanCell struct {
	high size16
	// low is the lowest point in 255ths of the highest; mean is how far the mean is from there, in 127ths of the way to
	// the highest.
	low uint8
	// mean also has the bit another.
	mean uint8
}

// another marks the first span of another instance: earlier spans are not about it.
const another = 1 << 7

// makeSpan wants a high point above 0; the others are taken to be at most as high.
func makeSpan(low, mean, high memory.Bytes) spanCell {
	s := spanCell{high: encode(high)}
	s.low = uint8(part(min(low, high), high, math.MaxUint8)) //nolint:gosec // so many parts at most
	if low < high {
		s.mean = uint8(part(min(max(mean, low), high)-low, high-low, math.MaxInt8)) //nolint:gosec // so many parts at most
	}
	return s
}

// part is how many of so many equal parts of the whole a size is, to the nearest one.
func part(of, whole, parts memory.Bytes) memory.Bytes { return (of*parts + whole/2) / whole }

func (s spanCell) lowest() memory.Bytes { return s.high.bytes() * memory.Bytes(s.low) / math.MaxUint8 }

func (s spanCell) usual() memory.Bytes {
	low := s.lowest()
	return low + (s.high.bytes()-low)*memory.Bytes(s.mean&^another)/math.MaxInt8
}

// joined is two neighboring spans as one.
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

// openInterval is what one instance used in the span that is not over yet.
type openInterval struct {
	sum       float32 // bytes
	count     uint16
	low, high size16
	number    uint8 // of the instance
}

// add takes a point. A span belongs to one instance: what the next one in the same container uses begins with the next
// span.
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

// open is when the span began that is not over yet.
func (t *timeline) open() int64 { return int64(t.begin) + int64(t.n)*int64(t.width) }

// newTimeline begins with the finest span that holds a time. A compressed span is a whole number of seconds, too.
func (c *Container) newTimeline(at int64) timeline {
	finest := int64(max(finestSpan/c.Factor(), 1))
	return timeline{begin: stamp(at / finest * finest), width: uint16(finest)} //nolint:gosec // Add takes no others
}

// turn closes the open span when it is over at that time, and leaves empty ones where nothing was seen.
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

// closeSpan takes the span of the instance that is followed, and empties those of all.
func (c *Container) closeSpan() spanCell {
	s, number := c.openSpan()
	c.past.follows = number
	for i := range c.trackers {
		c.trackers[i].open = openInterval{}
	}
	return s
}

// openSpan is what is known of the span that is not over yet: of the instance followed or, when nothing was seen of it,
// of the one that holds most.
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

// followFullest changes to the instance that held most in the hour that ends, when it held far more than the one
// followed.
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

// add appends a span. The last one that fits makes room immediately, so that the span that begins now has the new
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
