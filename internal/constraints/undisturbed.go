// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"maps"
	"slices"
)

// doNotDisrupt has the annotations, with their values, that keep node autoscalers from evicting a pod.
var doNotDisrupt = map[string]string{
	"karpenter.sh/do-not-disrupt":                    "true",
	"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}

// DisruptionAnnotations returns the annotations that [DoNotDisrupt] reads, sorted; caches must keep them.
func DisruptionAnnotations() []string { return slices.Sorted(maps.Keys(doNotDisrupt)) }

// DoNotDisrupt returns the annotation, with its value, that forbids disruptions of a pod; "": none.
func DoNotDisrupt(annotations map[string]string) string {
	for _, key := range DisruptionAnnotations() {
		if value := doNotDisrupt[key]; annotations[key] == value {
			return key + ": \"" + value + "\""
		}
	}
	return ""
}
