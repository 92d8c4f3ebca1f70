// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package boundedjson

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"sigs.k8s.io/json"
)

// Scanner walks once over JSON text, and may then be used for another one. The zero value is at the end of no text.
//
// Its methods expect the cursor before a value and leave it behind that value. Where the text is no JSON or not as an
// API server writes it, the scanner becomes Unsupported and stays so: no method moves the cursor any more, and what
// they returned means nothing.
type Scanner struct {
	// Unsupported: the text is not as an API server writes it, and somebody else has to read it.
	Unsupported bool

	text   []byte
	tokens jsontext.Decoder
	buffer bytes.Buffer // the text, which the decoder takes from there without a copy
	left   int          // bytes of memory that the text may still become, see [MinDecoded]

	strings stringSpace
}

// A text may be more than the decoder takes on its own: the framework's takes the last of two members of one name, and
// replaces what is no UTF-8. Where the first matters, [Scanner.Once] refuses it.
var (
	sameNameTwice = jsontext.AllowDuplicateNames(true)
	anyBytes      = jsontext.AllowInvalidUTF8(true)
)

// Reset moves the cursor to the beginning of a text, which may become so much in memory.
func (c *Scanner) Reset(text []byte) {
	c.Unsupported, c.left = false, MinDecoded+DecodedPerByte*len(text)
	c.Over(text)
}

// Over moves the cursor to the beginning of a part of the text, or of what was made from it: what it may become in
// memory is what was left before.
func (c *Scanner) Over(text []byte) {
	c.text, c.buffer = text, *bytes.NewBuffer(text)
	c.tokens.Reset(&c.buffer, sameNameTwice, anyBytes)
}

// Pay takes memory for something that is read.
func (c *Scanner) Pay(bytes int) {
	if c.left -= bytes; c.left < 0 {
		c.Unsupported = true
	}
}

// Once notes that a member of an object was read. A second one of the same name is unsupported: which of them counts is
// a matter of the decoder, and no API server writes one. Members that nobody reads may come as often as they like.
func (c *Scanner) Once(seen *uint32, member uint) {
	if *seen&(1<<member) != 0 {
		c.Unsupported = true
	}
	*seen |= 1 << member
}

// Object enters an object.
func (c *Scanner) Object() { c.enter(jsontext.KindBeginObject) }

// Array enters an array.
func (c *Scanner) Array() { c.enter(jsontext.KindBeginArray) }

func (c *Scanner) enter(begin jsontext.Kind) {
	if c.Unsupported {
		return
	}
	token, err := c.tokens.ReadToken()
	c.Unsupported = err != nil || token.Kind() != begin
}

// Member moves to the next member of the object and returns its key, or moves out of the object and returns false.
func (c *Scanner) Member() (key []byte, more bool) {
	if !c.next(jsontext.KindEndObject) {
		return nil, false
	}
	key, ok := quoted(c.Raw())
	if !ok { // no name that Kubernetes allows needs decoding
		c.Unsupported = true
		return nil, false
	}
	return key, true
}

// Item moves to the next item of the array, or out of the array and returns false.
func (c *Scanner) Item() (more bool) { return c.next(jsontext.KindEndArray) }

func (c *Scanner) next(end jsontext.Kind) (more bool) {
	if c.Unsupported {
		return false
	}
	if kind := c.tokens.PeekKind(); kind == end || kind == jsontext.KindInvalid {
		_, err := c.tokens.ReadToken() // the end, or why there is none
		c.Unsupported = err != nil
		return false
	}
	return true
}

// End is for the end of the text: anything but space that is still to come is unsupported.
func (c *Scanner) End() {
	if !c.Unsupported {
		_, err := c.tokens.ReadToken()
		c.Unsupported = !errors.Is(err, io.EOF)
	}
}

// Raw moves over a value and returns its text.
func (c *Scanner) Raw() []byte {
	if c.Unsupported {
		return nil
	}
	value, err := c.tokens.ReadValue()
	c.Unsupported = err != nil
	return value
}

// Skip passes over one value.
func (c *Scanner) Skip() { c.Raw() }

// Decode decodes a value the usual way.
func (c *Scanner) Decode(into any) {
	if value := c.Raw(); !c.Unsupported && Decode(value, into) != nil {
		c.Unsupported = true
	}
}

// Offset is where in the text what was read last ends.
func (c *Scanner) Offset() int { return int(c.tokens.InputOffset()) }

// DecodeFrom decodes the usual way the value that comes after an offset and was read already.
func (c *Scanner) DecodeFrom(offset int, into any) {
	const before = " \n\t\r,:" // the value
	if !c.Unsupported && Decode(bytes.TrimLeft(c.text[offset:c.Offset()], before), into) != nil {
		c.Unsupported = true
	}
}

// Null moves over a null, if there is one.
func (c *Scanner) Null() bool {
	if c.Unsupported || c.tokens.PeekKind() != jsontext.KindNull {
		return false
	}
	c.Skip()
	return true
}

// ASCII is a string that needs no decoding: printable ASCII without escapes. Anything else is unsupported.
func (c *Scanner) ASCII() string {
	inner, ok := quoted(c.Raw())
	if !ok {
		c.Unsupported = true
		return ""
	}
	return c.String(inner)
}

// String is a string of those bytes, which shares memory with others that the scanner made.
func (c *Scanner) String(text []byte) string { return c.strings.copyOf(text) }

// Text is any string.
func (c *Scanner) Text() string {
	value := c.Raw()
	if c.Unsupported {
		return ""
	}
	if inner, ok := quoted(value); ok {
		return c.String(inner)
	}
	return c.unescaped(value)
}

// unescaped decodes a string the usual way. It is apart from Text because what it decodes into would cost memory for
// every string.
func (c *Scanner) unescaped(value []byte) (s string) {
	if json.UnmarshalCaseSensitivePreserveInts(value, &s) != nil {
		c.Unsupported = true
	}
	return s
}

// Bool is a boolean.
func (c *Scanner) Bool() bool {
	switch string(c.Raw()) {
	case "true":
		return true
	case "false":
	default:
		c.Unsupported = true
	}
	return false
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
