// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	stdjson "encoding/json"
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

// patch is the text of a JSON patch (RFC 6902) as it grows. It is written as text from the start: making operations of
// Go values and encoding those costs more than finding out what to change.
type patch struct{ text []byte }

// begin begins an operation at a JSON pointer given in parts, up to its value.
func (p *patch) begin(op string, path ...string) {
	p.at(op, path)
	p.text = append(p.text, `,"value":`...)
}

// addText adds a string, or replaces what is there.
func (p *patch) addText(value string, path ...string) {
	p.begin("add", path...)
	p.text = append(appendText(append(p.text, '"'), value), `"}`...)
}

// addEmpty adds an object for others to go into.
func (p *patch) addEmpty(path ...string) {
	p.begin("add", path...)
	p.text = append(p.text, "{}}"...)
}

func (p *patch) remove(path ...string) {
	p.at("remove", path)
	p.text = append(p.text, '}')
}

func (p *patch) at(op string, path []string) {
	p.text = append(p.text, separator(len(p.text)))
	p.text = append(append(append(p.text, `{"op":"`...), op...), `","path":"`...)
	for _, part := range path {
		p.text = appendText(p.text, part)
	}
	p.text = append(p.text, '"')
}

func (p *patch) done() []byte {
	if len(p.text) == 0 {
		return p.text
	}
	return append(p.text, ']')
}

// separator is what comes before item i of an array.
func separator(i int) byte {
	if i == 0 {
		return '['
	}
	return ','
}

// appendText appends what stands between the quotes of a JSON string. What needs no escaping is copied as a whole: of
// the record, which is JSON itself, that is some ten bytes at a time.
func appendText(out []byte, text string) []byte {
	start, copied := len(out), 0
	for i := range len(text) {
		switch b := text[i]; {
		case b < ' ' || b >= 0x7f:
			quoted, err := stdjson.Marshal(text)
			if err != nil { // strings always marshal
				return out
			}
			return append(out[:start], quoted[1:len(quoted)-1]...)
		case b == '"' || b == '\\':
			out = append(append(out, text[copied:i]...), '\\')
			copied = i
		}
	}
	return append(out, text[copied:]...)
}

func appendVariable(out []byte, v *corev1.EnvVar) []byte {
	if v.ValueFrom != nil {
		text, err := stdjson.Marshal(v)
		if err != nil { // plain data always marshals
			return append(out, "null"...)
		}
		return append(out, text...)
	}
	out = appendText(append(out, `{"name":"`...), v.Name)
	if v.Value != "" {
		out = appendText(append(out, `","value":"`...), v.Value)
	}
	return append(out, `"}`...)
}

func appendPolicy(out []byte, v *corev1.ContainerResizePolicy) []byte {
	out = appendText(append(out, `{"resourceName":"`...), string(v.ResourceName))
	out = appendText(append(out, `","restartPolicy":"`...), string(v.RestartPolicy))
	return append(out, `"}`...)
}

// Outline is what Go types cannot tell of a pod as it was sent: whether a parent is there to patch, or has to be added
// first.
type Outline struct {
	Annotations                bool
	Whole                      Resources // of the pod (spec.resources)
	InitContainers, Containers []Resources
}

// Resources of one container, or of a pod: whether the field is there, and its parts.
type Resources struct{ Present, Limits, Requests bool }

