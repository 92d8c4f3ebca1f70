// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	stdjson "encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/json"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/review"
)

// patch is the text of a JSON patch (RFC 6902) as it grows. It is written as text from the start: making operations of Go values and
// encoding those costs more than finding out what to change.
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

// appendText appends what stands between the quotes of a JSON string.
func appendText(out []byte, text string) []byte {
	start := len(out)
	for i := range len(text) {
		switch b := text[i]; {
		case b < ' ' || b >= 0x7f:
			quoted, err := stdjson.Marshal(text)
			if err != nil { // strings always marshal
				return out
			}
			return append(out[:start], quoted[1:len(quoted)-1]...)
		case b == '"' || b == '\\':
			out = append(out, '\\', b)
		default:
			out = append(out, b)
		}
	}
	return out
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

// skeleton is the pod as the API server sent it, as far as a patch needs to know what is there: a parent that is absent must be
// added before its child. Go types cannot tell "resources: {}" from no resources.
type skeleton struct {
	Metadata struct {
		Annotations map[string]any `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		InitContainers []containerSkeleton `json:"initContainers"`
		Containers     []containerSkeleton `json:"containers"`
	} `json:"spec"`
}

type containerSkeleton struct {
	Resources *struct {
		Limits   map[string]any `json:"limits"`
		Requests map[string]any `json:"requests"`
	} `json:"resources"`
}

// outlineOf reads an outline the usual way.
func outlineOf(raw []byte) (review.Outline, error) {
	var bones skeleton
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &bones); err != nil {
		return review.Outline{}, fmt.Errorf("reading the pod's outline: %w", err)
	}
	of := func(list []containerSkeleton) []review.Resources {
		out := make([]review.Resources, len(list))
		for i, c := range list {
			if c.Resources != nil {
				out[i] = review.Resources{Present: true, Limits: c.Resources.Limits != nil, Requests: c.Resources.Requests != nil}
			}
		}
		return out
	}
	return review.Outline{Annotations: bones.Metadata.Annotations != nil, InitContainers: of(bones.Spec.InitContainers), Containers: of(bones.Spec.Containers)}, nil
}

// changes are what becomes of a pod, as [inject.Plan] tells them.
type changes interface {
	Edit(container string) inject.Edit
	Annotation() (text string, changes bool)
}

// podPatch is the smallest JSON patch that makes changes to a pod, in the fields memfit writes: its annotation, and per container
// env, resizePolicy, and the memory request and limit; empty when nothing differs. Fields of newer Kubernetes versions that our Go
// types do not know stay as they are: list items that did not change are never rewritten. The text is written into the memory of out.
func podPatch(out []byte, outline review.Outline, pod *corev1.Pod, to changes) ([]byte, error) {
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
	return p.done(), nil
}

// annotation writes memfit's own annotation, or removes it when text is empty; present says whether there are any in the raw object.
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

func (p *patch) containers(path string, list []corev1.Container, outline []review.Resources, to changes) error {
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
			listPatch(p, at+"/env", c.Env, *e.Env, sameVariable, appendVariable)
		}
		if e.ResizePolicy != nil {
			listPatch(p, at+"/resizePolicy", c.ResizePolicy, *e.ResizePolicy, samePolicy, appendPolicy)
		}
		if e.Memory != nil {
			have := outline[i]
			p.memory(at+"/resources", "/limits", c.Resources.Limits, e.Memory.Limit, have.Limits, &have)
			p.memory(at+"/resources", "/requests", c.Resources.Requests, e.Memory.Request, have.Requests, &have)
		}
	}
	return nil
}

func sameVariable(a, b *corev1.EnvVar) bool {
	return a.Name == b.Name && a.Value == b.Value && (a.ValueFrom == b.ValueFrom || equality.Semantic.DeepEqual(a.ValueFrom, b.ValueFrom))
}

func samePolicy(a, b *corev1.ContainerResizePolicy) bool { return *a == *b }

// memory patches the memory of a resource list; memfit writes no other resource. present says whether the list exists in the raw
// object, outline whether its parent does.
func (p *patch) memory(path, list string, before corev1.ResourceList, after memory.Bytes, present bool, outline *review.Resources) {
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
		q := after.Quantity()
		p.addText(q.String(), path, list, key)
	}
}

// escape makes a key a JSON pointer token (RFC 6901).
func escape(key string) string { return pointer.Replace(key) }

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// listPatch edits a list item by item along a longest common subsequence: items that stay are not mentioned. What is equal at
// both ends is set aside first, so the quadratic table is small: memfit changes one item or adds at the end.
func listPatch[T any](p *patch, path string, before, after []T, same func(a, b *T) bool, appendItem func([]byte, *T) []byte) {
	if len(before) == 0 {
		if len(after) > 0 {
			p.begin("add", path)
			for i := range after {
				p.text = appendItem(append(p.text, separator(i)), &after[i])
			}
			p.text = append(p.text, "]}"...)
		}
		return
	}
	position := 0
	for len(before) > 0 && len(after) > 0 && same(&before[0], &after[0]) {
		before, after, position = before[1:], after[1:], position+1
	}
	for len(before) > 0 && len(after) > 0 && same(&before[len(before)-1], &after[len(after)-1]) {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	common := commonLengths(before, after, same)
	put := func(op string, item *T) {
		p.begin(op, path, "/", strconv.Itoa(position))
		p.text = append(appendItem(p.text, item), '}')
	}
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		switch {
		case i < len(before) && j < len(after) && same(&before[i], &after[j]):
			i, j, position = i+1, j+1, position+1
		case i < len(before) && j < len(after) && common.at(i+1, j+1) >= max(common.at(i+1, j), common.at(i, j+1)):
			put("replace", &after[j])
			i, j, position = i+1, j+1, position+1
		case j < len(after) && (i == len(before) || common.at(i, j+1) >= common.at(i+1, j)):
			put("add", &after[j])
			j, position = j+1, position+1
		default:
			p.remove(path, "/", strconv.Itoa(position))
			i++
		}
	}
}

// commonLengths has at (i, j) the length of the longest common subsequence of before[i:] and after[j:].
func commonLengths[T any](before, after []T, same func(a, b *T) bool) lengths {
	if len(before) == 0 || len(after) == 0 {
		return lengths{} // nobody asks
	}
	table := lengths{width: len(after) + 1, cells: make([]int32, (len(before)+1)*(len(after)+1))}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			longest := max(table.at(i+1, j), table.at(i, j+1))
			if same(&before[i], &after[j]) {
				longest = table.at(i+1, j+1) + 1
			}
			table.cells[i*table.width+j] = longest
		}
	}
	return table
}

// lengths is a table in one piece.
type lengths struct {
	width int
	cells []int32
}

func (l lengths) at(i, j int) int32 { return l.cells[i*l.width+j] }
