// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

const (
	// maxBuckets limits the histogram to 192 bytes. A steady workload uses 3 to 8 buckets.
	maxBuckets = 32
	// finestShift is the number of mantissa bits (of 11) that a bucket ignores. From 8 MiB up, a doubling has 32 buckets,
	// each 1.6 to 3.1 % wide (VPA: 23 % at 50 MiB).
	finestShift = 6
	// HalfLife is the age at which an hourly peak has half its weight: a week, so that weekends still count on Fridays.
	HalfLife = 7 * 24 * period.Hour
)

// histogram is a sparse, decaying histogram of hourly peaks. Weights grow with the time since refHour ("forward
// decay"), so older weights need no update as time passes.
type histogram struct {
	refHour int32
	n       uint8
	upper   [maxBuckets]size16 // upper edge of the bucket, ascending
	weight  [maxBuckets]float32
}

// add adds one hourly peak.
func (h *histogram) add(c size16, hour int32) {
	if c == 0 {
		return
	}
	if h.n == 0 {
		h.refHour = hour
	}
	if hour-h.refHour > 20*int32(HalfLife/period.Hour) {
		h.rebase(hour)
	}
	w := float32(math.Exp2(float64(hour-h.refHour) / HalfLife.Hours()))
	edge := h.edge(c)
	i := 0
	for i < int(h.n) && h.upper[i] < edge {
		i++
	}
	if i < int(h.n) && h.upper[i] == edge {
		h.weight[i] += w
		return
	}
	if h.n == maxBuckets {
		h.mergeCheapest()
		h.add(c, hour)
		return
	}
	copy(h.upper[i+1:h.n+1], h.upper[i:h.n])
	copy(h.weight[i+1:h.n+1], h.weight[i:h.n])
	h.upper[i], h.weight[i] = edge, w
	h.n++
}

// rebase makes hour the reference, and drops buckets with a negligible weight (after 20 half lives: a millionth).
func (h *histogram) rebase(hour int32) {
	scale := float32(math.Exp2(float64(h.refHour-hour) / HalfLife.Hours()))
	var kept uint8
	for i := range int(h.n) {
		if w := h.weight[i] * scale; w > 1e-9 {
			h.upper[kept], h.weight[kept] = h.upper[i], w
			kept++
		}
	}
	h.n, h.refHour = kept, hour
}

// edge returns the upper edge of the bucket of c.
func (h *histogram) edge(c size16) size16 { return c | (1<<finestShift - 1) }

// mergeCheapest moves the weight of one bucket to the next higher one, so quantiles never decrease. It picks the bucket
// with the smallest product of weight and distance, where a difference of codes is a ratio of sizes.
func (h *histogram) mergeCheapest() {
	best, least := 0, math.Inf(1)
	for i := range int(h.n) - 1 {
		if moved := float64(h.weight[i]) * float64(h.upper[i+1]-h.upper[i]); moved < least {
			best, least = i, moved
		}
	}
	h.weight[best+1] += h.weight[best]
	copy(h.upper[best:h.n-1], h.upper[best+1:h.n])
	copy(h.weight[best:h.n-1], h.weight[best+1:h.n])
	h.n--
}

// quantile returns the q-quantile (0 to 1) by weight, rounded up to the edge of a bucket; 0 if the histogram is empty.
func (h *histogram) quantile(q float64) memory.Bytes {
	var total float64
	for _, w := range h.weight[:h.n] {
		total += float64(w)
	}
	var sum float64
	for i, w := range h.weight[:h.n] {
		sum += float64(w)
		if sum >= q*total {
			return h.upper[i].bytes()
		}
	}
	return 0
}
