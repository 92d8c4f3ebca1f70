// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
)

// TestWorth: news are written at once, figures that go up and down by themselves may wait, and prose is written along.
func TestWorth(t *testing.T) {
	type container = v1alpha1.ContainerRecommendation
	before := v1alpha1.MemoryRecommendationStatus{Containers: []container{{
		Container: "app", Decision: "Keep", OOMKills: 3, Summary: "Keep it", Usage: new(resource.MustParse("100Mi")),
		FoundRuntime: &v1alpha1.FoundRuntime{Type: v1alpha1.RuntimeGo, Replicas: 5},
		Shape:        &v1alpha1.Shape{Kind: "Climb", RatePerDay: new(resource.MustParse("1Gi"))},
	}}}
	for name, c := range map[string]struct {
		edit          func(*container)
		news, figures bool
	}{
		"prose":                  {func(c *container) { c.Summary = "Still keep it" }, false, false},
		"use, a little":          {func(c *container) { *c.Usage = resource.MustParse("101Mi") }, false, false},
		"use":                    {func(c *container) { *c.Usage = resource.MustParse("150Mi") }, false, true},
		"no use any more":        {func(c *container) { c.Usage = nil }, true, true},
		"a replica is inspected": {func(c *container) { c.FoundRuntime.Replicas = 2 }, false, true},
		"another runtime":        {func(c *container) { c.FoundRuntime.Type = v1alpha1.RuntimeJVM }, true, false},
		"it climbs faster":       {func(c *container) { *c.Shape.RatePerDay = resource.MustParse("2Gi") }, false, true},
		"it does not climb":      {func(c *container) { c.Shape.Kind, c.Shape.RatePerDay = "Flat", nil }, true, true},
		"a kill":                 {func(c *container) { c.OOMKills++ }, true, false},
		"a decision":             {func(c *container) { c.Decision = "Increase" }, true, false},
	} {
		after := before.DeepCopy()
		c.edit(&after.Containers[0])
		was, is := NewState().HashStatus(&before), NewState().HashStatus(after)
		if news := was.Stable != is.Stable; news != c.news {
			t.Errorf("%s: news is %v", name, news)
		}
		if figures := was.Fluctuating != is.Fluctuating; figures != c.figures {
			t.Errorf("%s: figures moved is %v", name, figures)
		}
	}
	if before.Containers[0].Usage.String() != "100Mi" || before.Containers[0].FoundRuntime.Replicas != 5 {
		t.Errorf("the status was changed: %+v", before.Containers[0])
	}
}
