// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package boundedjson

import (
	"bytes"
	"testing"
)

// TestNextQuote: the first quote is found wherever it stands among bytes of any value, with another behind it or none.
func TestNextQuote(t *testing.T) {
	for length := range 40 {
		for fill := range 256 {
			text := bytes.Repeat([]byte{byte(fill)}, length)
			if got, want := nextQuote(text), bytes.IndexByte(text, '"'); got != want {
				t.Fatalf("%d bytes %#x: %d, want %d", length, fill, got, want)
			}
			for at := range length {
				text := bytes.Repeat([]byte{byte(fill)}, length)
				text[at], text[length-1] = '"', '"'
				if got, want := nextQuote(text), bytes.IndexByte(text, '"'); got != want {
					t.Fatalf("%d bytes %#x with a quote at %d: %d, want %d", length, fill, at, got, want)
				}
			}
		}
	}
}
