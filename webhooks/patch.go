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
	Env          []any `json:"env"`
	ResizePolicy []any `json:"resizePolicy"`
	Resources    *struct {
		Limits   map[string]any `json:"limits"`
		Requests map[string]any `json:"requests"`
	} `json:"resources"`
}

// podPatch is the smallest JSON patch from before to after, in the fields memfit writes: annotations, and per container env,
// resizePolicy, and the memory request and limit. It is made against raw, so that fields of newer Kubernetes versions that our Go
// types do not know stay as they are: list items that did not change are never rewritten.
func podPatch(raw []byte, before, after *corev1.Pod) ([]jsonpatch.Operation, error) {
	var bones skeleton
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &bones); err != nil {
		return nil, fmt.Errorf("reading the pod's outline: %w", err)
	}
	ops := mapPatch("/metadata/annotations", before.Annotations, after.Annotations, bones.Metadata.Annotations != nil)
	init, err := containersPatch("/spec/initContainers", before.Spec.InitContainers, after.Spec.InitContainers, bones.Spec.InitContainers)
	if err != nil {
		return nil, err
	}
	app, err := containersPatch("/spec/containers", before.Spec.Containers, after.Spec.Containers, bones.Spec.Containers)
	if err != nil {
		return nil, err
	}
	return slices.Concat(ops, init, app), nil
}

func containersPatch(path string, before, after []corev1.Container, bones []containerSkeleton) ([]jsonpatch.Operation, error) {
	if len(before) != len(after) || len(before) != len(bones) {
		return nil, fmt.Errorf("%s has %d items before and %d after: memfit neither adds nor removes containers", path, len(before), len(after))
	}
	var ops []jsonpatch.Operation
	for i := range before {
		at := path + "/" + strconv.Itoa(i)
		ops = append(ops, listPatch(at+"/env", before[i].Env, after[i].Env, len(bones[i].Env) > 0)...)
		ops = append(ops, listPatch(at+"/resizePolicy", before[i].ResizePolicy, after[i].ResizePolicy, len(bones[i].ResizePolicy) > 0)...)
		ops = append(ops, resourcesPatch(at+"/resources", before[i].Resources, after[i].Resources, bones[i])...)
	}
	return ops, nil
}

func resourcesPatch(path string, before, after corev1.ResourceRequirements, bones containerSkeleton) []jsonpatch.Operation {
	hasLimits := bones.Resources != nil && bones.Resources.Limits != nil
	hasRequests := bones.Resources != nil && bones.Resources.Requests != nil
	limits := mapPatch(path+"/limits", memoryOf(before.Limits), memoryOf(after.Limits), hasLimits)
	requests := mapPatch(path+"/requests", memoryOf(before.Requests), memoryOf(after.Requests), hasRequests)
	if bones.Resources == nil && len(limits)+len(requests) > 0 {
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
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// listPatch edits a list item by item along a longest common subsequence: items that stay are not mentioned. Lists here have a
// handful of items, rarely a hundred, so the quadratic table is cheap.
func listPatch[T any](path string, before, after []T, present bool) []jsonpatch.Operation {
	if len(before) == 0 && len(after) == 0 || equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	if len(before) == 0 || !present {
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", path, after)}
	}
	common := commonLengths(before, after)
	var ops []jsonpatch.Operation
	at := func(i int) string { return path + "/" + strconv.Itoa(i) }
	i, j, position := 0, 0, 0
	for i < len(before) || j < len(after) {
		switch {
		case i < len(before) && j < len(after) && equality.Semantic.DeepEqual(before[i], after[j]):
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
func commonLengths[T any](before, after []T) [][]int {
	table := make([][]int, len(before)+1)
	for i := range table {
		table[i] = make([]int, len(after)+1)
	}
	for i := range slices.Backward(before) {
		for j := range slices.Backward(after) {
			if equality.Semantic.DeepEqual(before[i], after[j]) {
				table[i][j] = table[i+1][j+1] + 1
			} else {
				table[i][j] = max(table[i+1][j], table[i][j+1])
			}
		}
	}
	return table
}
