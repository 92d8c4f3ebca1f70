// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"iter"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// sizeOf returns the container's entry in sizes or, without one, the size in its spec.
func sizeOf(c *corev1.Container, sizes map[string]memory.Size) memory.Size {
	size, changed := sizes[c.Name]
	if !changed {
		size = SizeOf(&c.Resources)
	}
	return admitted(size)
}

// admitted returns a size after API server defaulting: a missing request becomes the limit.
func admitted(s memory.Size) memory.Size {
	if s.Request == 0 {
		s.Request = s.Limit
	}
	return s
}

// SizeOf returns the memory request and limit of a container or pod; 0: not set.
func SizeOf(r *corev1.ResourceRequirements) memory.Size {
	return memory.Size{Request: memory.FromQuantity(*r.Requests.Memory()), Limit: memory.FromQuantity(*r.Limits.Memory())}
}

// Total returns the size of a pod for admission and scheduling: the pod-level values or, where these are not set, the
// sum of its containers ([Together]).
func Total(pod *corev1.Pod, sizes map[string]memory.Size) memory.Size {
	sum := together(pod, sizes)
	if r := pod.Spec.Resources; r != nil {
		own := SizeOf(r)
		if own.Request > 0 {
			sum.Request = own.Request
		}
		if own.Limit > 0 {
			sum.Limit = own.Limit
		}
	}
	return sum
}

// Need returns what quotas and the scheduler count for a pod: its size and its overhead (spec.overhead).
func Need(pod *corev1.Pod, sizes map[string]memory.Size) memory.Size {
	overhead := memory.FromQuantity(*pod.Spec.Overhead.Memory())
	return Total(pod, sizes).Plus(memory.Size{Request: overhead, Limit: overhead})
}

// Sidecar reports whether an init container is a native sidecar, which runs beside the others.
func Sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func together(pod *corev1.Pod, sizes map[string]memory.Size) memory.Size {
	return Together(pod, func(c *corev1.Container) memory.Size { return sizeOf(c, sizes) })
}

// Together returns the sum of a pod's containers and native sidecars, or more if init containers need more.
func Together(pod *corev1.Pod, of func(*corev1.Container) memory.Size) memory.Size {
	var running, starting memory.Size
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		size := of(c)
		if Sidecar(c) {
			running = running.Plus(size)
			starting = starting.Max(running)
			continue
		}
		starting = starting.Max(running.Plus(size))
	}
	for i := range pod.Spec.Containers {
		running = running.Plus(of(&pod.Spec.Containers[i]))
	}
	return running.Max(starting)
}

// PodLeaves returns the highest limit and request that the pod-level size (spec.resources) allows one container: its
// limit must not exceed the pod's limit, and all requests together must not exceed the pod's request. 0: the pod-level
// value is not set; [Exhausted]: nothing is left.
func PodLeaves(pod *corev1.Pod, container string) (limit, request memory.Bytes) {
	if pod.Spec.Resources == nil {
		return 0, 0
	}
	whole := SizeOf(pod.Spec.Resources)
	if whole.Request == 0 {
		return whole.Limit, 0
	}
	rest := whole.Request.Minus(together(pod, nil).Request)
	var own memory.Bytes
	if c, _ := Find(pod, container); c != nil {
		own = sizeOf(c, nil).Request
	}
	return whole.Limit, max(own.Plus(rest), Exhausted)
}

// Containers yields the init containers of a pod, each with true, and then its containers, each with false. It omits
// ephemeral containers, which cannot be resized.
func Containers(spec *corev1.PodSpec) iter.Seq2[*corev1.Container, bool] {
	return func(yield func(*corev1.Container, bool) bool) {
		for i := range spec.InitContainers {
			if !yield(&spec.InitContainers[i], true) {
				return
			}
		}
		for i := range spec.Containers {
			if !yield(&spec.Containers[i], false) {
				return
			}
		}
	}
}

// Find returns a container and its status by name; nil if not found. The kubelet may not have reported a status yet.
func Find(pod *corev1.Pod, name string) (spec *corev1.Container, status *corev1.ContainerStatus) {
	for c := range Containers(&pod.Spec) {
		if c.Name == name {
			spec = c
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == name {
				status = &statuses[i]
			}
		}
	}
	return spec, status
}
