// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/quote"
)

// coverage counts governed pods by their state against the profile's current settings.
type coverage struct {
	v1alpha1.Coverage
	// outOfDate describes what one stale or missed pod lacks.
	outOfDate string
	// outOfStep describes the settings that no longer match the limit of a resized pod.
	outOfStep string
}

// reasonMax is the schema's bound of skippedReason, in bytes.
const reasonMax = 1024

func cover(s *Snapshot, observed map[string]inject.Observed) coverage {
	var c coverage
	var state inject.State
	var why string
	for i, pod := range s.Governed {
		c.Governed++
		if i == 0 || !alike(pod, s.Governed[i-1]) {
			state, why = inject.Compare(pod, s.Profile, observed)
		}
		switch state {
		case inject.UpToDate:
			c.Injected++
		case inject.Stale:
			c.Stale++
			c.outOfDate = cmp.Or(c.outOfDate, "pod "+pod.Name+": "+why)
			if inject.WasResized(pod) && inject.LimitMoved(pod, s.Profile) { // but not its environment
				c.outOfStep = cmp.Or(c.outOfStep, "pod "+pod.Name+" was resized in place: "+why)
			}
		case inject.Missed:
			c.Missed++
			c.outOfDate = cmp.Or(c.outOfDate, "pod "+pod.Name+": "+why)
		case inject.Skipped:
			c.Skipped++
			c.SkippedReason = cmp.Or(c.SkippedReason, quote.Cut("pod "+pod.Name+": "+why, reasonMax))
		case inject.Disabled: // counts only as governed
		}
	}
	return c
}

// alike reports whether both pods have equal plans. Cached replicas share the memory of their template (see
// internal/informers), so it compares addresses; other pods are compared with the profile one by one.
func alike(a, b *corev1.Pod) bool {
	return shareList(a.Spec.Containers, b.Spec.Containers) && shareList(a.Spec.InitContainers, b.Spec.InitContainers) &&
		shareList(a.Spec.Volumes, b.Spec.Volumes) &&
		a.Spec.Resources == nil && b.Spec.Resources == nil && a.Spec.OS == nil && b.Spec.OS == nil &&
		a.Spec.RestartPolicy == b.Spec.RestartPolicy &&
		maps.Equal(a.Annotations, b.Annotations)
}

func shareList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
