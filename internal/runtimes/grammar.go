// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import "strings"

// Grammar describes a variable with several settings: how the runtime splits its value, and when prepending a word is
// unsafe. memfit always prepends words, so that the user's later words win.
type Grammar struct {
	// Split splits value into words like the runtime. hazard is why value must not be extended, as the end of the sentence
	// "the pod's own NAME ..."; empty if safe.
	Split func(value string) (words []string, hazard string)
	// MaxLength, in bytes, and MaxWords bound the value in versions for which Strict is true. 0: no bound.
	MaxLength, MaxWords int
	Strict              func(Version) bool
	StrictWhy           string // describes the bounds: "JDK 8 reads only 1024 bytes and 64 options of it"
}

// splitWords splits value at spaces outside of quotes; with escapes, "\" inside quotes escapes. Empty quotes are not a
// word. closed is false if a quote or an escape is incomplete.
func splitWords(value, spaces, quotes string, escapes bool) (words []string, closed bool) {
	var word []byte
	var quote byte
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0 && escapes && c == '\\':
			if i++; i == len(value) {
				return words, false
			}
			word = append(word, value[i])
		case quote == 0 && strings.IndexByte(quotes, c) >= 0:
			quote = c
		case quote == 0 && strings.IndexByte(spaces, c) >= 0:
			if len(word) > 0 {
				words, word = append(words, string(word)), nil
			}
		default:
			word = append(word, c)
		}
	}
	if len(word) > 0 {
		words = append(words, string(word))
	}
	return words, quote == 0
}
