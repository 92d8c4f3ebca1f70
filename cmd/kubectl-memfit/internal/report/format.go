// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/internal/memory"
)

// Bytes converts a quantity to bytes; nil is 0.
func Bytes(q *resource.Quantity) memory.Bytes { return memory.FromOptional(q) }

// Amount formats a quantity for users to copy: exactly if it is in whole MiB ("1200Mi", not "1.2Gi"); "none" for nil.
func Amount(q *resource.Quantity) string {
	if q == nil {
		return "none"
	}
	b := memory.FromQuantity(*q)
	if b%memory.MiB == 0 {
		return b.Exact()
	}
	return b.String()
}

func differs(a, b *resource.Quantity) bool {
	if a == nil || b == nil {
		return a != b
	}
	return a.Cmp(*b) != 0
}

// step returns "256Mi -> 512Mi", or "256Mi" without a change.
func step(from, to *resource.Quantity) string {
	if to == nil || !differs(from, to) {
		return Amount(from)
	}
	return Amount(from) + " -> " + Amount(to)
}

// wrap breaks text into lines of at most width characters. A longer word is on a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	current := ""
	for word := range strings.FieldsSeq(listing.Line(text)) {
		switch {
		case current == "":
			current = word
		case len([]rune(current))+1+len([]rune(word)) > width:
			lines, current = append(lines, current), word
		default:
			current += " " + word
		}
	}
	return append(lines, current)
}

// distinct keeps the first of equal texts and drops empty ones.
func distinct(texts []string) []string {
	seen := map[string]bool{"": true}
	var kept []string
	for _, t := range texts {
		if !seen[t] {
			seen[t], kept = true, append(kept, t)
		}
	}
	return kept
}

// PartSize returns the resident memory of a part, and how much of that is free.
func PartSize(p *v1alpha1.MemoryPart) (resident, free memory.Bytes) {
	resident = Bytes(&p.Resident)
	return resident, min(Bytes(p.Free), resident)
}

// Unexplained returns the resident memory outside of all parts. It is at least the total minus the parts.
func Unexplained(m *v1alpha1.MemoryParts) memory.Bytes {
	left := Bytes(&m.Resident)
	for i := range m.Parts {
		left = left.Minus(Bytes(&m.Parts[i].Resident))
	}
	return max(Bytes(&m.Unexplained), left)
}
