// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package quote quotes text that memfit did not write: annotations, field managers, errors of kubelets and API servers.
// The result has one line, quotes that distinguish it from memfit's own text, and a bounded length. The sentence around
// it must name the source.
package quote

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Maximum lengths in characters.
const (
	// nameChars fits label values (63) and most other names.
	nameChars = 64
	// messageChars fits a kubelet's message about a resize, and an API server's refusal.
	messageChars = 256
)

// Name quotes a short text of users: the value of an annotation, a field manager.
func Name(text string) string { return quoted(text, nameChars) }

// Message quotes the message of another program.
func Message(text string) string { return quoted(text, messageChars) }

// Line returns the text of Message without the quotes, for places without other text, such as an error of an API call.
func Line(text string) string {
	return Plain(Cut(text, utf8.UTFMax*messageChars))
}

// Plain returns text of any length on one line, without characters that control a terminal, a browser or YAML: line
// breaks, tabs and control characters become spaces, bytes that are not UTF-8 become "?". Noncharacters are dropped, as
// are format characters, such as those that change the direction of writing.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.In(r, unicode.Cf, unicode.Noncharacter_Code_Point):
			return -1
		case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

func quoted(text string, chars int) string {
	text = strings.ToValidUTF8(Cut(text, utf8.UTFMax*(chars+1)), "?")
	if utf8.RuneCountInString(text) <= chars {
		return strconv.Quote(text)
	}
	end := 0
	for range chars {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return strconv.Quote(text[:end] + "...")
}

// Cut truncates text to at most maxBytes between two characters, and appends "...", which is included in maxBytes.
func Cut(text string, maxBytes int) string {
	const mark = "..."
	if len(text) <= maxBytes {
		return text
	}
	end := max(maxBytes-len(mark), 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
