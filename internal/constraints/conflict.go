// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memfit/memfit/internal/memory"
)

// finding is one autoscaler that controls the memory, and what to do about it.
type finding struct{ who, remedy string }

// Conflict returns the autoscalers that control the memory of one of a workload's containers, and what to do; "": none.
// A VerticalPodAutoscaler writes the same fields; a HorizontalPodAutoscaler on memory compares use with requests, so
// every change of requests changes the number of replicas, and with it use.
func Conflict(w memory.WorkloadRef, containers []string, vpas []VPA, hpas []HPA) (conflict, remedy string) {
	var writers, followers []finding
	for i := range vpas {
		if v := &vpas[i]; targets(v.Target, w) && v.UpdateMode != "Off" &&
			slices.ContainsFunc(containers, v.controls) {
			writers = append(writers, v.finding())
		}
	}
	for i := range hpas {
		if h := &hpas[i]; targets(h.Target, w) && h.follows(containers) {
			followers = append(followers, h.finding())
		}
	}
	byName := func(a, b finding) int { return strings.Compare(a.who, b.who) }
	slices.SortFunc(writers, byName)
	slices.SortFunc(followers, byName)
	var who, remedies []string
	for _, f := range append(writers, followers...) {
		who = append(who, f.who)
		if !slices.Contains(remedies, f.remedy) {
			remedies = append(remedies, f.remedy)
		}
	}
	return strings.Join(who, " and "), strings.Join(remedies, "; ")
}

func (v *VPA) finding() finding {
	mode := "updateMode " + v.UpdateMode
	if v.UpdateMode == "" {
		mode = "updateMode not set, so it applies"
	}
	return finding{
		who:    fmt.Sprintf("VerticalPodAutoscaler %s/%s (%s, controls memory)", v.Target.Namespace, v.Name, mode),
		remedy: `set its updateMode to "Off" or remove memory from its controlledResources`,
	}
}

func (h *HPA) finding() finding {
	if h.ScaledObject != "" {
		return finding{
			who: fmt.Sprintf("ScaledObject %s/%s (KEDA, scales on memory through HorizontalPodAutoscaler %s)",
				h.Target.Namespace, h.ScaledObject, h.Name),
			remedy: "remove its memory trigger",
		}
	}
	return finding{
		who:    fmt.Sprintf("HorizontalPodAutoscaler %s/%s (scales on memory)", h.Target.Namespace, h.Name),
		remedy: "remove its memory metric",
	}
}
