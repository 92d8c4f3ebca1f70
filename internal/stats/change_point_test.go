// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math/rand/v2"
	"testing"
)

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
	if at, p := Pettitt(y); at != 25 || p > 0.001 {
		t.Errorf("change at %d with p=%v, want 25", at, p)
	}
	for i := range y {
		y[i] = r.Float64()
	}
	if _, p := Pettitt(y); p < 0.05 {
		t.Errorf("noise changes with p=%v", p)
	}
}
