// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// Pettitt finds the most likely single change of level by ranks (Pettitt 1979): y[:at] and y[at:] differ most there,
// and p is how likely chance alone gives as much.
func Pettitt(y []float64) (at int, p float64) {
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
