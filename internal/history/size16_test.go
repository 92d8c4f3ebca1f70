// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/memfit/memfit/internal/memory"
)

func TestCodesRoundUpALittleAndKeepOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		b := memory.Bytes(r.Int64N(1 << (12 + r.IntN(30))))
		got := encode(b).bytes()
		if got < b || float64(got) > float64(b)*1.0005+float64(pageSize) {
			t.Fatalf("%d reads back as %d", b, got)
		}
	}
	for c := size16(1); c < maxCode; c++ {
		if encode(c.bytes()) != c || c.bytes() <= (c-1).bytes() {
			t.Fatalf("code %d is %d bytes, which encodes to %d", c, c.bytes(), encode(c.bytes()))
		}
	}
	if got := encode(memory.Max); got != maxCode {
		t.Errorf("the largest size has code %d, want %d", got, maxCode)
	}
}

func TestHistogramForgetsAndStaysSparse(t *testing.T) {
	var h histogram
	for hour := range int32(24 * 60) {
		use := 100 * mib
		if hour < 24 {
			use = 2000 * mib
		}
		h.add(encode(use), hour)
	}
	if got := h.quantile(0.99); got > 104*mib {
		t.Errorf("after 59 days the first day still decides: %s", got)
	}
}

func TestHistogramQuantilesAreCloseWhateverTheSpread(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var h histogram
	var values []memory.Bytes
	const hours = 1000
	for hour := range int32(hours) {
		values = append(values, memory.Bytes(1+r.IntN(60_000))*mib) // 16 doublings, where 32 buckets are few
		h.add(encode(values[hour]), hour)
	}
	if h.n > maxBuckets {
		t.Fatalf("%d buckets, want at most %d", h.n, maxBuckets)
	}
	for q := 0.05; q < 1; q += 0.05 {
		want := exactQuantile(values, q)
		if got := h.quantile(q); float64(got) < 0.99*float64(want) || float64(got) > 1.2*float64(want) {
			t.Errorf("quantile %.2f is %s, exactly it is %s", q, got, want)
		}
	}
}

// exactQuantile is the weighted quantile of hourly values, the last one now.
func exactQuantile(values []memory.Bytes, q float64) memory.Bytes {
	type weighted struct {
		value  memory.Bytes
		weight float64
	}
	var all []weighted
	var total, sum float64
	for i, v := range values {
		w := math.Exp2(float64(i) / HalfLife.Hours())
		all = append(all, weighted{v, w})
		total += w
	}
	slices.SortFunc(all, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
	for _, w := range all {
		if sum += w.weight; sum >= q*total {
			return w.value
		}
	}
	return 0
}
