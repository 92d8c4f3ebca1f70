// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/inventory"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Askers are the workloads of a namespace (of all with "") that may ask for a profile. What may not be listed is left
// out: the recommendations are what was asked for.
func (c *Cluster) Askers(ctx context.Context, namespace string) []report.Asker {
	spaces := c.namespaces(ctx, namespace)
	var all []report.Asker
	c.eachAsking(ctx, namespace, func(kind workloadkind.Kind, u *unstructured.Unstructured) {
		if metav1.GetControllerOf(u) != nil {
			return
		}
		metadata, space := append(slices.Clone(kind.Template), "metadata"), spaces[u.GetNamespace()]
		labels, _, _ := unstructured.NestedStringMap(u.Object, append(metadata, "labels")...)
		annotations, _, _ := unstructured.NestedStringMap(u.Object, append(metadata, "annotations")...)
		all = append(all, report.Asker{Name: u.GetName(), Subject: profile.Subject{
			Namespace: u.GetNamespace(), WorkloadKind: u.GetKind(), WorkloadAnnotations: ours(u.GetAnnotations()),
			PodLabels: labels, PodAnnotations: ours(annotations),
			NamespaceLabels: space.Labels, NamespaceAnnotations: space.Annotations,
		}})
	})
	return all
}

// eachAsking reads them in pages; what may not be listed is left out.
func (c *Cluster) eachAsking(
	ctx context.Context, namespace string, take func(workloadkind.Kind, *unstructured.Unstructured),
) {
	for _, k := range workloadkind.All() {
		if !k.Asks {
			continue
		}
		resource := schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
		_ = c.each(ctx, resource, namespace, func(u *unstructured.Unstructured) error {
			take(k, u)
			return nil
		})
	}
}

// Templates are the memory requests that owners wrote. Workloads that may not be listed have none.
func (c *Cluster) Templates(ctx context.Context, namespace string) inventory.Templates {
	all := inventory.Templates{}
	c.eachAsking(ctx, namespace, func(kind workloadkind.Kind, u *unstructured.Unstructured) {
		fields, _, _ := unstructured.NestedMap(u.Object, append(slices.Clone(kind.Template), "spec")...)
		var spec corev1.PodSpec
		if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &spec) == nil {
			ref := inventory.Ref{Namespace: u.GetNamespace(), Kind: u.GetKind(), Name: u.GetName()}
			all[ref] = inventory.RequestsOf(&spec)
		}
	})
	return all
}

// namespaces returns one namespace, or all with "", by name; none where they may not be read.
func (c *Cluster) namespaces(ctx context.Context, namespace string) map[string]metav1.PartialObjectMetadata {
	client := c.metadata.Resource(namespaces)
	found := map[string]metav1.PartialObjectMetadata{}
	if namespace != "" {
		if one, err := client.Get(ctx, namespace, metav1.GetOptions{}); err == nil {
			found[namespace] = *one
		}
		return found
	}
	if all, err := client.List(ctx, metav1.ListOptions{}); err == nil {
		for _, one := range all.Items {
			found[one.Name] = one
		}
	}
	return found
}
