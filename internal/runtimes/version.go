// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"strconv"
	"strings"
)

// Version is a runtime's version. Less significant parts may be unknown: "20" can be 20.3. The zero value is unknown.
type Version struct {
	parts [4]int
	n     int // the number of known parts
}

// V returns the version with these parts, most significant first.
func V(parts ...int) Version {
	v := Version{n: min(len(parts), 4)}
	copy(v.parts[:], parts)
	return v
}

// ParseVersion parses "20", "17.0.9", "17.0.9+9", "1.22", and the JDK 8 forms "8u191" and "1.8.0_191". Any other text
// is an unknown version.
func ParseVersion(text string) Version {
	text, _, _ = strings.Cut(text, "+")
	text = strings.ReplaceAll(text, "_", ".")
	if rest, ok := strings.CutPrefix(text, "1.8"); ok && (rest == "" || rest[0] == '.') {
		text = "8" + rest
	}
	text = strings.ReplaceAll(text, "u", ".0.")
	var v Version
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || v.n == len(v.parts) {
			return Version{}
		}
		v.parts[v.n], v.n = n, v.n+1
	}
	return v
}

// Known reports whether at least the major version is known.
func (v Version) Known() bool { return v.n > 0 }

// AtLeast reports whether v is certainly w or later: "20" is not certainly at least 20.3.
func (v Version) AtLeast(w Version) bool {
	order, certain := v.compare(w)
	return certain && order >= 0
}

// Below reports whether v is certainly before w: "20" is not certainly below 20.3.
func (v Version) Below(w Version) bool {
	order, certain := v.compare(w)
	return certain && order < 0
}

func (v Version) compare(w Version) (order int, certain bool) {
	if !v.Known() {
		return 0, false
	}
	for i := range w.n {
		switch {
		case i >= v.n && w.parts[i] > 0:
			return 0, false
		case v.parts[i] != w.parts[i]:
			return v.parts[i] - w.parts[i], true
		}
	}
	return 0, true
}
