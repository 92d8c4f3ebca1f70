// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math/bits"

	"github.com/memfit/memfit/internal/memory"
)

// size16 is a size in 16 bits: a floating-point number of 4 KiB pages with 11 bits of mantissa. It preserves order, and
// rounds up by at most 0.05 % from 8 MiB on. Sizes above 8 TiB are stored as 8 TiB. 0 means no data.
type size16 uint16

const (
	pageSize     = 4 * memory.KiB
	mantissaBits = 11
	mantissaOnes = 1<<mantissaBits - 1
	maxCode      = size16(1<<16 - 1)
)

// encode rounds up, so that a stored peak is never too small.
func encode(b memory.Bytes) size16 {
	if b <= 0 {
		return 0
	}
	pages := uint64((b-1)/pageSize) + 1
	if pages <= mantissaOnes {
		return size16(pages)
	}
	exp := bits.Len64(pages) - mantissaBits - 1
	mantissa := (pages + 1<<exp - 1) >> exp
	if mantissa > 2*mantissaOnes+1 {
		mantissa >>= 1
		exp++
	}
	if exp >= 31 {
		return maxCode
	}
	return size16(uint64(exp+1)<<mantissaBits | mantissa&mantissaOnes) //nolint:gosec // exp is below 31
}

// bytes returns the size of a code.
func (c size16) bytes() memory.Bytes {
	exp := int(c >> mantissaBits)
	if exp == 0 {
		return memory.Bytes(c) * pageSize
	}
	return memory.Bytes(uint64(c&mantissaOnes|1<<mantissaBits)<<(exp-1)) * pageSize //nolint:gosec // exp is below 32
}
