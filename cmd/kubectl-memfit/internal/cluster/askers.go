// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/workloadkind"
)

// asking are the resources in which people ask for a profile.
func asking() (all []schema.GroupVersionResource) {
	for _, k := range workloadkind.All() {
		if k.Asks {
			all = append(all, schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource})
		}
	}
	return all
}

// Askers are the workloads of a namespace (of all with "") that may ask for a profile. What may not be listed is left
// out: the recommendations are what was asked for.
func (c *Cluster) Askers(ctx context.Context, namespace string) []report.Asker {
	spaces := c.namespaceAnnotations(ctx, namespace)
	var all []report.Asker
	for _, resource := range asking() {
		client := c.client.Resource(resource).Namespace(namespace)
		pages := pager.New(
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
		)
		_ = pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
			if u, ok := object.(*unstructured.Unstructured); ok && metav1.GetControllerOf(u) == nil {
				all = append(all, asker(u, spaces[u.GetNamespace()]))
			}
			return nil
		})
	}
	return all
}

func asker(u *unstructured.Unstructured, onNamespace map[string]string) report.Asker {
	a := report.Asker{
		Namespace: u.GetNamespace(), Kind: u.GetKind(), Name: u.GetName(), Annotations: u.GetAnnotations(),
		NamespaceAnnotations: onNamespace,
	}
	if kind, known := workloadkind.Of(u.GetAPIVersion(), u.GetKind()); known {
		path := append(append([]string{}, kind.Template...), "metadata")
		a.PodLabels, _, _ = unstructured.NestedStringMap(u.Object, append(path, "labels")...)
		a.PodAnnotations, _, _ = unstructured.NestedStringMap(u.Object, append(path, "annotations")...)
	}
	return a
}

// namespaceAnnotations are those of one namespace, or of all; none where that may not be read.
func (c *Cluster) namespaceAnnotations(ctx context.Context, namespace string) map[string]map[string]string {
	client := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	found := map[string]map[string]string{}
	if namespace != "" {
		if one, err := client.Get(ctx, namespace, metav1.GetOptions{}); err == nil {
			found[namespace] = one.GetAnnotations()
		}
		return found
	}
	if all, err := client.List(ctx, metav1.ListOptions{}); err == nil {
		for i := range all.Items {
			found[all.Items[i].GetName()] = all.Items[i].GetAnnotations()
		}
	}
	return found
}
