// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner walks through JSON from front to back. A summary is some 100 KB per node and memfit wants a few numbers per
// container of it: decoding all of it into the types of Kubernetes takes ten times as long (BenchmarkDecodeSummary).
type scanner struct {
	tokens *jsontext.Decoder
	text   []byte
}

// longText is the longest string that is kept: names in Kubernetes have at most 253 characters.
const longText = 4 << 10

var errLongText = fmt.Errorf("a name is longer than %d bytes", longText)

// longest is how long anything may be that the decoder keeps whole: a string, also one that is skipped, or a gap.
const longest = 64 << 10

var errLongGap = fmt.Errorf("there is a text or a gap of more than %d bytes in it", longest)

// decoders are used again: thousands of nodes are read per cycle, a few at a time. What one keeps is bounded by
// longest.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// No kubelet writes two members of the same name or bytes that are not UTF-8, so neither is checked, which would take
// time.
var (
	sameNameTwice = jsontext.AllowDuplicateNames(true)
	anyBytes      = jsontext.AllowInvalidUTF8(true)
)

// bounded reads for a decoder, which keeps what it has not made a token of.
type bounded struct {
	io.Reader

	tokens *jsontext.Decoder
	read   int64
}

func (b *bounded) Read(into []byte) (int, error) {
	kept := b.read - b.tokens.InputOffset()
	if kept >= longest {
		return 0, errLongGap
	}
	n, err := b.Reader.Read(into[:min(int64(len(into)), longest-kept)])
	b.read += int64(n)
	return n, err
}

// object calls member for each key of the object that comes next; member must take the value. Anything else is skipped,
// null for example. The key is valid until the next read.
func (s *scanner) object(member func(key []byte) error) error {
	return s.list(jsontext.KindBeginObject, jsontext.KindEndObject, func() error {
		key, err := s.str()
		if err != nil {
			return err
		}
		return member(key)
	})
}

// array calls element for each element of the array that comes next; element must take it. Anything else is skipped.
func (s *scanner) array(element func() error) error {
	return s.list(jsontext.KindBeginArray, jsontext.KindEndArray, element)
}

func (s *scanner) list(begin, end jsontext.Kind, item func() error) error {
	if s.tokens.PeekKind() != begin {
		return s.skip()
	}
	if _, err := s.tokens.ReadToken(); err != nil {
		return err
	}
	for {
		if kind := s.tokens.PeekKind(); kind == end || kind == jsontext.KindInvalid {
			_, err := s.tokens.ReadToken() // the end, or why it is missing
			return err
		}
		if err := item(); err != nil {
			return err
		}
	}
}

// str takes a string, valid until the next read. Anything else is skipped and empty.
func (s *scanner) str() ([]byte, error) {
	if s.tokens.PeekKind() != jsontext.KindString {
		return nil, s.skip()
	}
	text, err := s.tokens.ReadValue()
	if err != nil {
		return nil, err
	}
	if len(text) > longText {
		return nil, errLongText
	}
	s.text, _ = jsontext.AppendUnquote(s.text[:0], text) // the error is for bytes that are no UTF-8, which are replaced
	return s.text, nil
}

// count takes a number of bytes. Anything else - null, a fraction, less than 0, more than 2^63-1 - is skipped and
// unknown.
func (s *scanner) count() (n int64, known bool, err error) {
	if s.tokens.PeekKind() != jsontext.KindNumber {
		return 0, false, s.skip()
	}
	text, err := s.tokens.ReadValue()
	if err != nil {
		return 0, false, err
	}
	if n, err = strconv.ParseInt(string(text), 10, 64); err != nil || text[0] == '-' {
		return 0, false, nil //nolint:nilerr // not a count, which is no reason to lose the other containers
	}
	return n, true, nil
}

// percent takes a number from 0 to 100. Anything else is skipped and 0.
func (s *scanner) percent() (float64, error) {
	if s.tokens.PeekKind() != jsontext.KindNumber {
		return 0, s.skip()
	}
	text, err := s.tokens.ReadValue()
	if err != nil {
		return 0, err
	}
	if n, err := strconv.ParseFloat(string(text), 64); err == nil && n >= 0 && n <= 100 {
		return n, nil
	}
	return 0, nil
}

// skip passes over one value.
func (s *scanner) skip() error { return s.tokens.SkipValue() }
