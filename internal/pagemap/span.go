// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pagemap

import "github.com/memfit/memfit/internal/memory"

// amount returns the total size of spans.
func amount(spans []Span) (sum memory.Bytes) {
	for _, s := range spans {
		sum = sum.Plus(s.size())
	}
	return sum
}

func (s Span) size() memory.Bytes {
	if s.End <= s.Start {
		return 0
	}
	return memory.Bytes(s.End - s.Start) //nolint:gosec // addresses of a process are below 2^57
}

func (s Span) and(t Span) Span { return Span{max(s.Start, t.Start), min(s.End, t.End)} }

// within cuts spans to a range, and drops overlaps with earlier ones.
func within(spans []Span, all Span) []Span {
	var out []Span
	reached := all.Start
	for _, s := range spans {
		if s = s.and(Span{reached, all.End}); s.size() > 0 {
			out, reached = append(out, s), s.End
		}
	}
	return out
}

// common returns the intersection.
func common(a, b []Span) []Span {
	var out []Span
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if both := a[i].and(b[j]); both.size() > 0 {
			out = append(out, both)
		}
		if a[i].End <= b[j].End {
			i++
		} else {
			j++
		}
	}
	return out
}

// from drops the spans that end before an address.
func from(spans []Span, at uint64) []Span {
	for len(spans) > 0 && spans[0].End <= at {
		spans = spans[1:]
	}
	return spans
}

// covered returns how much of a range the first spans cover.
func covered(spans []Span, one Span) (sum memory.Bytes) {
	for _, s := range spans {
		if s.Start >= one.End {
			break
		}
		sum = sum.Plus(s.and(one).size())
	}
	return sum
}
