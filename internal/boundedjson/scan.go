// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package boundedjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"sigs.k8s.io/json"
)

// NewScanner is a cursor at the beginning of a text, which may become so much in memory.
func NewScanner(text []byte) Scanner {
	return Scanner{text: text, left: MinDecoded + DecodedPerByte*len(text)}
}

// Over moves the cursor to the beginning of another text. What it may become in memory is what was left before.
func (c *Scanner) Over(text []byte) { c.text, c.at, c.fresh = text, 0, false }

// Scanner walks once over JSON text. Values that nobody asks for are walked, not validated: whoever decodes one does
// that.
//
// Its methods expect the cursor before a value and leave it behind that value. Where the text is not as an API server
// writes it, the cursor becomes Unsupported and stays so: no method moves it any more, and what they returned means
// nothing.
type Scanner struct {
	// Unsupported: the text is not as an API server writes it, and somebody else has to read it.
	Unsupported bool

	text  []byte
	at    int
	fresh bool // an object or array has just begun, so no comma comes first
	left  int  // bytes of memory that the text may still become, see [MinDecoded]

	strings *stringSpace // shared by copies of the scanner
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
func (c *Scanner) Object() { c.enter('{') }

// Array enters an array.
func (c *Scanner) Array() { c.enter('[') }

func (c *Scanner) enter(bracket byte) {
	c.space()
	if c.Unsupported || c.at >= len(c.text) || c.text[c.at] != bracket {
		c.Unsupported = true
		return
	}
	c.at, c.fresh = c.at+1, true
}

// Member moves to the next member of the object and returns its key, or moves out of the object and returns false.
func (c *Scanner) Member() (key []byte, more bool) {
	if !c.next('}') {
		return nil, false
	}
	start := c.at + 1
	if c.at >= len(c.text) || c.text[c.at] != '"' || !c.skipString() {
		c.Unsupported = true
		return nil, false
	}
	key = c.text[start : c.at-1]
	c.space()
	if !plain(key) || c.at >= len(c.text) || c.text[c.at] != ':' { // no name that Kubernetes allows needs decoding
		c.Unsupported = true
		return nil, false
	}
	c.at++
	c.space()
	return key, true
}

// Item moves to the next item of the array, or out of the array and returns false.
func (c *Scanner) Item() (more bool) { return c.next(']') }

func (c *Scanner) next(end byte) (more bool) {
	c.space()
	if c.Unsupported || c.at >= len(c.text) {
		c.Unsupported = true
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
		c.Unsupported = true
		return false
	}
	return true
}

// End is for the end of the text: anything but space that is still to come is unsupported.
func (c *Scanner) End() {
	c.space()
	c.Unsupported = c.Unsupported || c.at < len(c.text)
}

// Raw moves over a value and returns its text.
func (c *Scanner) Raw() []byte {
	start := c.at
	c.Skip()
	return c.text[start:c.at]
}

// Decode decodes a value the usual way.
func (c *Scanner) Decode(into any) {
	if value := c.Raw(); !c.Unsupported && Decode(value, into) != nil {
		c.Unsupported = true
	}
}

// Offset is where the cursor stands in the text.
func (c *Scanner) Offset() int { return c.at }

// DecodeFrom decodes the usual way the value between an offset and the cursor, which was read already.
func (c *Scanner) DecodeFrom(start int, into any) {
	if !c.Unsupported && Decode(c.text[start:c.at], into) != nil {
		c.Unsupported = true
	}
}

// Null moves over a null, if there is one.
func (c *Scanner) Null() bool {
	const null = "null"
	if c.Unsupported || len(c.text)-c.at < len(null) || string(c.text[c.at:c.at+len(null)]) != null {
		return false
	}
	c.at += len(null)
	return true
}

// ASCII is a string that needs no decoding: printable ASCII without escapes. Anything else is unsupported.
func (c *Scanner) ASCII() string {
	inner, ok := quoted(c.Raw())
	if c.Unsupported || !ok {
		c.Unsupported = true
		return ""
	}
	return c.String(inner)
}

// String is a string of those bytes of the text, which shares memory with others that the scanner made.
func (c *Scanner) String(text []byte) string {
	if c.strings == nil {
		c.strings = &stringSpace{}
	}
	return c.strings.copyOf(text)
}

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

// Skip passes over one value.
func (c *Scanner) Skip() {
	if c.Unsupported || c.at >= len(c.text) {
		c.Unsupported = true
		return
	}
	switch c.text[c.at] {
	case '"':
		c.skipString()
	case '{', '[':
		c.nested()
	default:
		start := c.at
		for c.at < len(c.text) && kinds[c.text[c.at]] == scalar {
			c.at++
		}
		c.Unsupported = c.at == start
	}
}

// nested moves over an object or array.
func (c *Scanner) nested() {
	text, i, depth := c.text, c.at, 0
	for i < len(text) {
		b := text[i]
		if b != '"' {
			i++
			if depth += int(nesting[b]); depth == 0 {
				c.at = i
				return
			}
			continue
		}
		if n := nextQuote(text[i+1:]); n >= 0 && text[i+n] != '\\' { // most strings: no backslash before the end
			i += n + 2
			continue
		}
		c.at = i
		if !c.skipString() {
			return
		}
		i = c.at
	}
	c.Unsupported = true
}

// skipString moves over a string; false when it does not end.
func (c *Scanner) skipString() bool {
	for i := c.at + 1; i < len(c.text); i++ {
		n := nextQuote(c.text[i:])
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
	c.Unsupported = true
	return false
}

// nextQuote is where the next quote stands; below 0: nowhere. Most strings of a pod are keys of less than sixteen
// bytes, and for those a call of [bytes.IndexByte] takes longer than looking.
func nextQuote(text []byte) int {
	const word, words = 8, 2
	if len(text) >= word*words {
		for i := 0; i < word*words; i += word {
			if n := quoteAmong(binary.LittleEndian.Uint64(text[i:])); n < word {
				return i + n
			}
		}
	}
	return bytes.IndexByte(text, '"')
}

// quoteAmong is which of eight bytes is the first quote, from the lowest; 8: none. By xor a quote becomes 0. When 1 is
// taken from every byte, the first 0 borrows and so gets its highest bit; no byte before it gets one it did not have.
func quoteAmong(eight uint64) int {
	const each = 0x0101010101010101
	rest := eight ^ '"'*each
	return bits.TrailingZeros64((rest-each)&^rest&(each<<7)) / 8
}

func (c *Scanner) space() {
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
	mark               // quote, bracket, comma or colon
	space
)

var kinds = [256]kind{
	'"': mark, '{': mark, '[': mark, '}': mark, ']': mark, ',': mark, ':': mark,
	' ': space, '\n': space, '\t': space, '\r': space,
}

// nesting is by how much a byte outside strings changes the depth.
var nesting = [256]int8{'{': 1, '[': 1, '}': -1, ']': -1}
