// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import "strings"

// Grammar is how a runtime splits the value of a variable that carries several settings, and what makes it unsafe to add a
// word in front. Words are always added in front: later words win, so the user's do.
type Grammar struct {
	// Hazard says why nothing may be added to value, in words that end the sentence "NAME left alone: its value ..."; empty when
	// it is safe.
	Hazard func(value string) string
	// Words splits value as the runtime does.
	Words func(value string) []string
	// MaxLength and MaxWords are what the strictest version reads; Strict says which versions that is. 0: no limit.
	MaxLength, MaxWords int
	Strict              func(Version) bool
	// StrictWhy names the limit: "JDK 8 reads only 1024 bytes and 64 options of it".
	StrictWhy string
}

// nodeOptions is NODE_OPTIONS: words are separated by the space character only; '"' quotes, and inside quotes "\" escapes.
var nodeOptions = &Grammar{Hazard: nodeHazard, Words: nodeWords}

func nodeHazard(value string) string {
	switch {
	case strings.ContainsRune(value, '\n'):
		return "contains a newline, which Node.js does not take as a separator and refuses to start with: write it on one line (YAML: use >- instead of |)"
	case strings.ContainsRune(value, '\t'):
		return "contains a tab, which Node.js does not take as a separator and refuses to start with: use spaces"
	case strings.ContainsRune(value, '\r'):
		return "contains a carriage return, which Node.js does not take as a separator: save the manifest with Unix line ends"
	}
	if _, ok := splitNode(value); !ok {
		return "has a \" that is not closed or a \\ that escapes nothing, which stops Node.js at start: close the quote"
	}
	return ""
}

func nodeWords(value string) []string {
	words, _ := splitNode(value)
	return words
}

// splitNode reads value as Node.js reads NODE_OPTIONS; ok is false where Node.js refuses to start.
func splitNode(value string) (words []string, ok bool) {
	var word strings.Builder
	inWord, quoted := false, false
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case c == '\\' && quoted:
			if i++; i == len(value) {
				return words, false
			}
			inWord = true
			word.WriteByte(value[i])
		case c == ' ' && !quoted:
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		case c == '"':
			quoted = !quoted // a pair of quotes around nothing is no word
		default:
			inWord = true
			word.WriteByte(c)
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, !quoted
}

// javaToolOptions is JAVA_TOOL_OPTIONS: words are separated by white space; ' and " quote, and nothing escapes.
var javaToolOptions = &Grammar{
	Hazard: javaHazard, Words: javaWords,
	// JDK-8288483: JDK 8 cuts the value off after 1024 bytes and ignores options after the 64th. What is cut is the user's.
	MaxLength: 1024, MaxWords: 64,
	Strict:    func(v Version) bool { return !v.Known() || v.Below(V(9)) },
	StrictWhy: "JDK 8 reads only 1024 bytes and 64 options of it",
}

func javaHazard(value string) string {
	if _, ok := splitJava(value); !ok {
		return "has a quote that is not closed, which stops the JVM at start: close it"
	}
	return ""
}

func javaWords(value string) []string {
	words, _ := splitJava(value)
	return words
}

// splitJava reads value as HotSpot reads JAVA_TOOL_OPTIONS; ok is false where it refuses to start.
func splitJava(value string) (words []string, ok bool) {
	var word strings.Builder
	inWord := false
	var quote byte
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			inWord = true
			word.WriteByte(c)
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, quote == 0
}
