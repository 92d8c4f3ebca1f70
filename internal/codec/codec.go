// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package codec encodes and decodes numbers in few bytes. One function visits the fields of a type in both directions,
// so that the two cannot differ: a [Coder] either appends each visited value, or sets it to the decoded value.
package codec

import (
	"encoding/binary"
	"errors"
)

// Coder visits values in a fixed order. It is a writer or a reader. After its first error, a reader sets values to 0.
type Coder struct {
	data    []byte
	reading bool
	err     error
}

// Writer returns a Coder that appends visited values to data.
func Writer(data []byte) *Coder { return &Coder{data: data} }

// Reader returns a Coder that sets visited values from the data of a writer.
func Reader(data []byte) *Coder { return &Coder{data: data, reading: true} }

// Reading reports whether the Coder is a reader.
func (c *Coder) Reading() bool { return c.reading }

// Data returns the data of a writer, or the data that a reader has not read yet.
func (c *Coder) Data() []byte { return c.data }

// Err returns the first error.
func (c *Coder) Err() error { return c.err }

// Fail ends reading with an error about invalid data. A writer ignores it.
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

// Bits visits the given number of lower bytes of *v, for values such as hashes, which Int would not shorten.
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

// Int visits a number in 1 to 10 bytes: the closer it is to 0, the fewer.
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

// Num visits an integer of any type, encoded as by Int.
func Num[T integer](c *Coder, v *T) {
	var zero T
	Delta(c, v, &zero)
}

// Delta visits a number as its difference to *before, and sets *before to the number. Similar neighbors take few bytes.
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
