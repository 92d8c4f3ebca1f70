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
	key  func(*T) K // equal for items that are the same
}

var (
	variables = list[corev1.EnvVar, [2]string]{
		same: sameVariable, key: func(v *corev1.EnvVar) [2]string { return [2]string{v.Name, v.Value} },
	}
	policies = list[corev1.ContainerResizePolicy, corev1.ContainerResizePolicy]{
		same: func(a, b *corev1.ContainerResizePolicy) bool { return *a == *b },
		key:  func(v *corev1.ContainerResizePolicy) corev1.ContainerResizePolicy { return *v },
	}
)

// listPatch edits a list item by item: items that remain are not mentioned. It goes once over both lists, whose length
// any client can choose, and knows of each item only how often it is still to come: enough to recognize a new item, a
// removed one and a changed one, which is all that a plan does. A list that was reordered is patched correctly, too,
// with more operations than necessary.
func listPatch[T any, K comparable](p *patch, path string, before, after []T, of list[T, K]) {
	if len(before) == 0 {
		if len(after) > 0 {
			p.add(path, after)
		}
		return
	}
	position := 0
	for len(before) > 0 && len(after) > 0 && of.same(&before[0], &after[0]) {
		before, after, position = before[1:], after[1:], position+1
	}
	for len(before) > 0 && len(after) > 0 && of.same(&before[len(before)-1], &after[len(after)-1]) {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	had, have := of.remaining(before), of.remaining(after)
	for len(had.items) > 0 || len(have.items) > 0 {
		at := path + "/" + strconv.Itoa(position)
		gone := len(had.items) > 0 && !have.has(&had.items[0])
		added := len(have.items) > 0 && !had.has(&have.items[0])
		switch {
		case len(had.items) > 0 && len(have.items) > 0 && of.same(&had.items[0], &have.items[0]):
			had.next()
			have.next()
			position++
		case gone && added:
			p.replace(at, &have.items[0])
			had.next()
			have.next()
			position++
		case len(had.items) == 0 || added:
			p.add(at, &have.items[0])
			have.next()
			position++
		default:
			p.remove(at)
			had.next()
		}
	}
}

// remaining are the items of a list that are still to come.
type remaining[T any, K comparable] struct {
	items []T
	key   func(*T) K
	count map[K]int // how often each of them is among the items
}

func (of list[T, K]) remaining(items []T) remaining[T, K] {
	r := remaining[T, K]{items: items, key: of.key, count: make(map[K]int, len(items))}
	for i := range items {
		r.count[r.key(&items[i])]++
	}
	return r
}

// has reports whether an item with the same key is still to come.
func (r *remaining[T, K]) has(item *T) bool { return r.count[r.key(item)] > 0 }

func (r *remaining[T, K]) next() {
	r.count[r.key(&r.items[0])]--
	r.items = r.items[1:]
}
