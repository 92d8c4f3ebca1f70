// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/stats"
)

const (
	outliersNamed  = 5 // pods in Shape.Outliers
	fewestReplicas = 4 // with fewer, it is unclear which replica is unusual
	// An outlier is above outlierPercent of the replicas' median, and above the median by minOutlier and by
	// outlierSpreads median absolute deviations.
	outlierPercent = 150
	outlierSpreads = 6
	minOutlier     = float64(16 * memory.MiB)
)

// outlierReplicas returns the pods with far more memory than the other replicas, the highest first, at most
// outliersNamed. It uses the low points of a pod, so that a burst does not make it an outlier. A pod without enough
// points counts with its reading.
func outlierReplicas(in Input) []string {
	use := map[string]float64{}
	for _, r := range in.Replicas {
		use[r.Pod] = float64(r.RSS)
	}
	for _, instance := range in.Instances {
		pod := instance.Container.Pod
		if pod == "" || len(in.Replicas) > 0 && use[pod] <= 0 {
			continue
		}
		if s := newSeries(instance); len(s.cells) > 0 {
			use[pod] = stats.Quantile(stats.Sorted(s.lows()[len(s.cells)*3/4:]), 0.25)
		}
	}
	outliers, _ := farAbove(use)
	return outliers[:min(len(outliers), outliersNamed)]
}

// Outliers returns the pods with far more memory than the other replicas, the highest first, and the usual amount: the
// median of all. It uses one reading of each pod, so it includes a pod in a burst.
func Outliers(replicas []Replica) (pods []string, usual memory.Bytes) {
	use := make(map[string]float64, len(replicas))
	for _, r := range replicas {
		use[r.Pod] = float64(r.RSS)
	}
	pods, middle := farAbove(use)
	return pods, toBytes(middle)
}

// farAbove returns the pods far above the median, the highest first, and the median. use has the memory by pod.
func farAbove(use map[string]float64) (outliers []string, usual float64) {
	if len(use) < fewestReplicas {
		return nil, 0
	}
	values := slices.Collect(maps.Values(use))
	usual = stats.Median(values)
	for i, v := range values {
		values[i] = math.Abs(v - usual)
	}
	spread := stats.Median(values)
	least := max(usual*outlierPercent/100, usual+outlierSpreads*spread, usual+minOutlier)
	for pod, v := range use {
		if v > least {
			outliers = append(outliers, pod)
		}
	}
	if len(outliers)*3 > len(use) {
		return nil, usual // two kinds of pods, not outliers
	}
	slices.SortFunc(outliers, func(a, b string) int { return cmp.Or(cmp.Compare(use[b], use[a]), cmp.Compare(a, b)) })
	return outliers, usual
}

// followsAcrossLimits reports whether memory rose to the same share of different limits, at least half of each: the
// limit determines the use.
func followsAcrossLimits(regimes []history.Regime) bool {
	seen := slices.DeleteFunc(slices.Clone(regimes), func(r history.Regime) bool { return r.Limit == 0 || r.Peak == 0 })
	share := func(r history.Regime) float64 { return float64(r.Peak) / float64(r.Limit) }
	for i, a := range seen {
		for _, b := range seen[i+1:] {
			if max(a.Limit, b.Limit) > min(a.Limit, b.Limit).Percent(120) {
				low, high := min(share(a), share(b)), max(share(a), share(b))
				return low >= 0.5 && high < 0.97 && high-low < 0.08
			}
		}
	}
	return false
}
