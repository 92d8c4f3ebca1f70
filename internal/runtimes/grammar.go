// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import "strings"

// Grammar is how a runtime splits the value of a variable with several settings, and when it is unsafe to prepend a
// word. Words are always prepended, so that the user's later words win.
type Grammar struct {
	// Split splits value into words like the runtime. hazard is why value must not be extended, as the end of the sentence
	// "NAME skipped: its value ..."; empty if safe.
	Split func(value string) (words []string, hazard string)
	// MaxLength and MaxWords are the bounds of the strictest versions; Strict names these. 0: no bound.
	MaxLength, MaxWords int
	Strict              func(Version) bool
	// StrictWhy names the limit: "JDK 8 reads only 1024 bytes and 64 options of it".
	StrictWhy string
}

// splitWords splits value at spaces outside of quotes; with escapes, "\" inside quotes escapes. A pair of quotes around
// nothing is not a word. closed is false if a quote or an escape is incomplete.
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
