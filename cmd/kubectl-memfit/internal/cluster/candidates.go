// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Candidates returns the workloads that can request a profile and that no controller owns. It omits kinds that the user
// is not permitted to list.
func (c *Cluster) Candidates(ctx context.Context) []report.Candidate {
	spaces := c.namespaces(ctx, c.Namespace)
	var all []report.Candidate
	for _, kind := range workloadkind.All() {
		if !kind.TakesProfile {
			continue
		}
		resource := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: kind.Resource}
		metadata := append(slices.Clone(kind.Template), "metadata")
		_ = c.each(ctx, resource, c.Namespace, func(u *unstructured.Unstructured) {
			if metav1.GetControllerOf(u) != nil {
				return
			}
			labels, _, _ := unstructured.NestedStringMap(u.Object, append(metadata, "labels")...)
			annotations, _, _ := unstructured.NestedStringMap(u.Object, append(metadata, "annotations")...)
			space := spaces[u.GetNamespace()]
			all = append(all, report.Candidate{Name: u.GetName(), Subject: profile.Subject{
				Namespace: u.GetNamespace(), WorkloadKind: u.GetKind(), WorkloadAnnotations: memfitOnly(u.GetAnnotations()),
				PodLabels: labels, PodAnnotations: memfitOnly(annotations),
				NamespaceLabels: space.Labels, NamespaceAnnotations: space.Annotations,
			}})
		})
	}
	return all
}

// namespaces returns the named namespace, or all namespaces for "", by name. It returns none without permission.
func (c *Cluster) namespaces(ctx context.Context, namespace string) map[string]metav1.PartialObjectMetadata {
	client := c.metadata.Resource(namespaces)
	found := map[string]metav1.PartialObjectMetadata{}
	if namespace != "" {
		if space, err := client.Get(ctx, namespace, metav1.GetOptions{}); err == nil {
			found[namespace] = *space
		}
		return found
	}
	if all, err := client.List(ctx, metav1.ListOptions{}); err == nil {
		for _, space := range all.Items {
			found[space.Name] = space
		}
	}
	return found
}
