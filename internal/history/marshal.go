// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/memfit/memfit/internal/period"
)

// MarshalBinary is the compact form kept in a MemoryCheckpoint, which has the version: varints, and differences where
// neighbors are alike. The current window is part of it, so that a restart forgets nothing.
func (c *Container) MarshalBinary() ([]byte, error) {
	w := writer{buf: make([]byte, 0, 512)}
	w.buf = binary.AppendUvarint(w.buf, uint64(c.Factor())) //nolint:gosec // 1 to period.MostFactor
	c.code(&w)
	return w.buf, nil
}

// UnmarshalBinary restores what MarshalBinary wrote. Damaged input is an error and leaves c unchanged.
func (c *Container) UnmarshalBinary(data []byte) error {
	if len(data) == 0 {
		return errors.New("history: empty input")
	}
	factor, data, err := readFactor(data)
	if err != nil {
		return err
	}
	read := Container{factor: factor}
	r := reader{buf: data}
	read.code(&r)
	if r.err == nil && len(r.buf) != 0 {
		r.err = fmt.Errorf("history: %d bytes too many", len(r.buf))
	}
	if r.err == nil {
		r.err = read.valid()
	}
	if r.err != nil {
		return r.err
	}
	*c = read
	return nil
}

// readFactor takes the factor by which evidence is compressed off the encoding; 0: it is not.
func readFactor(data []byte) (factor uint16, rest []byte, err error) {
	f, size := binary.Uvarint(data)
	if size <= 0 || f < 1 || f > period.MostFactor || f > 1 && period.Valid(int(f)) != nil {
		return 0, nil, errors.New("history: the factor of compressed evidence is out of range")
	}
	if f == 1 {
		f = 0
	}
	return uint16(f), data[size:], nil
}

// coder is a writer or a reader: one list of fields serves both directions, so that they cannot drift apart.
type coder interface {
	int(v *int64)
	byte(v *uint8)
}

// code visits every field in a fixed order.
func (c *Container) code(w coder) {
	w.int(&c.last)
	since(w, &c.first, c.last)
	num(w, &c.samples)
	num(w, &c.day)
	num(w, &c.hour)
	num(w, &c.regime.since)
	num(w, &c.before.since)
	for _, v := range []*size16{
		&c.peakRSS, &c.peakWS, &c.peakSwap, &c.now, &c.regime.limit, &c.regime.peak, &c.regime.low, &c.before.limit,
		&c.before.peak, &c.before.low,
	} {
		num(w, v)
	}
	for _, v := range []*lowDay{&c.peakRSSDay, &c.peakWSDay, &c.peakSwapDay} {
		num(w, v)
	}
	num(w, &c.replicas)
	since(w, &c.exact, c.last)
	since(w, &c.inexact, c.last)
	flag(w, &c.workingSet)
	num(w, &c.instances)
	c.codeSeries(w)
	c.peaks.code(w)
	for i := range c.trackers {
		c.trackers[i].code(w, c.last)
	}
	sparse(w, c.seen[:])
	c.recent.code(w)
	c.past.code(w)
}

// codeSeries writes days, hours and lows as differences from the cell before: a steady workload costs one byte a cell.
func (c *Container) codeSeries(w coder) {
	var peak, low, hour, lows size16
	for i := range c.days {
		delta(w, &c.days[i].peak, &peak)
		delta(w, &c.days[i].trough, &low)
	}
	for i := range c.hours {
		delta(w, &c.hours[i], &hour)
	}
	for i := range c.lows {
		delta(w, &c.lows[i], &lows)
	}
}

func (h *histogram) code(w coder) {
	num(w, &h.refHour)
	num(w, &h.n)
	h.n = min(h.n, maxBuckets)
	var edge size16
	for i := range int(h.n) {
		delta(w, &h.upper[i], &edge)
		bits := math.Float32bits(h.weight[i])
		num(w, &bits)
		h.weight[i] = math.Float32frombits(bits)
	}
}

func (s *instanceTracker) code(w coder, last int64) {
	num(w, &s.id)
	if s.id == 0 {
		return
	}
	num(w, &s.low)
	flag(w, &s.full)
	num(w, &s.number)
	since(w, &s.last, last)
	since(w, &s.started, int64(s.last))
	s.open.code(w)
}

func (t *openInterval) code(w coder) {
	num(w, &t.count)
	if t.count == 0 {
		return
	}
	bits := math.Float32bits(t.sum)
	num(w, &bits)
	t.sum = math.Float32frombits(bits)
	num(w, &t.low)
	num(w, &t.high)
	num(w, &t.number)
}

func (t *timeline) code(w coder) {
	w.int(&t.begin)
	num(w, &t.width)
	num(w, &t.n)
	num(w, &t.follows)
	t.n = min(t.n, SpansKept)
	var high size16
	for i := range t.span[:t.n] {
		s := &t.span[i]
		delta(w, &s.high, &high)
		w.byte(&s.low)
		w.byte(&s.mean)
	}
}

