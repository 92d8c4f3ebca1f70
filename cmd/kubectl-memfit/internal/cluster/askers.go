// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/inventory"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Askers are the workloads of a namespace (of all with "") that may ask for a profile. What may not be listed is left
// out: the recommendations are what was asked for.
func (c *Cluster) Askers(ctx context.Context, namespace string) []report.Asker {
	spaces := c.namespaces(ctx, namespace)
	var all []report.Asker
	c.eachAsking(ctx, namespace, func(u *unstructured.Unstructured) {
		if metav1.GetControllerOf(u) == nil {
			all = append(all, asker(u, spaces[u.GetNamespace()]))
		}
	})
	return all
}

// eachAsking reads them in pages; what may not be listed is left out.
func (c *Cluster) eachAsking(ctx context.Context, namespace string, take func(*unstructured.Unstructured)) {
	for _, k := range workloadkind.All() {
		if !k.Asks {
			continue
		}
		resource := schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
		_ = c.each(ctx, resource, namespace, func(u *unstructured.Unstructured) error {
			take(u)
			return nil
		})
	}
}

// Templates are the memory requests that owners wrote. Workloads that may not be listed have none.
func (c *Cluster) Templates(ctx context.Context, namespace string) inventory.Templates {
	all := inventory.Templates{}
	c.eachAsking(ctx, namespace, func(u *unstructured.Unstructured) {
		kind, known := workloadkind.Of(u.GetAPIVersion(), u.GetKind())
		if !known || len(kind.Template) == 0 {
			return // a Pod, which a resize has changed
		}
		fields, _, _ := unstructured.NestedMap(u.Object, append(append([]string{}, kind.Template...), "spec")...)
		var spec corev1.PodSpec
		if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &spec) == nil {
			ref := inventory.Ref{Namespace: u.GetNamespace(), Kind: u.GetKind(), Name: u.GetName()}
			all[ref] = inventory.RequestsOf(&spec)
		}
	})
	return all
}

func asker(u *unstructured.Unstructured, of space) report.Asker {
	a := report.Asker{
		Namespace: u.GetNamespace(), Kind: u.GetKind(), Name: u.GetName(), Annotations: ours(u.GetAnnotations()),
		NamespaceAnnotations: of.annotations, NamespaceLabels: of.labels,
	}
	if kind, known := workloadkind.Of(u.GetAPIVersion(), u.GetKind()); known {
		path := append(append([]string{}, kind.Template...), "metadata")
		a.PodLabels, _, _ = unstructured.NestedStringMap(u.Object, append(path, "labels")...)
		annotations, _, _ := unstructured.NestedStringMap(u.Object, append(path, "annotations")...)
		a.PodAnnotations = ours(annotations)
	}
	return a
}

// space is what profiles match of a namespace.
type space struct{ annotations, labels map[string]string }

func spaceOf(n *corev1.Namespace) space { return space{ours(n.Annotations), n.Labels} }

// namespaces returns one namespace, or all; none where they may not be read.
func (c *Cluster) namespaces(ctx context.Context, namespace string) map[string]space {
	client := c.core.Namespaces()
	found := map[string]space{}
	if namespace != "" {
		if one, err := client.Get(ctx, namespace, metav1.GetOptions{}); err == nil {
			found[namespace] = spaceOf(one)
		}
		return found
	}
	if all, err := client.List(ctx, metav1.ListOptions{}); err == nil {
		for i := range all.Items {
			found[all.Items[i].Name] = spaceOf(&all.Items[i])
		}
	}
	return found
}
