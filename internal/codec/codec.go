// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package codec packs numbers into few bytes. One list of fields serves both directions, so that they cannot differ: a
// [Coder] either appends each visited value, or sets it to the stored one.
package codec

import (
	"encoding/binary"
	"errors"
)

// Coder visits values in a fixed order. It is a writer or a reader; after the first error, a reader returns zeros.
type Coder struct {
	data    []byte
	reading bool
	err     error
}

// Writer appends to data.
func Writer(data []byte) *Coder { return &Coder{data: data} }

// Reader reads data of a writer.
func Reader(data []byte) *Coder { return &Coder{data: data, reading: true} }

// Reading reports whether values are replaced.
func (c *Coder) Reading() bool { return c.reading }

// Data returns the written data, or the rest to read.
func (c *Coder) Data() []byte { return c.data }

// Err returns the first error.
func (c *Coder) Err() error { return c.err }

// Fail ends reading because the data is invalid.
func (c *Coder) Fail(why string) {
	if c.reading && c.err == nil {
		c.err, c.data = errors.New(why), nil
	}
}

// Byte visits one byte.
func (c *Coder) Byte(v *uint8) {
	n := uint64(*v)
	c.Bits(&n, 1)
	*v = uint8(n) //nolint:gosec // of one byte
}

// Bits visits the lower bytes of a uniformly distributed number, such as a hash.
func (c *Coder) Bits(v *uint64, bytes int) {
	if !c.reading {
		all := binary.BigEndian.AppendUint64(nil, *v)
		c.data = append(c.data, all[len(all)-bytes:]...)
		return
	}
	*v = 0
	if len(c.data) < bytes {
		c.Fail("it ends in the middle of a number")
		return
	}
	for _, b := range c.data[:bytes] {
		*v = *v<<8 | uint64(b)
	}
	c.data = c.data[bytes:]
}

// Int visits a number in 1 to 10 bytes, fewer if closer to 0.
func (c *Coder) Int(v *int64) {
	if !c.reading {
		c.data = binary.AppendVarint(c.data, *v)
		return
	}
	n, size := binary.Varint(c.data)
	if size <= 0 {
		*v = 0
		c.Fail("it ends in the middle of a number")
		return
	}
	*v, c.data = n, c.data[size:]
}

type integer interface {
	~uint8 | ~uint16 | ~uint32 | ~int32 | ~int64
}

// Num visits a number of any type.
func Num[T integer](c *Coder, v *T) {
	var zero T
	Delta(c, v, &zero)
}

// Delta visits a number as the difference to the previous one, which it updates; neighbors are similar.
func Delta[T integer](c *Coder, v, before *T) {
	d := int64(*v) - int64(*before)
	c.Int(&d)
	n := int64(*before) + d
	*v = T(n)
	if int64(*v) != n {
		c.Fail("a number does not fit its field")
	}
	*before = *v
}

// Flag visits a bool.
func Flag(c *Coder, v *bool) {
	var n uint8
	if *v {
		n = 1
	}
	Num(c, &n)
	*v = n == 1
}
