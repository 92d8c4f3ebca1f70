// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/memfit/memfit/internal/inject"
)

// patch applies the patch of a pod to the tree that the pod was read from, so that comments, order and fields without a
// Go type remain. It removes lists and objects that become empty.
func patch(pod *yaml.Node, operations inject.Patch) error {
	for _, o := range operations {
		if err := apply(pod, o); err != nil {
			return err
		}
	}
	for _, o := range operations {
		if o.Op != "remove" {
			continue
		}
		path := tokens(o.Path)
		parent, key := at(pod, path[:len(path)-2]), path[len(path)-2]
		if left := child(parent, key); left != nil && len(left.Content) == 0 {
			remove(parent, key)
		}
	}
	return nil
}

// tokens returns the keys and indexes of a JSON pointer.
func tokens(path string) []string {
	all := strings.Split(path, "/")[1:]
	for i := range all {
		all[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(all[i])
	}
	return all
}

// at returns the node at a path below n. Missing or null members on the way become mappings.
func at(n *yaml.Node, path []string) *yaml.Node {
	for _, token := range path {
		next := child(n, token)
		if next == nil {
			next = &yaml.Node{}
			set(n, token, next)
		}
		if next.Kind != yaml.MappingNode && next.Kind != yaml.SequenceNode {
			next.Kind, next.Tag, next.Value, next.Style = yaml.MappingNode, "!!map", "", 0
		}
		n = next
	}
	return n
}

// child returns a member of a mapping or an item of a list; nil: not found.
func child(n *yaml.Node, token string) *yaml.Node {
	if n.Kind != yaml.SequenceNode {
		return get(n, token)
	}
	if i, err := strconv.Atoi(token); err == nil && i < len(n.Content) {
		return n.Content[i]
	}
	return nil
}

func apply(pod *yaml.Node, o inject.Operation) error {
	path := tokens(o.Path)
	if _, empty := o.Value.(struct{}); empty { // an empty mapping
		at(pod, path)
		return nil
	}
	parent, last := at(pod, path[:len(path)-1]), path[len(path)-1]
	list := parent.Kind == yaml.SequenceNode
	i, err := strconv.Atoi(last)
	if err != nil { // "-" is the end of a list
		i = len(parent.Content)
	}
	switch {
	case o.Op == "remove" && list:
		parent.Content = slices.Delete(parent.Content, i, i+1)
		return nil
	case o.Op == "remove":
		remove(parent, last)
		return nil
	}
	node, err := nodeOf(o.Value)
	switch {
	case err != nil:
		return err
	case !list:
		set(parent, last, node)
	case o.Op == "replace":
		parent.Content[i] = node
	default:
		parent.Content = slices.Insert(parent.Content, i, node)
	}
	return nil
}

// nodeOf returns the node of a Kubernetes value. It quotes text that YAML would read as another type ("off", "80").
func nodeOf(value any) (*yaml.Node, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	node := &yaml.Node{}
	return node, node.Encode(plain)
}

// set sets a member. It keeps the comments of an old value.
func set(n *yaml.Node, key string, value *yaml.Node) {
	if old := get(n, key); old != nil {
		value.LineComment, value.HeadComment, value.FootComment = old.LineComment, old.HeadComment, old.FootComment
		*old = *value
		return
	}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
}

func remove(n *yaml.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		}
	}
}