// skeleton is the pod as the API server sent it, as far as a patch needs to know what is there: a parent that is absent
// must be added before its child. Go types cannot tell "resources: {}" from no resources.
type skeleton struct {
	Metadata struct {
		Annotations map[string]stdjson.RawMessage `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		containerSkeleton // the pod's own resources

		InitContainers []containerSkeleton `json:"initContainers"`
		Containers     []containerSkeleton `json:"containers"`
	} `json:"spec"`
}

type containerSkeleton struct {
	Resources *struct {
		Limits   map[string]stdjson.RawMessage `json:"limits"` // only their presence matters
		Requests map[string]stdjson.RawMessage `json:"requests"`
	} `json:"resources"`
}

// OutlineOf reads an outline the usual way.
func OutlineOf(raw []byte) (Outline, error) {
	var bones skeleton
	if err := boundedjson.Decode(raw, &bones); err != nil {
		return Outline{}, fmt.Errorf("reading the pod's outline: %w", err)
	}
	of := func(list []containerSkeleton) []Resources {
		out := make([]Resources, len(list))
		for i := range list {
			out[i] = list[i].outline()
		}
		return out
	}
	return Outline{
		Annotations: bones.Metadata.Annotations != nil, Whole: bones.Spec.outline(),
		InitContainers: of(bones.Spec.InitContainers), Containers: of(bones.Spec.Containers),
	}, nil
}

func (c *containerSkeleton) outline() Resources {
	if c.Resources == nil {
		return Resources{}
	}
	return Resources{Present: true, Limits: c.Resources.Limits != nil, Requests: c.Resources.Requests != nil}
}

// changes are what becomes of a pod, as [inject.Plan] tells them.
type changes interface {
	Edit(container string) inject.Edit
	Whole() *memory.Size
	Annotation() (text string, changes bool)
}

// podPatch is the smallest JSON patch that makes changes to a pod, in the fields memfit writes: its annotation, and per
// container env, resizePolicy, and the memory request and limit, which the whole pod may have, too; empty when nothing
// differs. Fields of newer Kubernetes
// versions that our Go types do not know stay as they are: list items that did not change are never rewritten. The text
// is written into the memory of out.
func podPatch(out []byte, outline Outline, pod *corev1.Pod, to changes) ([]byte, error) {
	p := patch{text: out[:0]}
	if text, changed := to.Annotation(); changed {
		p.annotation(pod, text, outline.Annotations)
	}
	if err := p.containers("/spec/initContainers/", pod.Spec.InitContainers, outline.InitContainers, to); err != nil {
		return nil, err
	}
	if err := p.containers("/spec/containers/", pod.Spec.Containers, outline.Containers, to); err != nil {
		return nil, err
	}
	if whole := to.Whole(); whole != nil {
		p.whole(pod, *whole, outline.Whole)
	}
	return p.done(), nil
}

// whole writes the memory of the whole pod.
func (p *patch) whole(pod *corev1.Pod, to memory.Size, have Resources) {
	var was corev1.ResourceRequirements
	if pod.Spec.Resources != nil {
		was = *pod.Spec.Resources
	}
	p.memory("/spec/resources", "/limits", was.Limits, to.Limit, have.Limits, &have)
	p.memory("/spec/resources", "/requests", was.Requests, to.Request, have.Requests, &have)
}

// annotation writes memfit's own annotation, or removes it when text is empty; present says whether there are any in
// the raw object.
func (p *patch) annotation(pod *corev1.Pod, text string, present bool) {
	const path = "/metadata/annotations"
	old, found := pod.Annotations[v1alpha1.InjectedAnnotation]
	switch {
	case text == "" && found:
		p.remove(path, "/", escape(v1alpha1.InjectedAnnotation))
	case text != "" && text != old:
		if !present {
			p.addEmpty(path)
		}
		p.addText(text, path, "/", escape(v1alpha1.InjectedAnnotation)) // add replaces what is there
	}
}

func (p *patch) containers(path string, list []corev1.Container, outline []Resources, to changes) error {
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
			p.memory(at, "/limits", c.Resources.Limits, e.Memory.Limit, have.Limits, &have)
			p.memory(at, "/requests", c.Resources.Requests, e.Memory.Request, have.Requests, &have)
		}
	}
	return nil
}

func sameVariable(a, b *corev1.EnvVar) bool {
	return a.Name == b.Name && a.Value == b.Value &&
		(a.ValueFrom == b.ValueFrom || equality.Semantic.DeepEqual(a.ValueFrom, b.ValueFrom))
}

// memory patches the memory of a resource list; memfit writes no other resource. present says whether the list exists
// in the raw object, outline whether its parent does.
func (p *patch) memory(
	path, list string, before corev1.ResourceList, after memory.Bytes, present bool, outline *Resources,
) {
	const key = "/" + string(corev1.ResourceMemory)
	old, had := before[corev1.ResourceMemory]
	switch {
	case had && memory.FromQuantity(old) == after, !had && after == 0:
	case after == 0:
		p.remove(path, list, key)
	default:
		if !outline.Present {
			p.addEmpty(path)
			outline.Present = true
		}
		if !present {
			p.addEmpty(path, list)
		}
		p.addText(after.Exact(), path, list, key)
	}
}

// escape makes a key a JSON pointer token (RFC 6901).
func escape(key string) string { return pointer.Replace(key) }

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// list is how a patch sees the items of one kind of list.
type list[T any, K comparable] struct {
	same   func(a, b *T) bool
	key    func(*T) K // items that are the same have the same key
	append func([]byte, *T) []byte
}

var (
	variables = list[corev1.EnvVar, [2]string]{
		same: sameVariable, key: func(v *corev1.EnvVar) [2]string { return [2]string{v.Name, v.Value} },
		append: appendVariable,
	}
	policies = list[corev1.ContainerResizePolicy, corev1.ContainerResizePolicy]{
		same:   func(a, b *corev1.ContainerResizePolicy) bool { return *a == *b },
		key:    func(v *corev1.ContainerResizePolicy) corev1.ContainerResizePolicy { return *v },
		append: appendPolicy,
	}
)

// listPatch edits a list item by item: items that stay are not mentioned. It goes once over both lists, whose length is
// anybody's to choose, and knows of each item only how often it is still to come: enough to tell a new item, one that
// is gone and one that was changed, which is all that a plan does. A list that was reordered is patched right, too,
// with more operations than it would take.
func listPatch[T any, K comparable](p *patch, path string, before, after []T, of list[T, K]) {
	if len(before) == 0 {
		p.addList(path, len(after), func(i int) { p.text = of.append(p.text, &after[i]) })
		return
	}
	position := 0
	for len(before) > 0 && len(after) > 0 && of.same(&before[0], &after[0]) {
		before, after, position = before[1:], after[1:], position+1
	}
	for len(before) > 0 && len(after) > 0 && of.same(&before[len(before)-1], &after[len(after)-1]) {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	put := func(op string, item *T) {
		p.begin(op, path, "/", strconv.Itoa(position))
		p.text = append(of.append(p.text, item), '}')
	}
	had, have := of.remaining(before), of.remaining(after)
	for len(had.items) > 0 || len(have.items) > 0 {
		gone := len(had.items) > 0 && !have.has(&had.items[0])
		added := len(have.items) > 0 && !had.has(&have.items[0])
		switch {
		case len(had.items) > 0 && len(have.items) > 0 && of.same(&had.items[0], &have.items[0]):
			had.next()
			have.next()
			position++
		case gone && added:
			put("replace", &have.items[0])
			had.next()
			have.next()
			position++
		case len(had.items) == 0 || added:
			put("add", &have.items[0])
			have.next()
			position++
		default:
			p.remove(path, "/", strconv.Itoa(position))
			had.next()
		}
	}
}

// addList adds a list of n items, unless it is empty.
func (p *patch) addList(path string, n int, appendItem func(i int)) {
	if n == 0 {
		return
	}
	p.begin("add", path)
	for i := range n {
		p.text = append(p.text, separator(i))
		appendItem(i)
	}
	p.text = append(p.text, "]}"...)
}

// shortList is how long a list may be to be looked through for each item: usual containers have fewer variables, and
// counting those in a map takes longer.
const shortList = 32

// remaining are the items of a list that are still to come.
type remaining[T any, K comparable] struct {
	items []T
	key   func(*T) K
	count map[K]int // how often each of them is there; nil: the list is short
}

func (of list[T, K]) remaining(items []T) remaining[T, K] {
	r := remaining[T, K]{items: items, key: of.key}
	if len(items) <= shortList {
		return r
	}
	r.count = make(map[K]int, len(items))
	for i := range items {
		r.count[r.key(&items[i])]++
	}
	return r
}

// has reports whether an item with the same key is still to come.
func (r *remaining[T, K]) has(item *T) bool {
	key := r.key(item)
	if r.count != nil {
		return r.count[key] > 0
	}
	for i := range r.items {
		if r.key(&r.items[i]) == key {
			return true
		}
	}
	return false
}

func (r *remaining[T, K]) next() {
	if r.count != nil {
		r.count[r.key(&r.items[0])]--
	}
	r.items = r.items[1:]
}
