// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cpython

import "github.com/memfit/memfit/internal/procmem"

// pool is the header of a pool: six words, of which the first holds the count of blocks in use, the fifth the index of
// the arena and that of the size class, and the sixth the offsets of the next block and of the last.
type pool struct {
	count, class uint64
}

const (
	headerSize = 48
	blockUnit  = 16 // block sizes are multiples of it
	classes    = 32 // 16 to 512 bytes
)

// kind is the result at a possible start of a pool.
type kind int

const (
	isUntouched kind = iota // zeroes: an arena uses its pools in order
	isPool
	isOdd
)

// readPool reads the memory at an address.
func readPool(w *procmem.Window, at, size uint64) (pool, kind) {
	var h [headerSize / 8]uint64
	for i := range h {
		word, err := w.Word(at + 8*uint64(i))
		if err != nil {
			return pool{}, isOdd
		}
		h[i] = word
	}
	if h == ([headerSize / 8]uint64{}) {
		return pool{}, isUntouched
	}
	p := pool{count: h[0] & 0xffffffff, class: h[4] >> 32}
	next, last := h[5]&0xffffffff, h[5]>>32
	block := p.block()
	fits := p.class < classes && last == size-block && p.count <= (size-headerSize)/block
	begun := next >= headerSize && next <= size && (next-headerSize)%block == 0
	if !fits || !begun {
		return pool{}, isOdd
	}
	return p, isPool
}

// block returns the size of the pool's blocks.
func (p pool) block() uint64 { return blockUnit * (p.class + 1) }

// used returns its bytes in use, without the header.
func (p pool) used() uint64 { return p.count * p.block() }
