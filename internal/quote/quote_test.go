// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package quote

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/memfit/memfit/test/budget"
)

// quoteBudget is what repeating a text may take, however long the text is: what is beyond the cut is not read.
var quoteBudget = budget.Budget{Bytes: 64 << 10, CPU: time.Second}

// cutBudget is what cutting a text may take, per byte that may stay: a copy of it.
var cutBudget = budget.Budget{Bytes: 64 << 10, PerByte: 2, CPU: time.Second}

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"":                             `""`,
		"web":                          `"web"`,
		"two\nlines":                   `"two\nlines"`,
		`say "yes"`:                    `"say \"yes\""`,
		"\x1b[31mred":                  `"\x1b[31mred"`,
		strings.Repeat("a", 64):        `"` + strings.Repeat("a", 64) + `"`,
		strings.Repeat("a", 65):        `"` + strings.Repeat("a", 64) + `..."`,
		strings.Repeat("ü", 1<<20):     `"` + strings.Repeat("ü", 64) + `..."`,
		"\u202eright to left":          `"\u202eright to left"`,
		"bytes \xff\xfe that are none": `"bytes ? that are none"`,
	} {
		if got := Name(in); got != want {
			t.Errorf("Name(%.80q) is %s, want %s", in, got, want)
		}
	}
}

// TestPlain: what others wrote is one line that only says what it shows.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "",
		"a b":                         "a b",
		"two\nlines\tand\r\u2028more": "two lines and  more",
		"\x1b[31mred\x1b[0m \x9b2J":   " [31mred [0m ?2J",
		"\u202egpj.exe\u2069\u200bx":  "gpj.exex",
		"no XML: \ufffe\uffff.":       "no XML: .",
		"é, 日本, \xff":                 "é, 日本, ?",
	} {
		if got := Plain(in); got != want {
			t.Errorf("Plain(%q) is %q, want %q", in, got, want)
		}
	}
}

// FuzzQuote: what is repeated is text, on one line, of a bounded length, and cutting it costs the same whatever its
// length.
func FuzzQuote(f *testing.F) {
	f.Add("web", 10)
	f.Add("\xf0\x9f\x98\x80\xf0", 3)
	f.Add(strings.Repeat("\xff\n", 1<<20), 1<<16)
	f.Fuzz(func(t *testing.T, text string, most int) {
		var name, message, line string
		budget.Check(t, quoteBudget, len(text), func() { name, message, line = Name(text), Message(text), Line(text) })
		for _, got := range []string{name, message} {
			if !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\t") || len(got) > 12*messageChars {
				t.Errorf("%q is quoted as %s", text, got)
			}
		}
		if strings.ContainsAny(line, "\n\r\t\x1b\u2028\u202e") || !utf8.ValidString(line) || len(line) > 5*messageChars {
			t.Errorf("%q became the line %q", text, line)
		}
		most = min(max(most, 3), 1<<16)
		var got string
		budget.Check(t, cutBudget, most, func() { got = Cut(text, most) })
		if len(got) > most || len(text) <= most && got != text || utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("Cut(%q, %d) is %q", text, most, got)
		}
	})
}
