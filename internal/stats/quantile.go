// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import "slices"

// Quantile is the value that the share q (0 to 1) of sorted values stays at or below; 0 for none.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Sorted is a sorted copy of values.
func Sorted(v []float64) []float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s
}

// Median is that of values in any order, which it leaves as they are.
func Median(v []float64) float64 { return Quantile(Sorted(v), 0.5) }
