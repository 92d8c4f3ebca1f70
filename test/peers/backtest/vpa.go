// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
)

// vpa runs the Vertical Pod Autoscaler's own recommender: histogram, OOM handling and estimators.
type vpa struct {
	container   *model.ContainerState
	aggregate   *model.AggregateContainerState
	recommender logic.PodResourceRecommender
}

// vpaDefaults returns the flag defaults of v1.8.1 (main.go and config.go of its recommender).
func vpaDefaults() logic.RecommendationConfig {
	return logic.RecommendationConfig{
		SafetyMarginFraction: 0.15, PodMinCPUMillicores: 25, PodMinMemoryMb: 250,
		TargetCPUPercentile: 0.9, LowerBoundCPUPercentile: 0.5, UpperBoundCPUPercentile: 0.95,
		ConfidenceIntervalCPU:  24 * time.Hour,
		TargetMemoryPercentile: 0.9, LowerBoundMemoryPercentile: 0.5, UpperBoundMemoryPercentile: 0.95,
		ConfidenceIntervalMemory: 24 * time.Hour,
	}
}

// flags are VPA's flags that change a limit: --target-memory-percentile, --recommendation-margin-fraction and
// --pod-recommendation-min-memory-mb.
type flags struct{ percentile, margin, floorMiB float64 }

// vpaFlagDefaults are the flags' defaults in v1.8.1; a test compares them with [vpaDefaults].
var vpaFlagDefaults = flags{0.9, 0.15, 250}

// String returns the policy's name in the output; with the defaults it is "vpa".
func (f flags) String() string {
	if f == vpaFlagDefaults {
		return "vpa"
	}
	return fmt.Sprintf("vpa-p%g-m%g-f%g", 100*f.percentile, 100*f.margin, f.floorMiB)
}

// margins and floorsMiB are the values of VPA's curve, and of memfit's counterparts.
var (
	margins   = []float64{0.05, 0.15, 0.4, 1}
	floorsMiB = []float64{0, 64, 250, 500}
)

// flagGrid returns the points of VPA's curve: its defaults, and plausible tighter and wider values.
func flagGrid() (grid []flags) {
	for _, percentile := range []float64{0.5, 0.9, 0.98, 1} {
		for _, margin := range margins {
			for _, floor := range floorsMiB {
				grid = append(grid, flags{percentile, margin, floor})
			}
		}
	}
	return grid
}

// newVPA returns a recommender with the flags f and defaults otherwise.
func newVPA(f flags) *vpa {
	config := vpaDefaults()
	config.TargetMemoryPercentile, config.SafetyMarginFraction, config.PodMinMemoryMb = f.percentile, f.margin, f.floorMiB
	aggregate := model.NewAggregateContainerState()
	return &vpa{
		container:   model.NewContainerState(model.Resources{}, aggregate),
		aggregate:   aggregate,
		recommender: logic.CreatePodResourceRecommender(config),
	}
}

// Observe feeds memory and, because VPA counts confidence in CPU samples, a small steady CPU use.
func (v *vpa) Observe(at time.Time, use, _ int64) {
	v.container.AddSample(
		&model.ContainerUsageSample{MeasureStart: at, Usage: model.ResourceAmount(use), Resource: model.ResourceMemory},
	)
	v.container.AddSample(
		&model.ContainerUsageSample{MeasureStart: at, Usage: model.CPUAmountFromCores(0.01), Resource: model.ResourceCPU},
	)
}

// Killed records the OOM as VPA's observer does, with the request; here request and limit are the same.
func (v *vpa) Killed(at time.Time, limit int64) {
	// It fails only for a time older than a day, which cannot happen in order.
	_ = v.container.RecordOOM(at, model.ResourceAmount(limit))
}

// Limit returns VPA's target; 0 before the first sample.
func (v *vpa) Limit(time.Time, int64) int64 {
	if v.aggregate.AggregateMemoryPeaks.IsEmpty() {
		return 0
	}
	const name = "c"
	out := v.recommender.GetRecommendedPodResources(model.ContainerNameToAggregateStateMap{name: v.aggregate})
	return int64(out[name].Target[model.ResourceMemory])
}
