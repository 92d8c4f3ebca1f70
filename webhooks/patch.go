// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/json"

	"github.com/memfit/memfit/internal/review"
)

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

// podPatch is the smallest JSON patch from before to after, in the fields memfit writes: annotations, and per container env,
// resizePolicy, and the memory request and limit. Fields of newer Kubernetes versions that our Go types do not know stay as they
// are: list items that did not change are never rewritten.
func podPatch(outline review.Outline, before, after *corev1.Pod) ([]jsonpatch.Operation, error) {
	ops := mapPatch("/metadata/annotations", before.Annotations, after.Annotations, outline.Annotations)
	init, err := containersPatch("/spec/initContainers", before.Spec.InitContainers, after.Spec.InitContainers, outline.InitContainers)
	if err != nil {
		return nil, err
	}
	app, err := containersPatch("/spec/containers", before.Spec.Containers, after.Spec.Containers, outline.Containers)
	if err != nil {
		return nil, err
	}
	return slices.Concat(ops, init, app), nil
}

func containersPatch(path string, before, after []corev1.Container, outline []review.Resources) ([]jsonpatch.Operation, error) {
	if len(before) != len(after) || len(before) != len(outline) {
		return nil, fmt.Errorf("%s has %d items before and %d after: memfit neither adds nor removes containers", path, len(before), len(after))
	}
	var ops []jsonpatch.Operation
	for i := range before {
		at := path + "/" + strconv.Itoa(i)
		ops = append(ops, listPatch(at+"/env", before[i].Env, after[i].Env, sameVariable)...)
		ops = append(ops, listPatch(at+"/resizePolicy", before[i].ResizePolicy, after[i].ResizePolicy, samePolicy)...)
		ops = append(ops, resourcesPatch(at+"/resources", before[i].Resources, after[i].Resources, outline[i])...)
	}
	return ops, nil
}

func sameVariable(a, b *corev1.EnvVar) bool {
	return a.Name == b.Name && a.Value == b.Value && (a.ValueFrom == b.ValueFrom || equality.Semantic.DeepEqual(a.ValueFrom, b.ValueFrom))
}

func samePolicy(a, b *corev1.ContainerResizePolicy) bool { return *a == *b }

func resourcesPatch(path string, before, after corev1.ResourceRequirements, outline review.Resources) []jsonpatch.Operation {
	limits := mapPatch(path+"/limits", memoryOf(before.Limits), memoryOf(after.Limits), outline.Limits)
	requests := mapPatch(path+"/requests", memoryOf(before.Requests), memoryOf(after.Requests), outline.Requests)
	if !outline.Present && len(limits)+len(requests) > 0 {
		limits = append([]jsonpatch.Operation{jsonpatch.NewOperation("add", path, map[string]any{})}, limits...)
	}
	return append(limits, requests...)
}

// memoryOf is the memory entry of a resource list as text; memfit writes no other resource.
func memoryOf(list corev1.ResourceList) map[string]string {
	q, found := list[corev1.ResourceMemory]
	if !found {
		return nil
	}
	return map[string]string{string(corev1.ResourceMemory): canonical(q)}
}

// canonical is the quantity as the API server would write it ("512Mi").
func canonical(q resource.Quantity) string { return q.String() }

// mapPatch patches single keys of a map of strings; present says whether the map exists in the raw object.
func mapPatch(path string, before, after map[string]string, present bool) []jsonpatch.Operation {
	var ops []jsonpatch.Operation
	for _, key := range slices.Sorted(maps.Keys(after)) {
		old, found := before[key]
		if found && old == after[key] {
			continue
		}
		if !present {
			ops = append(ops, jsonpatch.NewOperation("add", path, map[string]any{}))
			present = true
		}
		ops = append(ops, jsonpatch.NewOperation("add", path+"/"+escape(key), after[key])) // add replaces what is there
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[key]; !kept {
			ops = append(ops, jsonpatch.NewOperation("remove", path+"/"+escape(key), nil))
		}
	}
	return ops
}

// escape makes a key a JSON pointer token (RFC 6901).
func escape(key string) string { return pointer.Replace(key) }

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// listPatch edits a list item by item along a longest common subsequence: items that stay are not mentioned. What is equal at
// both ends is set aside first, so the quadratic table is small: memfit changes one item or adds at the end.
func listPatch[T any](path string, before, after []T, same func(a, b *T) bool) []jsonpatch.Operation {
	if len(before) == 0 {
		if len(after) == 0 {
			return nil
		}
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", path, after)}
	}
	position := 0
	for len(before) > 0 && len(after) > 0 && same(&before[0], &after[0]) {
		before, after, position = before[1:], after[1:], position+1
	}
	for len(before) > 0 && len(after) > 0 && same(&before[len(before)-1], &after[len(after)-1]) {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	common := commonLengths(before, after, same)
	var ops []jsonpatch.Operation
	at := func(i int) string { return path + "/" + strconv.Itoa(i) }
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		switch {
		case i < len(before) && j < len(after) && same(&before[i], &after[j]):
			i, j, position = i+1, j+1, position+1
		case i < len(before) && j < len(after) && common[i+1][j+1] >= max(common[i+1][j], common[i][j+1]):
			ops = append(ops, jsonpatch.NewOperation("replace", at(position), after[j]))
			i, j, position = i+1, j+1, position+1
		case j < len(after) && (i == len(before) || common[i][j+1] >= common[i+1][j]):
			ops = append(ops, jsonpatch.NewOperation("add", at(position), after[j]))
			j, position = j+1, position+1
		default:
			ops = append(ops, jsonpatch.NewOperation("remove", at(position), nil))
			i++
		}
	}
	return ops
}

// commonLengths[i][j] is the length of the longest common subsequence of before[i:] and after[j:].
func commonLengths[T any](before, after []T, same func(a, b *T) bool) [][]int {
	if len(before) == 0 && len(after) == 0 {
		return nil
	}
	table := make([][]int, len(before)+1)
	for i := range table {
		table[i] = make([]int, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if same(&before[i], &after[j]) {
				table[i][j] = table[i+1][j+1] + 1
			} else {
				table[i][j] = max(table[i+1][j], table[i][j+1])
			}
		}
	}
	return table
}
