// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"iter"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// sizeOf is what the container will ask for: its entry in sizes, else its own spec.
func sizeOf(c *corev1.Container, sizes map[string]memory.Size) memory.Size {
	size, changed := sizes[c.Name]
	if !changed {
		size = SizeOf(&c.Resources)
	}
	return admitted(size)
}

// admitted is a size as the API server writes it: a request that is missing is the limit.
func admitted(s memory.Size) memory.Size {
	if s.Request == 0 {
		s.Request = s.Limit
	}
	return s
}

// SizeOf is the memory request and limit in the resources of a container or pod; 0: not set.
func SizeOf(r *corev1.ResourceRequirements) memory.Size {
	return memory.Size{Request: memory.FromQuantity(*r.Requests.Memory()), Limit: memory.FromQuantity(*r.Limits.Memory())}
}

// Total is what admission counts for a pod and what the pod takes of its node: what it asks for as a whole, else its
// containers together, with sizes instead of their own.
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

// Sidecar reports whether an init container is a native sidecar, which runs beside the others.
func Sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func together(pod *corev1.Pod, sizes map[string]memory.Size) memory.Size {
	return Together(pod, func(c *corev1.Container) memory.Size { return sizeOf(c, sizes) })
}

// Together sums up what the containers and native sidecars of a pod have, or more while an init container runs. A
// container without a limit adds nothing, as in Kubernetes.
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

// PodLeaves is what a pod that sets memory for all its containers together (spec.resources) leaves one of them: no
// limit may be above the pod's, and the requests together not above the pod's request. 0: the pod sets none;
// [Exhausted]: nothing is left.
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

// Containers yields the containers of a pod that can be sized, init containers first, and whether each is one.
// Ephemeral ones cannot, and each has a name of its own that is never seen again.
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

// Find finds a container and its status, which is nil before the kubelet has seen it.
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
