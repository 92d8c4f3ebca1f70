// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"
)

// scanner walks through JSON from front to back and keeps nothing but a window. A summary is some 100 KB per node and
// memfit wants four numbers per container of it; encoding/json looks at every byte twice and takes ten times as long
// (BenchmarkDecodeSummary).
//
// What is asked for is read strictly; what is skipped only has to be balanced. Nothing recurses with the input, so
// depth cannot hurt.
type scanner struct {
	r    io.Reader
	win  []byte // win[pos:] is not read yet; its capacity is the window
	pos  int
	eof  error // what r said last; nil: there may be more
	text []byte
}

// window is how much is read at a time; longText is the longest string that is kept: names in Kubernetes have at most
// 253 characters.
const (
	window   = 32 << 10
	longText = 4 << 10
)

var errLongText = fmt.Errorf("a name is longer than %d bytes", longText)

// windows are used again: thousands of nodes are read per cycle, a few at a time.
var windows = sync.Pool{New: func() any { return new([window]byte) }}

// fill reads the next window. It returns false at the end.
func (s *scanner) fill() bool {
	s.pos = len(s.win)
	for s.eof == nil {
		n, err := s.r.Read(s.win[:cap(s.win)])
		s.win, s.pos, s.eof = s.win[:n], 0, err
		if n > 0 {
			return true
		}
	}
	return false
}

