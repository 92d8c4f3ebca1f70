// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"math"
	"slices"
)

// The statistics below are the ones that do not believe a single point: medians, ranks, pairs. They take plain numbers
// in the order of time; what the numbers are is the caller's business.

// quantile is the value that the share q (0 to 1) of sorted values stays at or below; 0 for none.
func quantile(sorted []float64, q float64) float64 {
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

func sortedCopy(v []float64) []float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s
}

func median(v []float64) float64 { return quantile(sortedCopy(v), 0.5) }

// theilSen is the median of the slopes between all pairs of points, with the 95 % interval that ranks give it (Sen
// 1968). Up to 29 % of the points may be anything. More than most points are thinned by pairs: neighbors know much the
// same, and pairs are what costs.
func theilSen(x, y []float64) (slope, low, high float64) {
	const most = 48
	for len(x) > most {
		x, y = paired(x), paired(y)
	}
	slopes := make([]float64, 0, most*(most-1)/2) // a constant, so that it lies on the stack: this is called a lot
	for i := range x {
		for j := i + 1; j < len(x); j++ {
			if x[j] > x[i] {
				slopes = append(slopes, (y[j]-y[i])/(x[j]-x[i]))
			}
		}
	}
	if len(slopes) == 0 {
		return 0, 0, 0
	}
	n := float64(len(x))
	half := 1.96 * math.Sqrt(n*(n-1)*(2*n+5)/18) / 2 // in pairs, either side of the median
	m := float64(len(slopes))
	share := min(half/m, 0.5)
	low = chosen(slopes, 0.5-share)
	return chosen(slopes, 0.5), low, chosen(slopes, 0.5+share)
}

// chosen is the quantile of values in any order, which it changes. It takes a fifth of the time of sorting them.
func chosen(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	at := q * float64(len(v)-1)
	i := int(at)
	place(v, i)
	if i+1 >= len(v) {
		return v[i]
	}
	return v[i] + (at-float64(i))*(slices.Min(v[i+1:])-v[i])
}

// place moves the value that would be at k if v were sorted to k, what is less before it and what is more behind it
// (Hoare 1961).
func place(v []float64, k int) {
	for low, high := 0, len(v)-1; low < high; {
		a, pivot, c := v[low], v[low+(high-low)/2], v[high]
		if (a < pivot) != (a < c) {
			pivot = a
		} else if (c < pivot) != (c < a) {
			pivot = c
		}
		i, j := low, high
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
		switch {
		case k <= j:
			high = j
		case k >= i:
			low = i
		default:
			return
		}
	}
}

// paired is the means of neighbors.
func paired(v []float64) []float64 {
	out := make([]float64, 0, (len(v)+1)/2)
	for i := 0; i+1 < len(v); i += 2 {
		out = append(out, (v[i]+v[i+1])/2)
	}
	if len(v)%2 == 1 {
		out = append(out, v[len(v)-1])
	}
	return out
}

// mannKendall is the Z of the trend test: how many standard deviations more pairs rise than fall. Ties count for
// nothing. Above 2.6 is a rise that chance gives once in two hundred.
func mannKendall(y []float64) float64 {
	n := len(y)
	if n < 4 {
		return 0
	}
	s := 0
	for i := range y {
		for j := i + 1; j < n; j++ {
			switch {
			case y[j] > y[i]:
				s++
			case y[j] < y[i]:
				s--
			}
		}
	}
	f := float64(n)
	variance := f * (f - 1) * (2*f + 5)
	for ranked := sortedCopy(y); len(ranked) > 0; {
		t := 1
		for t < len(ranked) && ranked[t] == ranked[0] {
			t++
		}
		k := float64(t)
		variance -= k * (k - 1) * (2*k + 5)
		ranked = ranked[t:]
	}
	if variance <= 0 {
		return 0
	}
	switch sigma := math.Sqrt(variance / 18); {
	case s > 0:
		return float64(s-1) / sigma
	case s < 0:
		return float64(s+1) / sigma
	}
	return 0
}

// rises is true when the trend is up with at least that Z, or, where so few values cannot give as much, with three
// quarters of what they can.
func rises(y []float64, z float64) bool {
	n := float64(len(y))
	most := (n*(n-1)/2 - 1) / math.Sqrt(n*(n-1)*(2*n+5)/18)
	return mannKendall(y) >= min(z, 0.75*most)
}

// pettitt finds the most likely single change of level by ranks (Pettitt 1979): y[:at] and y[at:] differ most there,
// and p is how likely chance alone gives as much.
func pettitt(y []float64) (at int, p float64) {
	n := len(y)
	if n < 4 {
		return 0, 1
	}
	best, u := 0, 0
	for t := range n - 1 {
		for j := range n {
			switch {
			case y[t] < y[j]:
				u++
			case y[t] > y[j]:
				u--
			}
		}
		if abs(u) > abs(best) {
			best, at = u, t+1
		}
	}
	k, f := float64(best), float64(n)
	return at, min(1, 2*math.Exp(-6*k*k/(f*f*f+f*f)))
}

func abs(i int) int { return max(i, -i) }
