// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQuantile(t *testing.T) {
	v := []float64{1, 2, 3, 4, 5}
	for q, want := range map[float64]float64{0: 1, 0.25: 2, 0.5: 3, 0.9: 4.6, 1: 5} {
		if got := Quantile(v, q); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if Quantile(nil, 0.5) != 0 {
		t.Error("no values have a quantile")
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
			if got, want := quickQuantile(slices.Clone(v), q), Quantile(Sorted(v), q); got != want {
				t.Fatalf("%d values: the %.3f quantile is %v, want %v", n, q, got, want)
			}
		}
	}
	for _, odd := range [][]float64{{math.NaN()}, {1, math.NaN(), 3, math.Inf(1), math.NaN()}} {
		quickQuantile(odd, 0.5) // ends
	}
}
