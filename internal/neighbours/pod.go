// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package neighbours

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/memory"
)

// sizeOf is what the container will ask for: what sizes say of it, else what it says itself. A missing request is the limit, as the
// API server writes it.
func sizeOf(c *corev1.Container, sizes map[string]Size) Size {
	size, changed := sizes[c.Name]
	if !changed {
		size = resources(&c.Resources)
	}
	if size.Request == 0 {
		size.Request = size.Limit
	}
	return size
}

func resources(r *corev1.ResourceRequirements) Size {
	return Size{Request: memory.FromQuantity(*r.Requests.Memory()), Limit: memory.FromQuantity(*r.Limits.Memory())}
}

// total is what admission counts for a pod: its containers and native sidecars together, or more while an init container runs; what
// the pod itself asks for, if it does, replaces that. A container without a limit adds nothing, as in Kubernetes.
func total(pod *corev1.Pod, sizes map[string]Size) Size {
	var running, starting Size
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		size := sizeOf(c, sizes)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			running = running.plus(size)
			starting = starting.most(running)
			continue
		}
		starting = starting.most(running.plus(size))
	}
	for i := range pod.Spec.Containers {
		running = running.plus(sizeOf(&pod.Spec.Containers[i], sizes))
	}
	sum := running.most(starting)
	if r := pod.Spec.Resources; r != nil {
		own := resources(r)
		if own.Request > 0 {
			sum.Request = own.Request
		}
		if own.Limit > 0 {
			sum.Limit = own.Limit
		}
	}
	return sum
}

func (s Size) plus(t Size) Size {
	return Size{Request: s.Request.Plus(t.Request), Limit: s.Limit.Plus(t.Limit)}
}

func (s Size) most(t Size) Size {
	return Size{Request: max(s.Request, t.Request), Limit: max(s.Limit, t.Limit)}
}
