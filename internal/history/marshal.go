// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/memfit/memfit/internal/codec"
	"github.com/memfit/memfit/internal/period"
)

// MarshalBinary returns the compact form for a MemoryCheckpoint, which stores the version of the format: varints, and
// differences between similar neighbors. It includes the current hour, so that a restart loses nothing.
func (c *Container) MarshalBinary() ([]byte, error) {
	data := binary.AppendUvarint(make([]byte, 0, 512), uint64(c.Factor())) //nolint:gosec // 1 to period.MaxFactor
	w := codec.Writer(data)
	c.code(w)
	return w.Data(), nil
}

// UnmarshalBinary reads the output of MarshalBinary. It returns an error for damaged input, and leaves c unchanged.
func (c *Container) UnmarshalBinary(data []byte) error {
	factor, data, err := readFactor(data)
	if err != nil {
		return err
	}
	read, r := Container{factor: factor}, codec.Reader(data)
	read.code(r)
	switch {
	case r.Err() != nil:
		return fmt.Errorf("history: %w", r.Err())
	case len(r.Data()) > 0:
		return fmt.Errorf("history: %d bytes too many", len(r.Data()))
	}
	if err := read.valid(); err != nil {
		return err
	}
	*c = read
	return nil
}

// readFactor reads the compression factor of evidence from the start of data; 0: not compressed.
func readFactor(data []byte) (factor uint16, rest []byte, err error) {
	f, size := binary.Uvarint(data)
	if size <= 0 || f < 1 || f > period.MaxFactor || f > 1 && period.Valid(int(f)) != nil {
		return 0, nil, errors.New("history: the factor of compressed evidence is out of range")
	}
	if f == 1 {
		f = 0
	}
	return uint16(f), data[size:], nil
}

// code encodes or decodes every field in a fixed order, as the coder specifies.
func (c *Container) code(w *codec.Coder) {
	w.Int(&c.last)
	since(w, &c.first, c.last)
	codec.Num(w, &c.samples)
	codec.Num(w, &c.day)
	codec.Num(w, &c.hour)
	codec.Num(w, &c.regime.since)
	codec.Num(w, &c.before.since)
	for _, v := range []*size16{
		&c.peakRSS, &c.peakWS, &c.peakSwap, &c.peakStart, &c.now, &c.regime.limit, &c.regime.peak, &c.regime.low,
		&c.before.limit, &c.before.peak, &c.before.low,
	} {
		codec.Num(w, v)
	}
	for _, v := range []*lowDay{&c.peakRSSDay, &c.peakWSDay, &c.peakSwapDay, &c.peakStartDay} {
		codec.Num(w, v)
	}
	since(w, &c.exact, c.last)
	since(w, &c.inexact, c.last)
	codec.Flag(w, &c.workingSet)
	codec.Num(w, &c.instances)
	c.codeSeries(w)
	c.peaks.code(w)
	for i := range c.trackers {
		c.trackers[i].code(w, c.last)
	}
	c.recent.code(w)
	c.past.code(w)
	c.records.code(w)
}

// code omits empty records. They are the last field, so the end of the data shows that they are empty.
func (r *Records) code(w *codec.Coder) {
	if w.Reading() && len(w.Data()) == 0 || !w.Reading() && *r == (Records{}) {
		return
	}
	for _, sum := range []*float32{&r.Seen, &r.Excess} {
		bits := math.Float32bits(*sum)
		codec.Num(w, &bits)
		*sum = math.Float32frombits(bits)
	}
}

// codeSeries codes days, hours and lows as differences from the previous cell: one byte per cell of a steady workload.
func (c *Container) codeSeries(w *codec.Coder) {
	var peak, low, hour, lows size16
	for i := range c.days {
		codec.Delta(w, &c.days[i].peak, &peak)
		codec.Delta(w, &c.days[i].trough, &low)
	}
	for i := range c.hours {
		codec.Delta(w, &c.hours[i], &hour)
	}
	for i := range c.lows {
		codec.Delta(w, &c.lows[i], &lows)
	}
}

