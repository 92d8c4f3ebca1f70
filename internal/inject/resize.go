// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

// resizePolicy adds the profile's memory resize policy to a container with a setting that follows the limit after a
// restart. It can only be set at creation. The pod's own policy wins. RestartContainer is not for containers that run
// to completion: a restart loses their work and counts against the backoffLimit of their Job. Of those that never
// restart, and of plain init containers, the API server would refuse it.
func (w *working) resizePolicy(pod *corev1.Pod, t target, helps bool) {
	if !helps || t.once || w.resize != "" {
		return
	}
	own, all := t.container.RestartPolicy, pod.Spec.RestartPolicy
	ends := all == corev1.RestartPolicyNever || all == corev1.RestartPolicyOnFailure ||
		own != nil && *own != corev1.ContainerRestartPolicyAlways
	switch to := t.policy.Tuning.ResizePolicy; {
	case to == v1alpha1.ResizeNotRequired, to == v1alpha1.ResizeRestartContainer && !ends:
		w.resizeSet, w.resize = string(to), corev1.ResourceResizeRestartPolicy(to)
	}
}

func ofMemory(p corev1.ContainerResizePolicy) bool { return p.ResourceName == corev1.ResourceMemory }

// memoryPolicy returns the restart policy for memory in a list; empty: none.
func memoryPolicy(list []corev1.ContainerResizePolicy) corev1.ResourceResizeRestartPolicy {
	if i := slices.IndexFunc(list, ofMemory); i >= 0 {
		return list[i].RestartPolicy
	}
	return ""
}
