// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
)

// tree is a piece of YAML. sigs.k8s.io/yaml writes its keys in alphabetical order.
type tree = map[string]any

// manifest returns the workload with its memory fields only, as a strategic merge patch or for server-side apply.
func (w *workload) manifest(o Options) tree {
	ref := w.rec.Status.Workload
	metadata := tree{"name": ref.Name}
	if !o.NoNamespace || o.Format != Kustomize {
		metadata["namespace"] = w.rec.Namespace
	}
	spec := tree{}
	for i := range w.sized {
		c := &w.sized[i]
		list, _ := spec[c.list].([]tree)
		if o.Format == Kustomize {
			list = w.keepingOrder(list, c)
		}
		spec[c.list] = append(list, tree{"name": c.name, "resources": c.wanted()})
	}
	out := tree{"apiVersion": ref.APIVersion, "kind": ref.Kind, "metadata": metadata}
	inner := out
	for _, key := range w.kind.Template {
		next := tree{}
		inner[key], inner = next, next
	}
	inner["spec"] = spec
	return out
}

// keepingOrder adds the names of the unsized containers before c. Otherwise kustomize would move c before them, and
// kubectl logs and kubectl exec default to the first container.
func (w *workload) keepingOrder(list []tree, c *container) []tree {
	for _, name := range w.names[c.list][len(list):c.index] {
		list = append(list, tree{"name": name})
	}
	return list
}

// wanted returns the recommended memory as the resources of the container. Nothing is rounded.
func (c *container) wanted() tree {
	resources := tree{}
	if q := c.rec.Recommended.Limit; q != nil {
		resources["limits"] = tree{"memory": q.String()}
	}
	if q := c.rec.Recommended.Request; q != nil {
		resources["requests"] = tree{"memory": q.String()}
	}
	return resources
}

// values returns the resources in the form that most charts accept.
func (w *workload) values() tree {
	out := tree{}
	for i := range w.sized {
		c := &w.sized[i]
		if c.main {
			out["resources"] = c.wanted()
			continue
		}
		out[c.name] = tree{"resources": c.wanted()}
	}
	return out
}

// operation is an operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// operations returns, for each container, a test of its name and the operations that set its memory.
func (w *workload) operations() []operation {
	var ops []operation
	for i := range w.sized {
		c := &w.sized[i]
		ops = append(ops, c.test)
		ops = append(ops, c.operations(c.at+"/"+c.field)...)
	}
	return ops
}

// operations returns the operations that set the memory at a JSON pointer. They never replace an
// object that may also have cpu.
func (c *container) operations(at string) []operation {
	if len(c.resources.Limits) == 0 && len(c.resources.Requests) == 0 && len(c.resources.Claims) == 0 {
		return []operation{{"add", at, c.wanted()}}
	}
	return append(
		set(at+"/limits", c.resources.Limits, c.rec.Recommended.Limit),
		set(at+"/requests", c.resources.Requests, c.rec.Recommended.Request)...)
}

// set returns the operation that sets memory in the limits or requests at a JSON pointer; none if want is nil.
func set(at string, have corev1.ResourceList, want *resource.Quantity) []operation {
	if want == nil {
		return nil
	}
	if len(have) == 0 {
		return []operation{{"add", at, tree{"memory": want.String()}}}
	}
	if _, found := have[corev1.ResourceMemory]; found {
		return []operation{{"replace", at + "/memory", want.String()}}
	}
	return []operation{{"add", at + "/memory", want.String()}}
}

// Priors returns, as YAML, the MemoryCheckpoint that takes what memfit observed about containers in their first two
// days to another cluster.
func Priors(namespace string, learned []byte) ([]byte, error) {
	var lines bytes.Buffer
	if err := json.Indent(&lines, learned, "", "  "); err != nil {
		return nil, fmt.Errorf("reading MemoryCheckpoint %s/%s: %w", namespace, v1alpha1.PriorsName, err)
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "MemoryCheckpoint",
		"metadata": map[string]any{
			"namespace": namespace, "name": v1alpha1.PriorsName,
			"annotations": map[string]string{v1alpha1.PriorsAnnotation: lines.String() + "\n"},
		},
	})
}
