// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"testing"

	"github.com/memfit/memfit/api/v1alpha1"
)

// TestValuesSayWhereTheyAreFrom: each value is the effective one, with the nearest place that says it.
func TestValuesSayWhereTheyAreFrom(t *testing.T) {
	n := of(v1alpha1.MemoryProfileSpec{
		Sizing: v1alpha1.SizingSpec{
			Mode: v1alpha1.SizingOnCreate, HeadroomPercent: new(int32(15)), Limit: &v1alpha1.Bounds{Max: quantity("4Gi")},
			Request: &v1alpha1.Bounds{Min: quantity("32Mi")},
		},
		Tuning: v1alpha1.TuningSpec{Mode: v1alpha1.TuningDryRun, HeapPercent: new(int32(60)), ArenaMax: new(int32(2))},
		Containers: []v1alpha1.ContainerPolicy{
			{Name: "*", Tuning: &v1alpha1.TuningSpec{ArenaMax: new(int32(4))}},
			{
				Name: "app", Limit: &v1alpha1.Bounds{Max: quantity("1Gi")},
				Tuning: &v1alpha1.TuningSpec{Mode: v1alpha1.TuningInject, HeapLimit: quantity("256Mi")},
			},
		},
	})
	for container, want := range map[string]map[string]Value{
		"app": {
			"sizing.mode":            {Value: "OnCreate", From: "MemoryProfile shop/p"},
			"sizing.limit.max":       {Value: "1Gi", From: "MemoryProfile shop/p, containers[app]"},
			"sizing.limit.min":       {Value: "16Mi", From: "default"},
			"sizing.request.min":     {Value: "32Mi", From: "MemoryProfile shop/p"},
			"sizing.headroomPercent": {Value: "15", From: "MemoryProfile shop/p"}, // the default, but somebody said it
			"sizing.posture":         {Value: "Balanced", From: "default"},        // nobody said anything
			"tuning.mode":            {Value: "Inject", From: "MemoryProfile shop/p, containers[app]"},
			"tuning.heapLimit":       {Value: "256Mi", From: "MemoryProfile shop/p, containers[app]"},
			"tuning.arenaMax":        {Value: "2", From: "MemoryProfile shop/p"}, // its entry wins over "*" as a whole
		},
		"other": {
			"sizing.limit.max":   {Value: "4Gi", From: "MemoryProfile shop/p"},
			"tuning.heapPercent": {Value: "60", From: "MemoryProfile shop/p"},
			"tuning.arenaMax":    {Value: "4", From: "MemoryProfile shop/p, containers[*]"},
		},
		"istio-proxy": { // a sidecar is not tuned as the application is
			"tuning.mode": {Value: "DryRun", From: "MemoryProfile shop/p"},
		},
	} {
		got := map[string]Value{}
		for _, v := range n.Values(container) {
			got[v.Field] = Value{Value: v.Value, From: v.From}
		}
		for field, w := range want {
			if got[field] != w {
				t.Errorf("%s: %s is %+v, want %+v", container, field, got[field], w)
			}
		}
		if _, ok := got["tuning.heapPercent"]; ok != (container == "other") {
			t.Errorf("%s: heapPercent is there: %v", container, ok)
		}
	}
	cluster := Profile{Ref: v1alpha1.ProfileReference{Kind: KindCluster, Name: "jvm"}, Spec: n.Spec}
	for _, v := range cluster.Values("other") {
		if v.Field == "sizing.mode" && v.From != "ClusterMemoryProfile jvm" {
			t.Errorf("of a profile of the cluster: %+v", v)
		}
	}
}
