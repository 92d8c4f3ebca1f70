// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

// resizePolicy adds the profile's memory resize policy to a container if helps is true: a restart adapts one of its
// settings to a new limit. The pod's own policy wins. Containers that run to completion do not get RestartContainer: a
// restart loses their work and counts against the backoffLimit of their Job. The API server would refuse it for
// containers that never restart, and for plain init containers.
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

// memoryPolicy returns the restart policy for a resize of memory; empty: none.
func memoryPolicy(list []corev1.ContainerResizePolicy) corev1.ResourceResizeRestartPolicy {
	if i := slices.IndexFunc(list, ofMemory); i >= 0 {
		return list[i].RestartPolicy
	}
	return ""
}
