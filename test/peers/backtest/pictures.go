// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// drawSet draws some series of one set into a folder.
func drawSet(dir string, set Set, outcomes []Outcome) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, i := range chosen(set, outcomes) {
		name := set.Name + "-" + strings.NewReplacer("/", "-", " ", "-").Replace(set.Series[i].Name) + ".png"
		if err := drawSeries(filepath.Join(dir, name), set.Series[i]); err != nil {
			return err
		}
	}
	return nil
}

// chosen returns the series of a set to draw: those with VPA's most kills, memfit's most kills, memfit's most slack,
// and the largest excess of VPA's slack over memfit's.
func chosen(set Set, outcomes []Outcome) (picked []int) {
	of := func(policy string) []Result {
		return outcomes[slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Policy == policy })].Results
	}
	memfit, vpa := of("memfit"), of("vpa")
	pick := func(score func(i int) float64) {
		best, most := -1, 0.
		for i := range set.Series {
			if s := score(i); s > most && !slices.Contains(picked, i) {
				best, most = i, s
			}
		}
		if best >= 0 {
			picked = append(picked, best)
		}
	}
	pick(func(i int) float64 { return float64(vpa[i].Kills) })
	pick(func(i int) float64 { return float64(memfit[i].Kills) })
	pick(func(i int) float64 { return memfit[i].Slack })
	pick(func(i int) float64 { return vpa[i].Ratio() - memfit[i].Ratio() })
	return picked
}
