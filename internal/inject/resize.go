// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

// resizePolicy adds the memory resize policy of the profile to a container in which a setting follows the limit when it
// starts again. It can only be set at creation. The pod's own policy wins, and where the API server would refuse
// RestartContainer none is added: pods that never restart, and plain init containers.
func (w *working) resizePolicy(pod *corev1.Pod, t target, helps bool) {
	if !helps || t.once || slices.ContainsFunc(w.resize, ofMemory) {
		return
	}
	policy := corev1.ResourceResizeRestartPolicy(t.policy.Tuning.ResizePolicy)
	switch t.policy.Tuning.ResizePolicy {
	case v1alpha1.ResizeNotRequired:
	case v1alpha1.ResizeRestartContainer:
		if pod.Spec.RestartPolicy == corev1.RestartPolicyNever || neverRestarts(t.container) {
			return
		}
	default: // Keep
		return
	}
	w.resize = append(
		slices.Clone(w.resize), corev1.ContainerResizePolicy{ResourceName: corev1.ResourceMemory, RestartPolicy: policy},
	)
	w.resizeSet = string(policy)
}

func neverRestarts(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyNever
}

func ofMemory(p corev1.ContainerResizePolicy) bool { return p.ResourceName == corev1.ResourceMemory }

// withoutMemory is list less the memory policy that memfit added; nil when nothing is left.
func withoutMemory(list []corev1.ContainerResizePolicy, added string) []corev1.ContainerResizePolicy {
	out := slices.DeleteFunc(slices.Clone(list), func(p corev1.ContainerResizePolicy) bool {
		return ofMemory(p) && string(p.RestartPolicy) == added
	})
	if len(out) == 0 {
		return nil
	}
	return out
}
