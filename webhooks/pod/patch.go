// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
)

// patch is a JSON patch (RFC 6902) as it grows.
type patch []operation

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// add adds a value, or replaces what is there.
func (p *patch) add(path string, value any) { *p = append(*p, operation{"add", path, value}) }

// addEmpty adds an object for others to go into.
func (p *patch) addEmpty(path string) { p.add(path, struct{}{}) }

func (p *patch) replace(path string, value any) { *p = append(*p, operation{"replace", path, value}) }

func (p *patch) remove(path string) { *p = append(*p, operation{Op: "remove", Path: path}) }

// changes are what becomes of a pod, as [inject.Plan] tells them.
type changes interface {
	Edit(container string) inject.Edit
	Whole() *memory.Size
	Annotation() (text string, changes bool)
}

// podPatch is the smallest JSON patch that makes changes to a pod, in the fields memfit writes: its annotation, and per
// container env, resizePolicy, and the memory request and limit, which the whole pod may have, too; empty when nothing
// differs. Fields of newer Kubernetes versions that our Go types do not know remain unchanged: list items that did not
// change are never rewritten. at is the path of the pod in its object.
func podPatch(pod sentPod, to changes, at string) ([]byte, error) {
	var p patch
	if text, changed := to.Annotation(); changed {
		p.annotation(pod.Annotations, text)
	}
	p.containers("/spec/initContainers/", pod.Spec.InitContainers, pod.initContainers, to)
	p.containers("/spec/containers/", pod.Spec.Containers, pod.containers, to)
	if whole := to.Whole(); whole != nil {
		have := ptr.Deref(pod.Spec.Resources, corev1.ResourceRequirements{})
		p.resources("/spec/resources", have, pod.Spec.Resources != nil, *whole)
	}
	if len(p) == 0 {
		return nil, nil
	}
	for i := range p {
		p[i].Path = at + p[i].Path
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	return text, nil
}

// annotation writes memfit's own annotation, or removes it when text is empty.
func (p *patch) annotation(have map[string]string, text string) {
	const path = "/metadata/annotations"
	own := path + "/" + pointer.Replace(v1alpha1.InjectedAnnotation)
	old, found := have[v1alpha1.InjectedAnnotation]
	switch {
	case text == "" && found:
		p.remove(own)
	case text != "" && text != old:
		if have == nil {
			p.addEmpty(path)
		}
		p.add(own, text) // add replaces what is there
	}
}

// containers writes the changes of each container of a list; resources reports of each whether it has that field.
func (p *patch) containers(path string, list []corev1.Container, resources []bool, to changes) {
	for i := range list {
		c, e, at := &list[i], to.Edit(list[i].Name), path+strconv.Itoa(i)
		if e.Env != nil {
			p.env(at+"/env", c.Env, e.Env)
		}
		if e.ResizePolicy != nil {
			p.resizePolicy(at+"/resizePolicy", c.ResizePolicy, *e.ResizePolicy)
		}
		if e.Memory != nil {
			p.resources(at+"/resources", c.Resources, resources[i], *e.Memory)
		}
	}
}

// env writes the variables of an edit: those that are new, removed or changed.
func (p *patch) env(path string, have []corev1.EnvVar, to []inject.Variable) {
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
		switch {
		case i >= len(have):
			p.add(at, &v.EnvVar)
		case v.EnvVar != have[i]:
			p.replace(at, &v.EnvVar)
		}
	}
}

// resizePolicy writes the restart policy for memory behind those for other resources.
func (p *patch) resizePolicy(
	path string, have []corev1.ContainerResizePolicy, to corev1.ResourceResizeRestartPolicy,
) {
	for i := range slices.Backward(have) {
		if have[i].ResourceName == corev1.ResourceMemory {
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

// resources writes the memory limit and request of a container or of the whole pod; memfit writes no other resource.
// present reports whether the field exists.
func (p *patch) resources(path string, have corev1.ResourceRequirements, present bool, to memory.Size) {
	for _, list := range []struct {
		path string
		have corev1.ResourceList
		to   memory.Bytes
	}{{path + "/limits", have.Limits, to.Limit}, {path + "/requests", have.Requests, to.Request}} {
		const key = "/" + string(corev1.ResourceMemory)
		old, had := list.have[corev1.ResourceMemory]
		switch {
		case had && memory.FromQuantity(old) == list.to, !had && list.to == 0:
		case list.to == 0:
			p.remove(list.path + key)
		default:
			if !present {
				p.addEmpty(path)
				present = true
			}
			if list.have == nil {
				p.addEmpty(list.path)
			}
			p.add(list.path+key, list.to.Exact())
		}
	}
}

// pointer makes a key a JSON pointer token (RFC 6901).
var pointer = strings.NewReplacer("~", "~0", "/", "~1")
