// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// TheilSen returns the median of the slopes between all pairs of points, and its 95 % confidence interval (Sen 1968).
// Up to 29 % of the points may be outliers. More than 48 points are averaged in pairs, because the cost is quadratic.
func TheilSen(x, y []float64) (slope, low, high float64) {
	const most = 48
	for len(x) > most {
		x, y = paired(x), paired(y)
	}
	slopes := make([]float64, 0, most*(most-1)/2) // constant capacity, to stay on the stack
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
	half := 1.96 * math.Sqrt(n*(n-1)*(2*n+5)/18) / 2 // half of the interval, as a number of slopes
	m := float64(len(slopes))
	share := min(half/m, 0.5)
	low = quickQuantile(slopes, 0.5-share)
	return quickQuantile(slopes, 0.5), low, quickQuantile(slopes, 0.5+share)
}

// paired returns the means of pairs of neighbors.
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

// MannKendall returns Z of the Mann-Kendall test for a trend: the number of rising pairs of values minus the falling
// ones, in standard deviations. Ties do not count. Values without a trend exceed 2.6 once in two hundred.
func MannKendall(y []float64) float64 {
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
	for ranked := Sorted(y); len(ranked) > 0; {
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

// Rises reports whether [MannKendall] returns at least z for y. If y is too short to reach z, three quarters of the
// highest possible result are enough.
func Rises(y []float64, z float64) bool {
	n := float64(len(y))
	most := (n*(n-1)/2 - 1) / math.Sqrt(n*(n-1)*(2*n+5)/18)
	return MannKendall(y) >= min(z, 0.75*most)
}
