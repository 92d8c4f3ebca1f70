// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"math/rand/v2"
	"testing"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/procmem"
)

// TestSharesAddUp: however a mapping is cut, its parts have its amounts to the byte, and each what is its own where all
// that is resident was still there when pages were counted.
func TestSharesAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		var pages []memory.Bytes
		var total memory.Bytes
		for range 1 + random.IntN(20) {
			one := memory.Bytes(random.Int64N(1<<20)) * procmem.PageSize
			pages, total = append(pages, one), total+one
		}
		for _, amount := range []memory.Bytes{total, memory.Bytes(random.Int64N(1 << 40)), memory.Max} {
			var before, sum memory.Bytes
			for _, one := range pages {
				got := share(amount, before, before+one, total)
				if amount == total && got != one {
					t.Fatalf("a part with %d bytes has %d of %d", one, got, total)
				}
				before, sum = before+one, sum+got
			}
			if total > 0 && sum != amount {
				t.Fatalf("%d parts have %d of %d", len(pages), sum, amount)
			}
		}
	}
}
