// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	vpav1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/config"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"

	"github.com/memfit/memfit/internal/memory"
)

// known is what VPA must know of one container: the container and its aggregate.
type known struct {
	container *model.ContainerState
	aggregate *model.AggregateContainerState
}

// vpaModel is the same as memfitModel for VPA's recommender.
func vpaModel(containers int) (cost, error) {
	aggregates := make([]known, containers)
	heap := grown(func() {
		for i := range aggregates {
			aggregates[i] = aggregate(newContainer(i))
		}
	})
	recommender := vpaRecommender()
	answered := 0
	pass, err := processorTime(func() error {
		answered = 0
		for _, k := range aggregates {
			out := recommender.GetRecommendedPodResources(model.ContainerNameToAggregateStateMap{"app": k.aggregate})
			if out["app"].Target[model.ResourceMemory] > 0 {
				answered++
			}
		}
		return nil
	})
	if err == nil && answered != containers {
		err = fmt.Errorf("VPA answered for %d of %d containers", answered, containers)
	}
	var stored memory.Bytes
	for _, k := range aggregates {
		checkpoint, saveErr := k.aggregate.SaveToCheckpoint()
		if saveErr != nil {
			return cost{}, saveErr
		}
		size, sizeErr := jsonSize(checkpoint)
		if sizeErr != nil {
			return cost{}, sizeErr
		}
		stored += size
	}
	runtime.KeepAlive(aggregates)
	return cost{
		what: "model", server: "vpa", containers: containers, perWorkload: 1, pass: pass, heap: heap, checkpoint: stored,
	}, err
}

func aggregate(c *container) known {
	a := model.NewAggregateContainerState()
	k := known{model.NewContainerState(model.Resources{model.ResourceMemory: model.ResourceAmount(c.limit)}, a), a}
	modelSchedule.each(func(at time.Time) {
		rss, killed := c.use(at)
		for _, s := range vpaSamples(c, at, rss) {
			k.container.AddSample(&s)
		}
		if killed {
			_ = k.container.RecordOOM(at, model.ResourceAmount(c.limit)) // refused only when out of order
		}
	})
	return k
}

// vpaSamples are one look through the metrics API. VPA counts its confidence in CPU samples, so there must be some.
func vpaSamples(c *container, at time.Time, rss memory.Bytes) []model.ContainerUsageSample {
	cores := 0.01 + 0.1*float64(rss)/float64(c.limit)
	return []model.ContainerUsageSample{
		{MeasureStart: at, Usage: model.ResourceAmount(rss + 8*memory.MiB), Resource: model.ResourceMemory},
		{MeasureStart: at, Usage: model.CPUAmountFromCores(cores), Resource: model.ResourceCPU},
	}
}

// vpaRecommender is VPA's with the defaults of its flags.
func vpaRecommender() logic.PodResourceRecommender {
	c := config.DefaultRecommenderConfig()
	return logic.CreatePodResourceRecommender(logic.RecommendationConfig{
		SafetyMarginFraction: c.SafetyMarginFraction, PodMinCPUMillicores: c.PodMinCPUMillicores,
		PodMinMemoryMb:      c.PodMinMemoryMb,
		TargetCPUPercentile: c.TargetCPUPercentile, LowerBoundCPUPercentile: c.LowerBoundCPUPercentile,
		UpperBoundCPUPercentile: c.UpperBoundCPUPercentile,
		ConfidenceIntervalCPU:   c.ConfidenceIntervalCPU, TargetMemoryPercentile: c.TargetMemoryPercentile,
		LowerBoundMemoryPercentile: c.LowerBoundMemoryPercentile, UpperBoundMemoryPercentile: c.UpperBoundMemoryPercentile,
		ConfidenceIntervalMemory: c.ConfidenceIntervalMemory,
	})
}

func jsonSize(checkpoint *vpav1.VerticalPodAutoscalerCheckpointStatus) (memory.Bytes, error) {
	data, err := json.Marshal(checkpoint)
	return memory.Bytes(len(data)), err
}
