// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"maps"
	"slices"
)

// undisturbed are the annotations by which owners ask the programs that move pods not to disrupt a pod.
var undisturbed = map[string]string{
	"karpenter.sh/do-not-disrupt":                    "true",
	"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}

// DisturbanceAnnotations returns those that [Undisturbed] reads; caches must keep them.
func DisturbanceAnnotations() []string { return slices.Sorted(maps.Keys(undisturbed)) }

// Undisturbed returns the annotation, with its value, by which an owner forbids disruptions of a pod; empty: none.
func Undisturbed(annotations map[string]string) string {
	for _, key := range DisturbanceAnnotations() {
		if value := undisturbed[key]; annotations[key] == value {
			return key + ": \"" + value + "\""
		}
	}
	return ""
}
