// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
)

// Apply carries the plan out on a typed pod, which is what its patch must come to: the two are written independently.
func (p Plan) Apply(pod *corev1.Pod) {
	for i := range p.containers {
		if have := container(pod, p.containers[i].name); have != nil {
			p.containers[i].edit.apply(have)
		}
	}
	if p.whole != nil {
		r := corev1.ResourceRequirements{}
		if pod.Spec.Resources != nil {
			r = *pod.Spec.Resources
		}
		setMemory(&r.Limits, p.whole.Limit)
		setMemory(&r.Requests, p.whole.Request)
		pod.Spec.Resources = &r
	}
	if !p.annotated {
		return
	}
	if p.annotation == "" {
		delete(pod.Annotations, v1alpha1.InjectedAnnotation)
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = make(map[string]string, 1)
	}
	pod.Annotations[v1alpha1.InjectedAnnotation] = p.annotation
}

func (e Edit) apply(have *corev1.Container) {
	if e.Env != nil {
		have.Env = nil
		for _, v := range e.Env {
			if !v.Absent {
				have.Env = append(have.Env, v.EnvVar)
			}
		}
	}
	if e.ResizePolicy != nil {
		have.ResizePolicy = withPolicy(have.ResizePolicy, *e.ResizePolicy)
	}
	if e.Memory != nil {
		setMemory(&have.Resources.Limits, e.Memory.Limit)
		setMemory(&have.Resources.Requests, e.Memory.Request)
	}
}

func setMemory(list *corev1.ResourceList, b memory.Bytes) {
	if memory.FromQuantity(*list.Memory()) != b {
		*list = withMemory(*list, b)
	}
}

// withPolicy is a list with another policy for memory, at its end; nil when nothing is left.
func withPolicy(
	list []corev1.ContainerResizePolicy, memory corev1.ResourceResizeRestartPolicy,
) []corev1.ContainerResizePolicy {
	out := slices.DeleteFunc(slices.Clone(list), ofMemory)
	if memory != "" {
		out = append(out, corev1.ContainerResizePolicy{ResourceName: corev1.ResourceMemory, RestartPolicy: memory})
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func container(pod *corev1.Pod, name string) *corev1.Container {
	c, _ := constraints.Find(pod, name)
	return c
}
