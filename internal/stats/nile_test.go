// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"testing"
)

// nile is the flow of the Nile at Aswan in the years 1871 to 1970, in 10^8 m3 (Cobb 1978): a series with many ties that
// trend tests and change points are shown on everywhere. It fell in 1899, after the 28th value.
var nile = []float64{
	1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
	1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
	831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
	781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
	744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
}

// TestReferenceVectors holds each statistic to its definition, which another program (Python, with nothing but loops
// and sorting) worked out on the same series.
func TestReferenceVectors(t *testing.T) {
	years := make([]float64, 40) // fewer than are thinned
	for i := range years {
		years[i] = float64(i)
	}
	// 780 slopes, and Sen's C of 168.2: the ranks 305.9 and 474.1 of them
	slope, low, high := TheilSen(years, nile[:40])
	for name, v := range map[string]struct{ got, want float64 }{
		"median":             {Median(nile), 893.5},
		"upper quartile":     {Quantile(Sorted(nile), 0.75), 1032.5},
		"slope":              {slope, -6.120238095238095},
		"slope, lower bound": {low, -11.520778459886515},
		"slope, upper bound": {high, -1.3783455720341773},
		"trend":              {MannKendall(nile), -4.128066522844101}, // S = -1387, variance 112728.33
	} {
		if math.Abs(v.got-v.want) > 1e-9*math.Abs(v.want) {
			t.Errorf("%s: %v, want %v", name, v.got, v.want)
		}
	}
	if Rises(nile, 2.6) {
		t.Error("what falls rises")
	}
}
