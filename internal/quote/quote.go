// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package quote is how memfit repeats what another party wrote: annotations, field managers, what kubelets and API
// servers answer. Such text stands in quotes, so that nobody takes it for memfit's own, on one line, and is cut, so
// that nobody fills a status with it. The sentence around it says who wrote it.
package quote

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How many characters are repeated.
const (
	// nameChars holds every name that Kubernetes lets people choose for a label's value (63) and most others.
	nameChars = 64
	// messageChars holds what a kubelet says about a resize with its numbers, and an API server's refusal.
	messageChars = 256
)

// Name is a short text that people chose: the value of an annotation, a field manager.
func Name(text string) string { return quoted(text, nameChars) }

// Message is what another program answered.
func Message(text string) string { return quoted(text, messageChars) }

// Line is Message without quotes, for places that are made of nothing else, such as the error of an API call.
func Line(text string) string {
	return Plain(Cut(text, utf8.UTFMax*messageChars))
}

// Plain returns text of any length on one line, without what a terminal, a browser or a reader of YAML would obey:
// line breaks, tabs and control characters become spaces, bytes that are not UTF-8 become "?", and characters that only
// format, such as those that turn the direction of writing, are dropped.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r):
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

// Cut is text of at most that many bytes. It is not cut within a character, and ends in "..." when something is
// missing.
func Cut(text string, most int) string {
	const mark = "..."
	if len(text) <= most {
		return text
	}
	end := max(most-len(mark), 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
