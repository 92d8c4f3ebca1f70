// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
)

// finish stores the differences between the planned container and the pod's.
func (c *ContainerPlan) finish(have *corev1.Container, w *working) {
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

// Edit has a plan's changes to one container; nil fields remain unchanged. Callers must not modify its values.
type Edit struct {
	Env          []Variable                          // the variables of the container at their indexes, then new ones
	ResizePolicy *corev1.ResourceResizeRestartPolicy // the restart policy for a resize of memory; empty: none
	Memory       *memory.Size                        // the request and the limit; 0: unset
}

// Variable is an entry of env.
type Variable struct {
	corev1.EnvVar
	Absent bool // an earlier plan added the variable and this plan does not; the entry keeps the index for the patch
}

// Edit returns the plan's changes to a container; empty if unchanged.
func (p Plan) Edit(container string) Edit { return p.Container(container).edit }

// Changes reports whether the plan changes the pod it was made for.
func (p Plan) Changes() bool {
	return p.annotated || p.whole != nil || slices.ContainsFunc(p.containers, func(c ContainerPlan) bool {
		return c.edit.Env != nil || c.edit.ResizePolicy != nil || c.edit.Memory != nil
	})
}

// Patch is a JSON patch (RFC 6902).
type Patch []Operation

// Operation is one operation of a patch: "add" (which also replaces an object's member), "replace" or "remove".
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func (p *Patch) add(path string, value any) { *p = append(*p, Operation{"add", path, value}) }

func (p *Patch) remove(path string) { *p = append(*p, Operation{Op: "remove", Path: path}) }

// Patch returns the smallest patch that applies the plan to its pod; nil without changes. It writes the annotation
// memfit.dev/injected, env, resizePolicy, and memory requests and limits of containers and of the whole pod. It never
// rewrites unchanged list items, so that fields of newer Kubernetes versions remain.
func (p Plan) Patch(pod *corev1.Pod) Patch {
	var out Patch
	if p.annotated {
		out.annotation(pod.Annotations, p.annotation)
	}
	out.containers("/spec/initContainers/", pod.Spec.InitContainers, p)
	out.containers("/spec/containers/", pod.Spec.Containers, p)
	if p.whole != nil {
		have := pod.Spec.Resources
		if have == nil {
			have = &corev1.ResourceRequirements{}
		}
		out.resources("/spec/resources", have, *p.whole)
	}
	return out
}

// annotation writes memfit's own annotation, or removes it when text is empty.
func (p *Patch) annotation(have map[string]string, text string) {
	const path = "/metadata/annotations"
	own := path + "/" + token.Replace(v1alpha1.InjectedAnnotation)
	if text == "" {
		p.remove(own)
		return
	}
	if have == nil {
		p.add(path, struct{}{})
	}
	p.add(own, text)
}

// token escapes a key for a JSON pointer (RFC 6901).
var token = strings.NewReplacer("~", "~0", "/", "~1")

// containers writes the changes of each container of a list.
func (p *Patch) containers(path string, list []corev1.Container, plan Plan) {
	for i := range list {
		c, e, at := &list[i], plan.Edit(list[i].Name), path+strconv.Itoa(i)
		if e.Env != nil {
			p.env(at+"/env", c.Env, e.Env)
		}
		if e.ResizePolicy != nil {
			p.resizePolicy(at+"/resizePolicy", c.ResizePolicy, *e.ResizePolicy)
		}
		if e.Memory != nil {
			p.resources(at+"/resources", &c.Resources, *e.Memory)
		}
	}
}

// env writes the variables that are new, removed or changed.
func (p *Patch) env(path string, have []corev1.EnvVar, to []Variable) {
	if len(have) == 0 {
		all := make([]*corev1.EnvVar, len(to))
		for i := range to {
			all[i] = &to[i].EnvVar
		}
		p.add(path, all)
		return
	}
	place := 0
	for i := range to {
		v, at := &to[i], path+"/"+strconv.Itoa(place)
		if v.Absent {
			p.remove(at)
			continue
		}
		place++
		if i >= len(have) {
			p.add(at, &v.EnvVar)
			continue
		}
		withValue := have[i]
		withValue.Value = v.Value
		switch v.EnvVar {
		case have[i]:
		case withValue:
			p.add(at+"/value", v.Value)
		default:
			*p = append(*p, Operation{"replace", at, &v.EnvVar})
		}
	}
}

// resizePolicy replaces the restart policy for memory; an empty one removes it.
func (p *Patch) resizePolicy(
	path string, have []corev1.ContainerResizePolicy, to corev1.ResourceResizeRestartPolicy,
) {
	for i := range slices.Backward(have) {
		if ofMemory(have[i]) {
			p.remove(path + "/" + strconv.Itoa(i))
		}
	}
	own := corev1.ContainerResizePolicy{ResourceName: corev1.ResourceMemory, RestartPolicy: to}
	switch {
	case to == "":
	case len(have) == 0:
		p.add(path, []corev1.ContainerResizePolicy{own})
	default:
		p.add(path+"/-", own)
	}
}

// resources writes the memory limit and request of a container or of the whole pod. It never writes other resources.
func (p *Patch) resources(path string, have *corev1.ResourceRequirements, to memory.Size) {
	absent := have.Limits == nil && have.Requests == nil && have.Claims == nil // an empty list is in the pod's JSON
	for _, list := range []struct {
		path string
		have corev1.ResourceList
		to   memory.Bytes
	}{{path + "/limits", have.Limits, to.Limit}, {path + "/requests", have.Requests, to.Request}} {
		at := list.path + "/" + string(corev1.ResourceMemory)
		old, had := list.have[corev1.ResourceMemory]
		switch {
		case had && memory.FromQuantity(old) == list.to, !had && list.to == 0:
		case list.to == 0:
			p.remove(at)
		case len(list.have) > 0:
			p.add(at, list.to.Exact())
		default:
			if absent {
				p.add(path, struct{}{})
				absent = false
			}
			p.add(list.path, map[corev1.ResourceName]string{corev1.ResourceMemory: list.to.Exact()})
		}
	}
}
