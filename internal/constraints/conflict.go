// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/memfit/memfit/internal/memory"
)

// Conflict returns the autoscalers that conflict with memfit over the memory of any of the containers, and what the
// user should do; "": none. A VerticalPodAutoscaler sets the same fields. A HorizontalPodAutoscaler on memory compares
// usage with requests, so changing requests changes the number of replicas, and thereby their usage.
func Conflict(w memory.WorkloadRef, containers []string, vpas []VPA, hpas []HPA) (conflict, remedy string) {
	writers, followers := map[string]string{}, map[string]string{} // remedies, by autoscaler
	for i := range vpas {
		if v := &vpas[i]; targets(v.Target, w) && v.UpdateMode != "Off" &&
			slices.ContainsFunc(containers, v.controls) {
			who, remedy := v.finding()
			writers[who] = remedy
		}
	}
	for i := range hpas {
		if h := &hpas[i]; targets(h.Target, w) && h.follows(containers) {
			who, remedy := h.finding()
			followers[who] = remedy
		}
	}
	var who, remedies []string
	for _, found := range []map[string]string{writers, followers} {
		for _, name := range slices.Sorted(maps.Keys(found)) {
			who = append(who, name)
			if !slices.Contains(remedies, found[name]) {
				remedies = append(remedies, found[name])
			}
		}
	}
	return strings.Join(who, " and "), strings.Join(remedies, "; ")
}

func (v *VPA) finding() (who, remedy string) {
	mode := "updateMode " + v.UpdateMode
	if v.UpdateMode == "" {
		mode = "updateMode not set, so it applies"
	}
	return fmt.Sprintf("VerticalPodAutoscaler %s/%s (%s, controls memory)", v.Target.Namespace, v.Name, mode),
		`set its updateMode to "Off" or remove memory from its controlledResources`
}

func (h *HPA) finding() (who, remedy string) {
	if h.ScaledObject != "" {
		return fmt.Sprintf("ScaledObject %s/%s (KEDA, scales on memory through HorizontalPodAutoscaler %s)",
			h.Target.Namespace, h.ScaledObject, h.Name), "remove its memory trigger"
	}
	return fmt.Sprintf("HorizontalPodAutoscaler %s/%s (scales on memory)", h.Target.Namespace, h.Name),
		"remove its memory metric"
}
