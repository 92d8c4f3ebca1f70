// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// patch copies what a plan changed from a typed pod into the tree it was read from, so that comments, order and fields
// without a Go type remain.
func patch(template *yaml.Node, before, after *corev1.Pod) error {
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return fmt.Errorf("reading the pod: %w", err)
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if err != nil {
		return fmt.Errorf("reading the changed pod: %w", err)
	}
	return change(template, was, is)
}

// change brings the fields that differ into a mapping.
func change(n *yaml.Node, before, after map[string]any) error {
	for key := range before {
		if _, stays := after[key]; !stays {
			remove(n, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if reflect.DeepEqual(before[key], after[key]) {
			continue
		}
		if err := changeField(n, key, before[key], after[key]); err != nil {
			return err
		}
	}
	return nil
}

func changeField(n *yaml.Node, key string, before, after any) error {
	switch after := after.(type) {
	case map[string]any:
		fields, _ := before.(map[string]any)
		return change(mapping(n, key), fields, after)
	case []any:
		items, _ := before.([]any)
		return changeList(n, key, items, after)
	}
	return setValue(n, key, after)
}

// changeList brings a list to what it is after. An item with a name keeps its node, with its comments.
func changeList(n *yaml.Node, key string, before, after []any) error {
	old := get(n, key)
	if old == nil || old.Kind != yaml.SequenceNode || len(old.Content) != len(before) {
		return setValue(n, key, after)
	}
	// A name may be written several times; each item keeps the next node of its name.
	unused := map[string][]int{}
	for i := range before {
		name := nameOf(before[i])
		unused[name] = append(unused[name], i)
	}
	nodes := make([]*yaml.Node, 0, len(after))
	for _, item := range after {
		name := nameOf(item)
		if rest := unused[name]; name != "" && len(rest) > 0 {
			node := old.Content[rest[0]]
			unused[name] = rest[1:]
			if err := change(node, before[rest[0]].(map[string]any), item.(map[string]any)); err != nil {
				return err
			}
			nodes = append(nodes, node)
			continue
		}
		node := &yaml.Node{}
		if err := node.Encode(item); err != nil {
			return err
		}
		nodes = append(nodes, node)
	}
	old.Content = nodes
	return nil
}

// nameOf is the name of an item of a list; empty: it has none.
func nameOf(item any) string {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)
	return name
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

// setValue sets a value. A string is quoted where any YAML reader would take it for something else ("off", "80"). The
// comment beside an old value stays.
func setValue(n *yaml.Node, key string, value any) error {
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

func remove(n *yaml.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		}
	}
}
