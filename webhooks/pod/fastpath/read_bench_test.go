// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"os"
	"testing"

	"github.com/memfit/memfit/internal/boundedjson"
)

// BenchmarkRead is the reader alone, over a usual review: the metadata, which is all that most pods need, and with the
// pod's template, which is all that a replica needs.
func BenchmarkRead(b *testing.B) {
	body, err := os.ReadFile("testdata/review.json")
	if err != nil {
		b.Fatal(err)
	}
	var c boundedjson.Scanner
	b.Run("metadata", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := Read(&c, body); !ok {
				b.Fatal("taken for unusual")
			}
		}
	})
	b.Run("template", func(b *testing.B) {
		var out []byte
		b.ReportAllocs()
		for b.Loop() {
			r, ok := Read(&c, body)
			text, _, usual := r.AppendTemplate(out[:0])
			if out = text; !ok || !usual {
				b.Fatal("taken for unusual")
			}
		}
	})
}