func (r *ring) code(w coder) {
	w.int(&r.newest)
	n := r.n
	num(w, &n)
	n = min(n, PointsKept)
	var before size16
	var usual uint16
	// The oldest point is written first and read back to index 0, so equal contents give equal bytes wherever the head is.
	o := ring{newest: r.newest, n: n}
	for i := range int(n) {
		j := r.index(i)
		gap, value, number := r.gap[j], r.value[j], r.number[j]
		delta(w, &gap, &usual)
		delta(w, &value, &before)
		num(w, &number)
		o.gap[i], o.value[i], o.number[i] = gap, value, number
	}
	if _, reading := w.(*reader); reading {
		*r = o
	}
}

// valid refuses what no writer could have written and later code would trip over.
func (c *Container) valid() error {
	// What is counted from hours must not pass the end of their type, and no limit came into force after the newest hour.
	// The newest time that a sample may have is 32 bits of seconds since 1970.
	if c.hour < 0 || c.hour > c.hourOf(math.MaxUint32) || !c.regime.began(c.hour) || !c.before.began(c.hour) {
		return errors.New("history: hours out of range")
	}
	if c.samples == 0 {
		if *c != (Container{factor: c.factor}) {
			return errors.New("history: something is known without a sample")
		}
		return nil
	}
	if c.hour < lowHours || c.last < int64(c.first) || c.last > 1<<40 {
		return errors.New("history: times or counts out of range")
	}
	for i := range int(c.peaks.n) {
		if w := c.peaks.weight[i]; !(w >= 0 && w <= math.MaxFloat32/maxBuckets) || i > 0 &&
			c.peaks.upper[i] <= c.peaks.upper[i-1] {
			return errors.New("history: histogram out of order")
		}
	}
	for i := range c.trackers {
		if t := c.trackers[i].open; t.count > 0 && (t.high == 0 || !(t.sum >= 0 && t.sum <= math.MaxFloat32)) {
			return errors.New("history: a span without a highest point or a mean")
		}
	}
	if t := c.past; t.begin < 0 || t.begin > math.MaxUint32 || t.width == 0 && t.n > 0 || t.width > widestSpan {
		return errors.New("history: timeline out of range")
	}
	return nil
}

func (r *regime) began(newest int32) bool { return r.since >= 0 && r.since <= newest }

type integer interface {
	~uint8 | ~uint16 | ~uint32 | ~int32 | ~int64
}

func num[T integer](w coder, v *T) {
	n := int64(*v)
	w.int(&n)
	*v = T(n)
	if int64(*v) != n {
		if r, ok := w.(*reader); ok {
			r.fail("a number does not fit its field")
		}
	}
}

func delta[T integer](w coder, v, before *T) {
	d := int64(*v) - int64(*before)
	w.int(&d)
	n := int64(*before) + d
	*v = T(n)
	if int64(*v) != n {
		if r, ok := w.(*reader); ok {
			r.fail("a difference leaves its field")
		}
	}
	*before = *v
}

// since writes a time as seconds before another: three bytes instead of five.
func since(w coder, v *stamp, ref int64) {
	d := ref - int64(*v)
	w.int(&d)
	*v = stamp(ref - d) //nolint:gosec // the next line checks it
	if int64(*v) != ref-d {
		if r, ok := w.(*reader); ok {
			r.fail("a time does not fit its field")
		}
	}
}

func flag(w coder, v *bool) {
	var n uint8
	if *v {
		n = 1
	}
	num(w, &n)
	*v = n == 1
}

// sparse writes only the bytes that are not zero.
func sparse(w coder, cells []uint8) {
	var set uint32
	for i, v := range cells {
		if v != 0 {
			set |= 1 << i
		}
	}
	num(w, &set)
	for i := range cells {
		if set&(1<<i) != 0 {
			num(w, &cells[i])
		}
	}
}

type writer struct {
	buf []byte
}

func (w *writer) int(v *int64)  { w.buf = binary.AppendVarint(w.buf, *v) }
func (w *writer) byte(v *uint8) { w.buf = append(w.buf, *v) }

type reader struct {
	buf []byte
	err error
}

func (r *reader) byte(v *uint8) {
	*v = 0
	if r.err != nil {
		return
	}
	if len(r.buf) == 0 {
		r.fail("input ends in the middle of a span")
		return
	}
	r.buf, *v = r.buf[1:], r.buf[0]
}

func (r *reader) int(v *int64) {
	*v = 0
	if r.err != nil {
		return
	}
	n, size := binary.Varint(r.buf)
	if size <= 0 {
		r.fail("input ends in the middle of a number")
		return
	}
	r.buf, *v = r.buf[size:], n
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = errors.New("history: " + what)
	}
}
