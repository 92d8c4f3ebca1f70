// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import "testing"

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
