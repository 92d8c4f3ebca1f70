// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
		c, e := &list[i], to.Edit(list[i].Name)
		if e == (inject.Edit{}) {
			continue
		}
		at := path + strconv.Itoa(i)
		if e.Env != nil {
			listPatch(p, at+"/env", c.Env, *e.Env, variables)
		}
		if e.ResizePolicy != nil {
			listPatch(p, at+"/resizePolicy", c.ResizePolicy, *e.ResizePolicy, policies)
		}
		if e.Memory != nil {
			p.resources(at+"/resources", c.Resources, resources[i], *e.Memory)
		}
	}
}

func sameVariable(a, b *corev1.EnvVar) bool {
	return a.Name == b.Name && a.Value == b.Value &&
		(a.ValueFrom == b.ValueFrom || equality.Semantic.DeepEqual(a.ValueFrom, b.ValueFrom))
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

// list is how a patch compares the items of one kind of list.
type list[T any, K comparable] struct {
	same func(a, b *T) bool
	name func(*T) K
}

var (
	variables = list[corev1.EnvVar, string]{
		same: sameVariable, name: func(v *corev1.EnvVar) string { return v.Name },
	}
	policies = list[corev1.ContainerResizePolicy, corev1.ResourceName]{
		same: func(a, b *corev1.ContainerResizePolicy) bool { return *a == *b },
		name: func(v *corev1.ContainerResizePolicy) corev1.ResourceName { return v.ResourceName },
	}
)

// listPatch edits a list item by item: items that remain are not mentioned. It goes once over both lists, whose length
// any client can choose, and recognizes new, removed and changed items by their names. A list that was reordered, or
// has a name twice, is patched correctly, too, with more operations than necessary.
func listPatch[T any, K comparable](p *patch, path string, before, after []T, of list[T, K]) {
	if len(before) == 0 {
		if len(after) > 0 {
			p.add(path, after)
		}
		return
	}
	had, have := of.names(before), of.names(after)
	for position := 0; len(before) > 0 || len(after) > 0; {
		gone := len(before) > 0 && !have[of.name(&before[0])]
		added := len(after) > 0 && !had[of.name(&after[0])]
		named := len(before) > 0 && len(after) > 0 && of.name(&before[0]) == of.name(&after[0])
		at := path + "/" + strconv.Itoa(position)
		switch {
		case named || gone && added:
			if !of.same(&before[0], &after[0]) {
				p.replace(at, &after[0])
			}
			before, after, position = before[1:], after[1:], position+1
		case len(before) == 0 || added:
			p.add(at, &after[0])
			after, position = after[1:], position+1
		default:
			p.remove(at)
			before = before[1:]
		}
	}
}

func (of list[T, K]) names(items []T) map[K]bool {
	names := make(map[K]bool, len(items))
	for i := range items {
		names[of.name(&items[i])] = true
	}
	return names
}
