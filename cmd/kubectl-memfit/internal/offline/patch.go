// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

// patch copies what a plan changed from a typed pod into the tree it was read from, so that comments, order and fields
// without a Go type remain.
func patch(template *yaml.Node, before, after *corev1.Pod) error {
	if value := after.Annotations[v1alpha1.InjectedAnnotation]; value != before.Annotations[v1alpha1.InjectedAnnotation] {
		metadata := mapping(template, "metadata")
		annotations := mapping(metadata, "annotations")
		if err := setScalar(annotations, v1alpha1.InjectedAnnotation, value, value == ""); err != nil {
			return err
		}
		if len(annotations.Content) == 0 {
			remove(metadata, "annotations")
		}
	}
	spec := mapping(template, "spec")
	for key, pair := range map[string][2][]corev1.Container{
		"containers":     {before.Spec.Containers, after.Spec.Containers},
		"initContainers": {before.Spec.InitContainers, after.Spec.InitContainers},
	} {
		list := get(spec, key)
		for i := range pair[1] {
			if equal(pair[0][i], pair[1][i]) {
				continue
			}
			if list == nil || len(list.Content) != len(pair[1]) {
				return fmt.Errorf("its %s cannot be distinguished: write them out", key)
			}
			if err := patchContainer(list.Content[i], &pair[0][i], &pair[1][i]); err != nil {
				return err
			}
		}
	}
	if after.Spec.Resources == nil { // no plan removes them
		return nil
	}
	was := before.Spec.Resources
	if was == nil {
		was = &corev1.ResourceRequirements{}
	}
	return patchResources(spec, was, after.Spec.Resources)
}

func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && slices.Equal(x, y)
}

func patchContainer(n *yaml.Node, before, after *corev1.Container) error {
	if !equal(before.Env, after.Env) {
		if err := patchEnv(n, before.Env, after.Env); err != nil {
			return err
		}
	}
	if !equal(before.ResizePolicy, after.ResizePolicy) {
		if err := setValue(n, "resizePolicy", after.ResizePolicy, len(after.ResizePolicy) == 0); err != nil {
			return err
		}
	}
	return patchResources(n, &before.Resources, &after.Resources)
}

// patchResources is about a container, or a pod as a whole.
func patchResources(n *yaml.Node, before, after *corev1.ResourceRequirements) error {
	for key, pair := range map[string][2]corev1.ResourceList{
		"limits": {before.Limits, after.Limits}, "requests": {before.Requests, after.Requests},
	} {
		if equal(pair[0], pair[1]) {
			continue
		}
		q, ok := pair[1][corev1.ResourceMemory]
		resources := mapping(n, "resources")
		list := mapping(resources, key)
		if err := setScalar(list, string(corev1.ResourceMemory), q.String(), !ok); err != nil {
			return err
		}
		if len(list.Content) == 0 {
			remove(resources, key)
		}
	}
	return nil
}

// patchEnv keeps the nodes of entries that stay, with their comments.
func patchEnv(n *yaml.Node, before, after []corev1.EnvVar) error {
	if len(after) == 0 {
		remove(n, "env")
		return nil
	}
	old := get(n, "env")
	if old == nil || old.Kind != yaml.SequenceNode || len(old.Content) != len(before) {
		return setValue(n, "env", after, false)
	}
	// A name may be written several times; each entry keeps the next node of its name.
	unused := make(map[string][]int, len(before))
	for i := range before {
		unused[before[i].Name] = append(unused[before[i].Name], i)
	}
	nodes := make([]*yaml.Node, 0, len(after))
	for i := range after {
		v := &after[i]
		rest := unused[v.Name]
		if len(rest) == 0 {
			node := &yaml.Node{}
			if err := encodeJSON(node, v); err != nil {
				return err
			}
			nodes = append(nodes, node)
			continue
		}
		unused[v.Name] = rest[1:]
		node := old.Content[rest[0]]
		if !equal(before[rest[0]], v) {
			if err := setScalar(node, "value", v.Value, false); err != nil {
				return err
			}
		}
		nodes = append(nodes, node)
	}
	old.Content = nodes
	return nil
}

// mapping is the mapping at key, made when it is not there.
func mapping(n *yaml.Node, key string) *yaml.Node {
	if m := get(n, key); m != nil && m.Kind == yaml.MappingNode {
		return m
	}
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	set(n, key, m)
	return m
}

func set(n *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = value
			return
		}
	}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
}

// setScalar sets a string, quoted where any YAML reader would take it for something else ("off", "80"). The comment
// beside an old value stays.
func setScalar(n *yaml.Node, key, value string, empty bool) error {
	if empty {
		remove(n, key)
		return nil
	}
	node := &yaml.Node{}
	if err := node.Encode(value); err != nil {
		return err
	}
	if old := get(n, key); old != nil {
		node.LineComment, node.HeadComment, node.FootComment = old.LineComment, old.HeadComment, old.FootComment
	}
	set(n, key, node)
	return nil
}

func setValue(n *yaml.Node, key string, value any, empty bool) error {
	if empty {
		remove(n, key)
		return nil
	}
	node := &yaml.Node{}
	if err := encodeJSON(node, value); err != nil {
		return err
	}
	set(n, key, node)
	return nil
}

// encodeJSON writes a Kubernetes type into a node, under its JSON names and in the order of its fields.
func encodeJSON(node *yaml.Node, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var doc yaml.Node // JSON is YAML
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return err
	}
	*node = *doc.Content[0]
	return block(node)
}

// block turns JSON's way of writing into the usual one.
func block(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		return n.Encode(n.Value)
	}
	n.Style = 0
	for _, c := range n.Content {
		if err := block(c); err != nil {
			return err
		}
	}
	return nil
}

func remove(n *yaml.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		}
	}
}
