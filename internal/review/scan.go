// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"

	"sigs.k8s.io/json"
)

// cursorOver is a cursor at the beginning of a text, which may become so much in memory.
func cursorOver(text []byte) cursor {
	return cursor{text: text, left: MinDecoded + DecodedPerByte*len(text)}
}

// cursor walks once over JSON text. Values that nobody asks for are walked, not validated: whoever decodes one does that.
//
// Its methods expect the cursor before a value and leave it behind that value. Where the text is not as an API server writes it,
// the cursor becomes odd and stays so: no method moves it any more, and what they returned means nothing.
type cursor struct {
	text  []byte
	at    int
	odd   bool
	fresh bool // an object or array has just begun, so no comma comes first
	left  int  // bytes of memory that the text may still become, see [MinDecoded]
}

// pay takes memory for something that is read.
func (c *cursor) pay(bytes int) {
	if c.left -= bytes; c.left < 0 {
		c.odd = true
	}
}

// once notes that a member of an object was read. A second one of the same name is odd: which of them counts is a matter of the
// decoder, and no API server writes one. Members that nobody reads may come as often as they like.
func (c *cursor) once(seen *uint32, member uint) {
	if *seen&(1<<member) != 0 {
		c.odd = true
	}
	*seen |= 1 << member
}

// object enters an object.
func (c *cursor) object() { c.enter('{') }

// array enters an array.
func (c *cursor) array() { c.enter('[') }

func (c *cursor) enter(bracket byte) {
	c.space()
	if c.odd || c.at >= len(c.text) || c.text[c.at] != bracket {
		c.odd = true
		return
	}
	c.at, c.fresh = c.at+1, true
}

// member moves to the next member of the object and returns its key, or moves out of the object and returns false.
func (c *cursor) member() (key []byte, more bool) {
	if !c.next('}') {
		return nil, false
	}
	start := c.at + 1
	if c.at >= len(c.text) || c.text[c.at] != '"' || !c.string() {
		c.odd = true
		return nil, false
	}
	key = c.text[start : c.at-1]
	c.space()
	if !plain(key) || c.at >= len(c.text) || c.text[c.at] != ':' { // no name that Kubernetes allows needs decoding
		c.odd = true
		return nil, false
	}
	c.at++
	c.space()
	return key, true
}

// item moves to the next item of the array, or out of the array and returns false.
func (c *cursor) item() (more bool) { return c.next(']') }

func (c *cursor) next(end byte) (more bool) {
	c.space()
	if c.odd || c.at >= len(c.text) {
		c.odd = true
		return false
	}
	switch b := c.text[c.at]; {
	case b == end:
		c.at, c.fresh = c.at+1, false
		return false
	case c.fresh:
		c.fresh = false
	case b == ',':
		c.at++
		c.space()
	default:
		c.odd = true
		return false
	}
	return true
}

// raw moves over a value and returns its text.
func (c *cursor) raw() []byte {
	start := c.at
	c.skip()
	return c.text[start:c.at]
}

// decode decodes a value the usual way.
func (c *cursor) decode(into any) {
	if value := c.raw(); !c.odd && Decode(value, into) != nil {
		c.odd = true
	}
}

// null moves over a null, if there is one.
func (c *cursor) null() bool {
	const null = "null"
	if c.odd || len(c.text)-c.at < len(null) || string(c.text[c.at:c.at+len(null)]) != null {
		return false
	}
	c.at += len(null)
	return true
}

// ascii is a string that needs no decoding: printable ASCII without escapes. Anything else is odd.
func (c *cursor) ascii() string {
	inner, ok := quoted(c.raw())
	if c.odd || !ok {
		c.odd = true
		return ""
	}
	return string(inner)
}

// words is any string.
func (c *cursor) words() (s string) {
	value := c.raw()
	if c.odd {
		return ""
	}
	if inner, ok := quoted(value); ok {
		return string(inner)
	}
	if json.UnmarshalCaseSensitivePreserveInts(value, &s) != nil {
		c.odd = true
	}
	return s
}

// flag is a boolean.
func (c *cursor) flag() bool {
	switch string(c.raw()) {
	case "true":
		return true
	case "false":
	default:
		c.odd = true
	}
	return false
}

func (c *cursor) skip() {
	if c.odd || c.at >= len(c.text) {
		c.odd = true
		return
	}
	switch c.text[c.at] {
	case '"':
		c.string()
	case '{', '[':
		c.nested()
	default:
		start := c.at
		for c.at < len(c.text) && kinds[c.text[c.at]] == scalar {
			c.at++
		}
		c.odd = c.at == start
	}
}

// nested moves over an object or array.
func (c *cursor) nested() {
	text, i, depth := c.text, c.at, 0
	for i < len(text) {
		switch kinds[text[i]] {
		case quote:
			c.at = i
			if !c.string() {
				return
			}
			i = c.at
			continue
		case opening:
			depth++
		case closing:
			if depth--; depth == 0 {
				c.at = i + 1
				return
			}
		case scalar, mark, space: // inside, nothing else matters
		}
		i++
	}
	c.odd = true
}

// string moves over a string; false when it does not end.
func (c *cursor) string() bool {
	for i := c.at + 1; i < len(c.text); i++ {
		n := bytes.IndexByte(c.text[i:], '"')
		if n < 0 {
			break
		}
		i += n
		escapes := 0
		for j := i - 1; j > c.at && c.text[j] == '\\'; j-- {
			escapes++
		}
		if escapes%2 == 0 {
			c.at = i + 1
			return true
		}
	}
	c.odd = true
	return false
}

func (c *cursor) space() {
	for c.at < len(c.text) && c.text[c.at] <= ' ' && kinds[c.text[c.at]] == space {
		c.at++
	}
}

// quoted is what stands between the quotes of a string that is plain.
func quoted(value []byte) (inner []byte, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return nil, false
	}
	inner = value[1 : len(value)-1]
	return inner, plain(inner)
}

// plain reports whether the text of a string is printable ASCII without escapes.
func plain(text []byte) bool {
	for _, b := range text {
		if b == '\\' || b < ' ' || b >= 0x7f {
			return false
		}
	}
	return true
}

// kind is what a byte outside strings is part of.
type kind uint8

const (
	scalar kind = iota // numbers, true, false, null, and what does not belong here
	quote
	opening
	closing
	mark // comma or colon
	space
)

var kinds = [256]kind{
	'"': quote, '{': opening, '[': opening, '}': closing, ']': closing, ',': mark, ':': mark, ' ': space, '\n': space, '\t': space, '\r': space,
}