// end is why there is no more.
func (s *scanner) end() error {
	if s.eof == nil || errors.Is(s.eof, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return s.eof
}

// next takes one byte.
func (s *scanner) next() (byte, error) {
	if s.pos >= len(s.win) && !s.fill() {
		return 0, s.end()
	}
	b := s.win[s.pos]
	s.pos++
	return b, nil
}

// back returns the byte that next or token just took, which is in the window still.
func (s *scanner) back() { s.pos-- }

// token takes the next byte that is not white space.
func (s *scanner) token() (byte, error) {
	for {
		for i, b := range s.win[s.pos:] {
			if b > ' ' || b != ' ' && b != '\n' && b != '\t' && b != '\r' {
				s.pos += i + 1
				return b, nil
			}
		}
		if !s.fill() {
			return 0, s.end()
		}
	}
}

// object calls member for each key of the object that comes next; member must take the value. Null has no members.
// The key is valid until the next read.
func (s *scanner) object(member func(key []byte) error) (bool, error) {
	return s.list('{', '}', func(first byte) error {
		if first != '"' {
			return fmt.Errorf("%q where a key should be", first)
		}
		key, err := s.rest()
		if err != nil {
			return err
		}
		if b, err := s.token(); err != nil {
			return err
		} else if b != ':' {
			return fmt.Errorf("%q after the key %q", b, key)
		}
		return member(key)
	})
}

// array calls element for each element of the array that comes next; element must take it. Null has no elements.
func (s *scanner) array(element func() error) (bool, error) {
	return s.list('[', ']', func(byte) error {
		s.back()
		return element()
	})
}

// list reads what is between brackets and separated by commas; item gets the first byte of each. False: something else
// came, and was skipped.
func (s *scanner) list(open, closing byte, item func(first byte) error) (bool, error) {
	b, err := s.token()
	if err != nil {
		return false, err
	}
	if b != open {
		return false, s.skipFrom(b)
	}
	for n := 0; ; n++ {
		if b, err = s.token(); err != nil {
			return false, err
		}
		if b == closing {
			return true, nil
		}
		if n > 0 {
			if b != ',' {
				return false, fmt.Errorf("%q where a comma or %q should be", b, closing)
			}
			if b, err = s.token(); err != nil {
				return false, err
			}
		}
		if err := item(b); err != nil {
			return false, err
		}
	}
}

// str takes a string, valid until the next read. Anything else is skipped and empty.
func (s *scanner) str() ([]byte, error) {
	b, err := s.token()
	if err != nil {
		return nil, err
	}
	if b != '"' {
		return nil, s.skipFrom(b)
	}
	return s.rest()
}

// rest takes the rest of a string whose opening quote is taken.
func (s *scanner) rest() ([]byte, error) {
	s.text = append(s.text[:0], '"')
	odd, escaped := false, false
	for {
		b, err := s.next()
		if err != nil {
			return nil, err
		}
		if len(s.text) > longText {
			return nil, errLongText
		}
		s.text = append(s.text, b)
		switch {
		case escaped:
			escaped = false
		case b == '"':
			return s.unquote(odd)
		case b == '\\':
			odd, escaped = true, true
		case b < ' ' || b >= utf8.RuneSelf:
			odd = true
		}
	}
}

// unquote reads s.text, a quoted string. Plain ones, which all names are, are only cut; encoding/json knows the rules
// for the others.
func (s *scanner) unquote(odd bool) ([]byte, error) {
	if !odd {
		return s.text[1 : len(s.text)-1], nil
	}
	var plain string
	if err := json.Unmarshal(s.text, &plain); err != nil {
		return nil, err
	}
	s.text = append(s.text[:0], plain...)
	return s.text, nil
}

// count takes a number of bytes. Whatever is none - null, a fraction, less than 0, more than 2^63-1 - is skipped and
// unknown.
func (s *scanner) count() (n int64, known bool, err error) {
	b, err := s.token()
	if err != nil {
		return 0, false, err
	}
	if b < '0' || b > '9' {
		return 0, false, s.skipFrom(b)
	}
	s.text = append(s.text[:0], b)
	if err := s.scalar(func(b byte) {
		if len(s.text) < 32 {
			s.text = append(s.text, b)
		}
	}); err != nil {
		return 0, false, err
	}
	if len(s.text) > 1 && s.text[0] == '0' {
		return 0, false, nil
	}
	if n, err = strconv.ParseInt(string(s.text), 10, 64); err != nil {
		return 0, false, nil //nolint:nilerr // not a count, which is no reason to lose the other containers
	}
	return n, true, nil
}

// skip passes over one value.
func (s *scanner) skip() error {
	b, err := s.token()
	if err != nil {
		return err
	}
	return s.skipFrom(b)
}

// skipFrom passes over the rest of a value whose first byte is taken.
func (s *scanner) skipFrom(b byte) error {
	switch b {
	case '"':
		return s.skipString()
	case '{', '[':
		return s.skipNested()
	case '}', ']', ',', ':':
		return fmt.Errorf("%q where a value should be", b)
	}
	return s.scalar(func(byte) {})
}

// scalar takes the rest of a number or word, up to what ends it, and hands over its bytes.
func (s *scanner) scalar(take func(byte)) error {
	for {
		b, err := s.next()
		if err != nil {
			return err // a document ends with a bracket, never with a scalar
		}
		switch b {
		case ',', '}', ']', ' ', '\n', '\t', '\r':
			s.back()
			return nil
		case '"', '{', '[', ':':
			return fmt.Errorf("%q inside of a number or word", b)
		}
		take(b)
	}
}

// skipNested passes over the rest of an object or array whose opening bracket is taken, by counting brackets.
func (s *scanner) skipNested() error {
	depth := 1
	for {
		b, err := s.nextOf(&brackets)
		switch {
		case err != nil:
			return err
		case b == '"':
			if err := s.skipString(); err != nil {
				return err
			}
		case b == '{', b == '[':
			depth++
		default:
			if depth--; depth == 0 {
				return nil
			}
		}
	}
}

// skipString passes over the rest of a string whose opening quote is taken.
func (s *scanner) skipString() error {
	for {
		b, err := s.nextOf(&quotes)
		if err != nil || b == '"' {
			return err
		}
		if _, err := s.next(); err != nil { // what the backslash escapes
			return err
		}
	}
}

// What stands out while skipping.
var (
	brackets = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}
	quotes   = [256]bool{'"': true, '\\': true}
)

// nextOf takes everything up to and including the next byte of a set.
func (s *scanner) nextOf(set *[256]bool) (byte, error) {
	for {
		for i, b := range s.win[s.pos:] {
			if set[b] {
				s.pos += i + 1
				return b, nil
			}
		}
		if !s.fill() {
			return 0, s.end()
		}
	}
}
