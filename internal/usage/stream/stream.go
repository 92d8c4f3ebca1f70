// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package stream reads lists in the JSON answers of servers, item by item, in bounded memory whatever a server sends.
package stream

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	gojson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// longest is how long anything may be that the decoder keeps whole: a string, also one that is skipped, or a gap.
const longest = 64 << 10

// ErrLong is returned for an answer in which something is longer.
var ErrLong = fmt.Errorf("it has a string or whitespace of more than %d bytes", longest)

// decoders are used again: thousands of nodes are read per cycle, a few at a time. What one keeps is bounded by
// longest.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// No server writes two members of the same name or bytes that are not UTF-8, so neither is checked, which would take
// time.
var (
	sameNameTwice = jsontext.AllowDuplicateNames(true)
	anyBytes      = jsontext.AllowInvalidUTF8(true)
)

// bounded reads for a decoder, which keeps what it has not made a token of.
type bounded struct {
	io.Reader

	decoder *jsontext.Decoder
	read    int64
}

func (b *bounded) Read(into []byte) (int, error) {
	kept := b.read - b.decoder.InputOffset()
	if kept >= longest {
		return 0, ErrLong
	}
	n, err := b.Reader.Read(into[:min(int64(len(into)), longest-kept)])
	b.read += int64(n)
	return n, err
}

// Items calls item for each item of a list in the object that r holds; item must read it. r is read to the end of the
// object. What was handed over before an error must be dropped by the caller: an incomplete answer proves nothing about
// what it does not reach.
func Items(r io.Reader, list string, item func(*jsontext.Decoder) error) error {
	d := decoders.Get().(*jsontext.Decoder) //nolint:forcetypeassert // nothing else is in there
	d.Reset(&bounded{Reader: r, decoder: d}, sameNameTwice, anyBytes)
	defer func() {
		d.Reset(http.NoBody) // so that nothing keeps the answer
		decoders.Put(d)
	}()
	missing := fmt.Errorf("the response has no list of %s", list)
	start, err := d.ReadToken()
	_, page := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case page, err == nil && start.Kind() != jsontext.KindBeginObject:
		return missing
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	}
	found := false
	for {
		name, err := d.ReadToken()
		switch {
		case err != nil:
			return err
		case name.Kind() == jsontext.KindEndObject && !found:
			return missing
		case name.Kind() == jsontext.KindEndObject:
			return nil
		case name.String() == list:
			if found = isList(d.PeekKind()); !found {
				return missing
			}
			err = Array(d, func() error { return item(d) })
		default:
			err = d.SkipValue()
		}
		if err != nil {
			return err
		}
	}
}

// isList: Go writes null for an empty list. What is invalid is reported where it is read.
func isList(kind jsontext.Kind) bool {
	return kind == jsontext.KindBeginArray || kind == jsontext.KindNull || kind == jsontext.KindInvalid
}

// Array calls item at each item of the array that comes next; item must read it. Anything else than an array is
// skipped, null for example.
func Array(d *jsontext.Decoder, item func() error) error {
	if d.PeekKind() != jsontext.KindBeginArray {
		return d.SkipValue()
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for {
		if kind := d.PeekKind(); kind == jsontext.KindEndArray || kind == jsontext.KindInvalid {
			_, err := d.ReadToken() // the end, or why it is missing
			return err
		}
		if err := item(); err != nil {
			return err
		}
	}
}

// Decode reads the value that comes next. Members of objects that the type does not have are skipped.
func Decode(d *jsontext.Decoder, into any) error {
	err := gojson.UnmarshalDecode(d, into)
	if e, ok := errors.AsType[*gojson.SemanticError](err); ok && e.Err != nil {
		return e.Err // without the names of types
	}
	return err
}
