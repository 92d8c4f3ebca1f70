// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package boundedjson

import (
	"bytes"
	"testing"
)

// TestStringsKeepTheirText: strings of every length keep their text when the bytes they came from are used again and
// when the piece of memory they share is full.
func TestStringsKeepTheirText(t *testing.T) {
	c, text := new(Scanner), bytes.Repeat([]byte{' '}, 2*together)
	var got []string
	for n := range len(text) {
		for i := range n {
			text[i] = byte('a' + n%26)
		}
		got = append(got, c.String(text[:n]))
	}
	for n, s := range got {
		if want := string(bytes.Repeat([]byte{byte('a' + n%26)}, n)); s != want {
			t.Fatalf("the string of %d bytes became %q", n, s)
		}
	}
}

// TestStringsShareMemory: short strings take one piece of memory for many.
func TestStringsShareMemory(t *testing.T) {
	c, text := new(Scanner), []byte("NODE_OPTIONS")
	c.String(text)
	allocations := testing.AllocsPerRun(1000, func() { c.String(text) })
	if perString := float64(len(text)) / together; allocations > 2*perString {
		t.Errorf("%.3f allocations for each string, want about %.3f", allocations, perString)
	}
}
