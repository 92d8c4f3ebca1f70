// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/test/budget"
)

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]Version{
		"20": V(20), "17.0.9": V(17, 0, 9), "17.0.9+9": V(17, 0, 9), "1.22": V(1, 22), "8u191": V(8, 0, 191),
		"1.8.0_191": V(8, 0, 191), "1.8": V(8),
		"8.0.100": V(8, 0, 100), "1.80": V(1, 80), "10.0.11": V(10, 0, 11), "": {}, "latest": {}, "v20": {}, "20.x": {},
		"1.2.3.4.5": {}, "-1": {},
	} {
		if got := ParseVersion(text); got != want {
			t.Errorf("ParseVersion(%q) = %+v, want %+v", text, got, want)
		}
	}
}

func TestVersionsAreComparedOnlyWhereCertain(t *testing.T) {
	for name, tc := range map[string]struct {
		v, w                   string
		wantAtLeast, wantBelow bool
	}{
		"later":                          {"20.11", "20.3", true, false},
		"earlier":                        {"20.2", "20.3", false, true},
		"same":                           {"20.3", "20.3", true, false},
		"more exact":                     {"20.3.1", "20.3", true, false},
		"a major version alone is both":  {"20", "20.3", false, false},
		"a major version decides":        {"21", "20.3", true, false},
		"nothing after the dot is asked": {"20", "20", true, false},
		"zero minor needs no digits":     {"20", "20.0", true, false},
		"unknown is neither":             {"", "20", false, false},
	} {
		v, w := ParseVersion(tc.v), ParseVersion(tc.w)
		if v.AtLeast(w) != tc.wantAtLeast || v.Below(w) != tc.wantBelow {
			t.Errorf(
				"%s: %s against %s: at least %v, below %v; want %v, %v", name, tc.v, tc.w, v.AtLeast(w), v.Below(w), tc.wantAtLeast,
				tc.wantBelow,
			)
		}
	}
}

// FuzzParseVersion: whatever an annotation declares is read within the budget, and a version that is known is at least
// itself, in whichever way it is written again.
func FuzzParseVersion(f *testing.F) {
	for _, text := range []string{
		"20", "17.0.9+9", "8u191", "1.8.0_191", "", ".", "1.8", "99999999999999999999", "1.2.3.4.5", "u", "-1",
	} {
		f.Add(text)
	}
	within := budget.Budget{Bytes: 64 << 10, PerByte: 16, CPU: time.Second}
	f.Fuzz(func(t *testing.T, text string) {
		var v Version
		budget.Check(t, within, len(text), func() { v = ParseVersion(text) })
		if v.Known() && (!v.AtLeast(v) || v.Below(v) || v.parts[0] < 0) {
			t.Errorf("%q reads as %+v, which is not itself", text, v)
		}
		if again := ParseVersion(strings.ReplaceAll(text, "_", ".")); again.Known() && v.Known() && again != v {
			t.Errorf("%q reads as %+v, with dots as %+v", text, v, again)
		}
	})
}
