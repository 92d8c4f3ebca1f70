// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package export

// tree is a piece of YAML. sigs.k8s.io/yaml writes its keys in alphabetical order.
type tree = map[string]any

// manifest is the workload with its memory fields only: a strategic merge patch, and what server-side apply takes.
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

// keepingOrder adds the unsized containers before c by name only. kustomize puts the containers that a patch names
// first, and kubectl logs and kubectl exec default to the first container.
func (w *workload) keepingOrder(list []tree, c *container) []tree {
	for _, name := range w.names[c.list][len(list):c.index] {
		list = append(list, tree{"name": name})
	}
	return list
}

// wanted returns the container's resources with memory only. Quantities are canonical: nothing is rounded on the way to
// Git.
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
