// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestTheilSen: a quarter of the points are wild, the slope is not.
func TestTheilSen(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var x, y []float64
	for i := range 40 {
		v := 100 + 3*float64(i) + r.NormFloat64()
		if i%4 == 0 {
			v += 500 * r.Float64()
		}
		x, y = append(x, float64(i)), append(y, v)
	}
	slope, low, high := TheilSen(x, y)
	if math.Abs(slope-3) > 0.5 || low > 3 || high < 3 {
		t.Errorf("slope %.2f in %.2f to %.2f, want 3", slope, low, high)
	}
}

// TestTheilSenInterval: the 95 % interval holds the truth about 95 times in a hundred.
func TestTheilSenInterval(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	held := 0
	const rounds = 400
	for range rounds {
		var x, y []float64
		for i := range 30 {
			x, y = append(x, float64(i)), append(y, 2*float64(i)+10*r.NormFloat64())
		}
		if _, low, high := TheilSen(x, y); low <= 2 && 2 <= high {
			held++
		}
	}
	if share := float64(held) / rounds; share < 0.91 || share > 0.99 {
		t.Errorf("the interval held the truth in %.0f %% of the rounds", 100*share)
	}
}

// TestMannKendall: values worked out by hand, with and without ties.
func TestMannKendall(t *testing.T) {
	up := make([]float64, 10)
	for i := range up {
		up[i] = float64(i)
	}
	// S = 45, variance 125, Z = 44/sqrt(125)
	if got, want := MannKendall(up), 44/math.Sqrt(125); math.Abs(got-want) > 1e-9 {
		t.Errorf("ten rising values: %v, want %v", got, want)
	}
	if got := MannKendall([]float64{5, 5, 5, 5, 5, 5}); got != 0 {
		t.Errorf("equal values: %v", got)
	}
	// S = 5 of 6 pairs, with one tie of two: variance (4*3*13 - 2*1*9)/18
	if got, want := MannKendall([]float64{1, 2, 2, 3}), 4/math.Sqrt((4*3*13-2*1*9)/18.0); math.Abs(got-want) > 1e-9 {
		t.Errorf("with a tie: %v, want %v", got, want)
	}
}
