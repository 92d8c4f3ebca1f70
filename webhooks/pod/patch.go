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

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/boundedjson"
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

// outline is what Go types cannot express of a pod as it was sent: whether a parent is present, or has to be added
// first.
type outline struct {
	annotations                bool
	whole                      resources // of the pod (spec.resources)
	initContainers, containers []resources
}

// resources of one container, or of a pod: whether the field is present, and its parts.
type resources struct{ present, limits, requests bool }

// skeleton is the pod as the API server sent it, as far as a patch needs to know what is there: a parent that is absent
// must be added before its child. Go types cannot tell "resources: {}" from no resources.
type skeleton struct {
	Metadata struct {
		Annotations map[string]json.RawMessage `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		containerSkeleton // the pod's own resources

		InitContainers []containerSkeleton `json:"initContainers"`
		Containers     []containerSkeleton `json:"containers"`
	} `json:"spec"`
}

type containerSkeleton struct {
	Resources *struct {
		Limits   map[string]json.RawMessage `json:"limits"` // only their presence matters
		Requests map[string]json.RawMessage `json:"requests"`
	} `json:"resources"`
}

func outlineOf(raw []byte) (outline, error) {
	var bones skeleton
	if err := boundedjson.Decode(raw, &bones); err != nil {
		return outline{}, fmt.Errorf("reading the pod's outline: %w", err)
	}
	of := func(list []containerSkeleton) []resources {
		out := make([]resources, len(list))
		for i := range list {
			out[i] = list[i].outline()
		}
		return out
	}
	return outline{
		annotations: bones.Metadata.Annotations != nil, whole: bones.Spec.outline(),
		initContainers: of(bones.Spec.InitContainers), containers: of(bones.Spec.Containers),
	}, nil
}

func (c *containerSkeleton) outline() resources {
	if c.Resources == nil {
		return resources{}
	}
	return resources{present: true, limits: c.Resources.Limits != nil, requests: c.Resources.Requests != nil}
}

// changes are what becomes of a pod, as [inject.Plan] tells them.
type changes interface {
	Edit(container string) inject.Edit
	Whole() *memory.Size
	Annotation() (text string, changes bool)
}

// podPatch is the smallest JSON patch that makes changes to a pod, in the fields memfit writes: its annotation, and per
// container env, resizePolicy, and the memory request and limit, which the whole pod may have, too; empty when nothing
// differs. Fields of newer Kubernetes versions that our Go types do not know remain unchanged: list items that did not
// change are never rewritten.
func podPatch(outline outline, pod *corev1.Pod, to changes) ([]byte, error) {
	var p patch
	if text, changed := to.Annotation(); changed {
		p.annotation(pod, text, outline.annotations)
	}
	if err := p.containers("/spec/initContainers/", pod.Spec.InitContainers, outline.initContainers, to); err != nil {
		return nil, err
	}
	if err := p.containers("/spec/containers/", pod.Spec.Containers, outline.containers, to); err != nil {
		return nil, err
	}
	if whole := to.Whole(); whole != nil {
		p.whole(pod, *whole, outline.whole)
	}
	if len(p) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	return text, nil
}

// whole writes the memory of the whole pod.
func (p *patch) whole(pod *corev1.Pod, to memory.Size, have resources) {
	var was corev1.ResourceRequirements
	if pod.Spec.Resources != nil {
		was = *pod.Spec.Resources
	}
	p.memory("/spec/resources", "/limits", was.Limits, to.Limit, have.limits, &have)
	p.memory("/spec/resources", "/requests", was.Requests, to.Request, have.requests, &have)
}

// annotation writes memfit's own annotation, or removes it when text is empty; present reports whether there are any
// in the raw object.
func (p *patch) annotation(pod *corev1.Pod, text string, present bool) {
	const path = "/metadata/annotations"
	own := path + "/" + pointer.Replace(v1alpha1.InjectedAnnotation)
	old, found := pod.Annotations[v1alpha1.InjectedAnnotation]
	switch {
	case text == "" && found:
		p.remove(own)
	case text != "" && text != old:
		if !present {
			p.addEmpty(path)
		}
		p.add(own, text) // add replaces what is there
	}
}

func (p *patch) containers(path string, list []corev1.Container, outline []resources, to changes) error {
	if len(list) != len(outline) {
		return fmt.Errorf("%s has %d items as Go types and %d in the request", path, len(list), len(outline))
	}
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
			have, at := outline[i], at+"/resources"
			p.memory(at, "/limits", c.Resources.Limits, e.Memory.Limit, have.limits, &have)
			p.memory(at, "/requests", c.Resources.Requests, e.Memory.Request, have.requests, &have)
		}
	}
	return nil
}

func sameVariable(a, b *corev1.EnvVar) bool {
	return a.Name == b.Name && a.Value == b.Value &&
		(a.ValueFrom == b.ValueFrom || equality.Semantic.DeepEqual(a.ValueFrom, b.ValueFrom))
}

// memory patches the memory of a resource list; memfit writes no other resource. present reports whether the list
// exists in the raw object, outline whether its parent does.
func (p *patch) memory(
	path, list string, before corev1.ResourceList, after memory.Bytes, present bool, outline *resources,
) {
	const key = "/" + string(corev1.ResourceMemory)
	old, had := before[corev1.ResourceMemory]
	switch {
	case had && memory.FromQuantity(old) == after, !had && after == 0:
	case after == 0:
		p.remove(path + list + key)
	default:
		if !outline.present {
			p.addEmpty(path)
			outline.present = true
		}
		if !present {
			p.addEmpty(path + list)
		}
		p.add(path+list+key, after.Exact())
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
