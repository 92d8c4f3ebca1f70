// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"cmp"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/workloadkind"
)

// workload is an object with pods in a stream.
type workload struct {
	template *yaml.Node

	kind, namespace, name string
	// annotations are the object's own; pod is its template as a pod.
	annotations map[string]string
	pod         *corev1.Pod
}

// String is "Deployment shop/web".
func (w *workload) String() string { return fmt.Sprintf("%s %s/%s", w.kind, w.namespace, w.name) }

// objects returns the objects of a document: its mapping, or the items of a List.
func objects(root *yaml.Node) []*yaml.Node {
	if root == nil {
		return nil
	}
	top := root.Content[0]
	items := get(top, "items")
	if !strings.HasSuffix(text(top, "kind"), "List") || items == nil || items.Kind != yaml.SequenceNode {
		return []*yaml.Node{top}
	}
	out := make([]*yaml.Node, 0, len(items.Content))
	for _, item := range items.Content {
		if item.Kind == yaml.MappingNode {
			out = append(out, item)
		}
	}
	return out
}

func isWorkload(n *yaml.Node) bool {
	_, ok := workloadkind.Of(text(n, "apiVersion"), text(n, "kind"))
	return ok
}

// asWorkload reads an object that has pods; nil for every other kind.
func asWorkload(n *yaml.Node, namespace string) (*workload, error) {
	kind, ok := workloadkind.Of(text(n, "apiVersion"), text(n, "kind"))
	if !ok {
		return nil, nil //nolint:nilnil // other kinds are not an error
	}
	w := &workload{
		kind: text(n, "kind"), namespace: cmp.Or(text(n, "metadata", "namespace"), namespace),
		name: cmp.Or(text(n, "metadata", "name"), text(n, "metadata", "generateName")), pod: &corev1.Pod{},
	}
	if w.template = get(n, kind.Template...); w.template == nil || w.template.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s has no %s", w, strings.Join(kind.Template, "."))
	}
	if err := into(w.template, w.pod); err != nil {
		return nil, fmt.Errorf("%s is not a %s: %w", w, w.kind, err)
	}
	if a := get(n, "metadata", "annotations"); a != nil && len(kind.Template) > 0 {
		if err := into(a, &w.annotations); err != nil {
			return nil, fmt.Errorf("annotations of %s: %w", w, err)
		}
	}
	return w, nil
}
