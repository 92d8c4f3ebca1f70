// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package stream reads a list in a JSON response item by item, in bounded memory for any input. The sources in
// internal/usage read kubelet summaries and pod metrics with it.
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

// longest bounds what the decoder buffers, in bytes: a string (even a skipped one), or whitespace.
const longest = 64 << 10

// ErrLong is returned for a string or whitespace that exceeds longest.
var ErrLong = fmt.Errorf("it has a string or whitespace of more than %d bytes", longest)

// decoders are reused, because thousands of nodes are read per cycle. The buffer of each is at most longest.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// Duplicate names and invalid UTF-8 are not checked, to save time: no server writes them.
var (
	sameNameTwice = jsontext.AllowDuplicateNames(true)
	anyBytes      = jsontext.AllowInvalidUTF8(true)
)

// bounded is the reader of a decoder. It returns an error when the decoder has buffered longest bytes of one token.
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

// Items reads a JSON object from r to its end, and calls item for each item of the named list. item must read one
// value. After an error the caller must drop all items, because the response is incomplete.
func Items(r io.Reader, list string, item func(*jsontext.Decoder) error) error {
	d := decoders.Get().(*jsontext.Decoder) //nolint:forcetypeassert // nothing else is stored
	d.Reset(&bounded{Reader: r, decoder: d}, sameNameTwice, anyBytes)
	defer func() {
		d.Reset(http.NoBody) // release the response
		decoders.Put(d)
	}()
	missing := fmt.Errorf("the response has no list of %s", list)
	start, err := d.ReadToken()
	_, html := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case html, err == nil && start.Kind() != jsontext.KindBeginObject:
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

// isList reports whether a value can be a list: Go writes null for an empty list, and later reads report invalid JSON.
func isList(kind jsontext.Kind) bool {
	return kind == jsontext.KindBeginArray || kind == jsontext.KindNull || kind == jsontext.KindInvalid
}

// Array calls item for each item of the next value if that is an array; item must read one value. Array skips other
// values, such as null.
func Array(d *jsontext.Decoder, item func() error) error {
	if d.PeekKind() != jsontext.KindBeginArray {
		return d.SkipValue()
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for {
		if kind := d.PeekKind(); kind == jsontext.KindEndArray || kind == jsontext.KindInvalid {
			_, err := d.ReadToken() // the end, or an error
			return err
		}
		if err := item(); err != nil {
			return err
		}
	}
}

// Decode reads the next value into into. It skips unknown members.
func Decode(d *jsontext.Decoder, into any) error {
	err := gojson.UnmarshalDecode(d, into)
	if e, ok := errors.AsType[*gojson.SemanticError](err); ok && e.Err != nil {
		return e.Err // without the names of types
	}
	return err
}
