// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"io"

	"github.com/memfit/memfit/internal/memory"
)

// TooLongError is the limit that an answer went beyond.
type TooLongError memory.Bytes

func (e TooLongError) Error() string {
	return "the answer is longer than " + memory.Bytes(e).String() + ", the most memfit reads"
}

// Limit is a reader that ends with a [TooLongError] where r goes beyond limit. An io.LimitReader would make a long
// answer look like a short one.
func Limit(r io.Reader, limit memory.Bytes) io.Reader {
	return &limited{r: r, left: int64(limit), limit: limit}
}

type limited struct {
	r     io.Reader
	left  int64
	limit memory.Bytes
}

func (l *limited) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if l.left > 0 {
		n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
		l.left -= int64(n)
		return n, err
	}
	var more [1]byte
	n, err := l.r.Read(more[:])
	if n > 0 {
		return 0, TooLongError(l.limit)
	}
	return 0, err
}
