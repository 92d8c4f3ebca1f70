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

// finish compares the drawn-up container with the pod's own and keeps what differs.
func (c *ContainerPlan) finish(have *corev1.Container, w *working) {
	c.policy = w.resizeSet
	for i := range w.env {
		if w.env[i].Absent || i >= len(have.Env) || w.env[i].EnvVar != have.Env[i] {
			c.edit.Env = slices.Clone(w.env)
			break
		}
	}
	if w.resize != memoryPolicy(have.ResizePolicy) {
		c.edit.ResizePolicy = &w.resize
	}
	if w.memory != constraints.SizeOf(&have.Resources) {
		c.edit.Memory = &w.memory
	}
}

// Apply writes the plan into pod, which must be the pod it was made for, or a copy. Applying twice equals applying
// once. It writes env, resources and resizePolicy of the containers it manages, the memory
// of the whole pod, and the memfit.dev/injected annotation.
func (p Plan) Apply(pod *corev1.Pod) {
	if pod == nil {
		return
	}
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

// Edit is what a plan writes into one container; nil fields remain unchanged. What it refers to belongs to the plan.
type Edit struct {
	// Env are the variables of the container, each in its place, and new ones after them.
	Env []Variable
	// ResizePolicy is the restart policy of a resize of memory; empty: none.
	ResizePolicy *corev1.ResourceResizeRestartPolicy
	// Memory is the request and the limit; 0: unset.
	Memory *memory.Size
}

// Variable is an entry of env. One that memfit wrote is absent until it is written again, and keeps its place.
type Variable struct {
	corev1.EnvVar
	Absent bool
}

// Edit is what [Plan.Apply] writes into a container, for callers that write a patch instead. Empty when the plan
// leaves it alone.
func (p Plan) Edit(container string) Edit { return p.Container(container).edit }

// Whole is the size that [Plan.Apply] writes for the whole pod; nil: unchanged.
func (p Plan) Whole() *memory.Size { return p.whole }

// Annotation is what [Plan.Apply] makes of the annotation memfit.dev/injected, empty for none; changes is false when it
// stays.
func (p Plan) Annotation() (text string, changes bool) { return p.annotation, p.annotated }

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
		*list = with(*list, b)
	}
}

// container finds a container or init container by name.
func container(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// Changes reports whether Apply would change the pod it was made for.
func (p Plan) Changes() bool {
	return p.annotated || p.whole != nil || slices.ContainsFunc(p.containers, func(c ContainerPlan) bool {
		return c.edit.Env != nil || c.edit.ResizePolicy != nil || c.edit.Memory != nil
	})
}
