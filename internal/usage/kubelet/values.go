// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/memfit/memfit/internal/usage/stream"
)

// Values of a summary. A value of an unexpected type is skipped and counts as unknown, so that the other containers are
// still read.

// maybe is an object.
type maybe[T any] struct{ is T }

func (m *maybe[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != jsontext.KindBeginObject {
		return d.SkipValue()
	}
	return stream.Decode(d, &m.is)
}

// longText is the longest string that is kept: names in Kubernetes have at most 253 characters.
const longText = 4 << 10

var errLongText = fmt.Errorf("a name is longer than %d bytes", longText)

// text is a string.
type text string

func (t *text) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var room [256]byte
	unquoted, err := appendText(room[:0], d)
	*t = text(unquoted)
	return err
}

// moment is an RFC 3339 time.
type moment struct{ time.Time }

func (m *moment) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var room [256]byte
	unquoted, err := appendText(room[:0], d)
	m.Time = time.Time{}
	_ = m.UnmarshalText(unquoted) // what is not a time leaves it zero
	return err
}

func appendText(to []byte, d *jsontext.Decoder) ([]byte, error) {
	value, err := valueOf(d, jsontext.KindString)
	if len(value) > longText {
		return nil, errLongText
	}
	to, _ = jsontext.AppendUnquote(to, value) // the error is for bytes that are no UTF-8, which are replaced
	return to, err
}

// count is a number of bytes or events: not a fraction, not less than 0, and no more than 2^63-1.
type count struct {
	n     int64
	known bool
}

func (c *count) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := valueOf(d, jsontext.KindNumber)
	n, failed := strconv.ParseInt(string(value), 10, 64)
	if *c = (count{n, true}); failed != nil || value[0] == '-' {
		*c = count{}
	}
	return err
}

// percent is a number from 0 to 100.
type percent float64

func (p *percent) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := valueOf(d, jsontext.KindNumber)
	n, failed := strconv.ParseFloat(string(value), 64)
	if *p = percent(n); failed != nil || n < 0 || n > 100 {
		*p = 0
	}
	return err
}

// valueOf reads the next value if it is of a kind, and skips it otherwise.
func valueOf(d *jsontext.Decoder, kind jsontext.Kind) (jsontext.Value, error) {
	if d.PeekKind() != kind {
		return nil, d.SkipValue()
	}
	return d.ReadValue()
}
