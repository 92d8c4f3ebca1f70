// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package quote

import (
	"strings"
	"testing"
	"unicode/utf8"
)

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

func FuzzQuote(f *testing.F) {
	f.Add("web", 10)
	f.Add("\xf0\x9f\x98\x80\xf0", 3)
	f.Fuzz(func(t *testing.T, text string, most int) {
		for _, got := range []string{Name(text), Message(text)} {
			if !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\t") || len(got) > 12*messageChars {
				t.Errorf("%q is quoted as %s", text, got)
			}
		}
		if got := Line(text); strings.ContainsAny(got, "\n\r\t") || len(got) > 5*messageChars {
			t.Errorf("%q became the line %q", text, got)
		}
		most = min(max(most, 3), 1<<16)
		if got := Cut(text, most); len(got) > most || len(text) <= most && got != text || utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("Cut(%q, %d) is %q", text, most, got)
		}
	})
}
