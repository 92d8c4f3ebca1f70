// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQuantile(t *testing.T) {
	v := []float64{1, 2, 3, 4, 5}
	for q, want := range map[float64]float64{0: 1, 0.25: 2, 0.5: 3, 0.9: 4.6, 1: 5} {
		if got := quantile(v, q); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if quantile(nil, 0.5) != 0 {
		t.Error("no values have a quantile")
	}
}

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
	slope, low, high := theilSen(x, y)
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
		if _, low, high := theilSen(x, y); low <= 2 && 2 <= high {
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
	if got, want := mannKendall(up), 44/math.Sqrt(125); math.Abs(got-want) > 1e-9 {
		t.Errorf("ten rising values: %v, want %v", got, want)
	}
	if got := mannKendall([]float64{5, 5, 5, 5, 5, 5}); got != 0 {
		t.Errorf("equal values: %v", got)
	}
	// S = 5 of 6 pairs, with one tie of two: variance (4*3*13 - 2*1*9)/18
	if got, want := mannKendall([]float64{1, 2, 2, 3}), 4/math.Sqrt((4*3*13-2*1*9)/18.0); math.Abs(got-want) > 1e-9 {
		t.Errorf("with a tie: %v, want %v", got, want)
	}
}

func TestPettitt(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var y []float64
	for i := range 40 {
		v := 100 + r.Float64()
		if i >= 25 {
			v += 50
		}
		y = append(y, v)
	}
	if at, p := pettitt(y); at != 25 || p > 0.001 {
		t.Errorf("change at %d with p=%v, want 25", at, p)
	}
	for i := range y {
		y[i] = r.Float64()
	}
	if _, p := pettitt(y); p < 0.05 {
		t.Errorf("noise changes with p=%v", p)
	}
}

func TestFloorForgetsWhatCameDown(t *testing.T) {
	lows := make([]float64, 48)
	for i := range lows {
		lows[i] = 100 * mib
		if i%12 > 8 {
			lows[i] = 300 * mib // the last one is still up when the window ends
		}
	}
	for i, f := range floor(lows) {
		if f != 100*mib {
			t.Fatalf("floor is %.0f MiB at %d", f/mib, i)
		}
	}
}

// TestChosenIsTheQuantile: picking a value out is not sorting, and finds the same.
func TestChosenIsTheQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		v := make([]float64, n)
		for i := range v {
			v[i] = math.Floor(r.NormFloat64() * float64(1+n%7)) // with ties, and without
			if n%2 == 0 {
				v[i] += r.Float64()
			}
		}
		for _, q := range []float64{0, 0.025, 0.3, 0.5, 0.975, 1} {
			if got, want := chosen(slices.Clone(v), q), quantile(sortedCopy(v), q); got != want {
				t.Fatalf("%d values: the %.3f quantile is %v, want %v", n, q, got, want)
			}
		}
	}
	for _, odd := range [][]float64{{math.NaN()}, {1, math.NaN(), 3, math.Inf(1), math.NaN()}} {
		chosen(odd, 0.5) // ends
	}
}
