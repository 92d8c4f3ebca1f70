// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package boundedjson

import "strings"

// A pod has some fifty short strings that somebody reads. They are written one after another into few pieces of
// memory, because fifty allocations take longer than reading the strings.
const (
	// together is the size of such a piece: the metadata of a usual pod needs one, the rest of it a second.
	together = 512
	// alone is the shortest string that gets memory of its own, so that at most a quarter of a piece is left empty.
	alone = together / 4
)

// stringSpace makes strings. A piece of memory lives as long as any string in it, so whoever keeps one string for long
// keeps up to 512 bytes with it.
type stringSpace struct{ piece strings.Builder }

func (s *stringSpace) copyOf(text []byte) string {
	if len(text) >= alone {
		return string(text)
	}
	start := s.piece.Len()
	if len(text) > s.piece.Cap()-start {
		s.piece.Reset() // the strings keep the piece that is full
		s.piece.Grow(together)
		start = 0
	}
	s.piece.Write(text)
	return s.piece.String()[start:]
}