func (h *histogram) code(w *codec.Coder) {
	codec.Num(w, &h.refHour)
	codec.Num(w, &h.n)
	h.n = min(h.n, maxBuckets)
	var edge size16
	for i := range int(h.n) {
		codec.Delta(w, &h.upper[i], &edge)
		bits := math.Float32bits(h.weight[i])
		codec.Num(w, &bits)
		h.weight[i] = math.Float32frombits(bits)
	}
}

func (s *instanceTracker) code(w *codec.Coder, last int64) {
	codec.Num(w, &s.id)
	if s.id == 0 {
		return
	}
	codec.Num(w, &s.low)
	codec.Flag(w, &s.full)
	codec.Num(w, &s.number)
	since(w, &s.last, last)
	since(w, &s.started, int64(s.last))
	codec.Num(w, &s.start)
	codec.Num(w, &s.after)
	s.open.code(w)
}

func (t *openInterval) code(w *codec.Coder) {
	codec.Num(w, &t.count)
	if t.count == 0 {
		return
	}
	bits := math.Float32bits(t.sum)
	codec.Num(w, &bits)
	t.sum = math.Float32frombits(bits)
	codec.Num(w, &t.low)
	codec.Num(w, &t.high)
	codec.Num(w, &t.number)
}

func (t *timeline) code(w *codec.Coder) {
	codec.Num(w, &t.begin)
	codec.Num(w, &t.width)
	codec.Num(w, &t.n)
	codec.Num(w, &t.follows)
	t.n = min(t.n, SpansKept)
	var high size16
	for i := range t.span[:t.n] {
		s := &t.span[i]
		codec.Delta(w, &s.high, &high)
		w.Byte(&s.low)
		w.Byte(&s.mean)
	}
}

func (r *ring) code(w *codec.Coder) {
	w.Int(&r.newest)
	n := r.n
	codec.Num(w, &n)
	n = min(n, PointsKept)
	var before size16
	var usual uint16
	// The oldest point comes first and is read into index 0, so equal rings give equal bytes, wherever their heads are.
	o := ring{newest: r.newest, n: n}
	for i := range int(n) {
		j := r.index(i)
		gap, value, number := r.gap[j], r.value[j], r.number[j]
		codec.Delta(w, &gap, &usual)
		codec.Delta(w, &value, &before)
		codec.Num(w, &number)
		o.gap[i], o.value[i], o.number[i] = gap, value, number
	}
	if w.Reading() {
		*r = o
	}
}

// valid returns an error for values that MarshalBinary cannot have written and that would break other methods.
func (c *Container) valid() error {
	// Times of samples fit 32 bits of seconds since 1970, and no regime begins after the newest hour.
	if c.hour < 0 || c.hour > c.hourOf(math.MaxUint32) || !c.regime.began(c.hour) || !c.before.began(c.hour) {
		return errors.New("history: hours out of range")
	}
	if c.samples == 0 {
		if *c != (Container{factor: c.factor}) {
			return errors.New("history: it has data, but no samples")
		}
		return nil
	}
	if c.days[c.day%DaysKept].peak == 0 {
		return errors.New("history: the newest day has no data")
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
	if !c.records.valid() {
		return errors.New("history: records out of range")
	}
	if t := c.past; t.width == 0 && t.n > 0 || t.width > widestSpan {
		return errors.New("history: timeline out of range")
	}
	return nil
}

func (r *regime) began(newest int32) bool { return r.since >= 0 && r.since <= newest }

// since codes v as seconds before ref: three bytes instead of five.
func since(w *codec.Coder, v *stamp, ref int64) {
	d := ref - int64(*v)
	w.Int(&d)
	*v = stamp(ref - d) //nolint:gosec // the next line checks it
	if int64(*v) != ref-d {
		w.Fail("a time does not fit its field")
	}
}
