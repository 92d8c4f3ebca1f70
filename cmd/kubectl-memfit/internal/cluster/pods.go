// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/inventory"
	"github.com/memfit/memfit/internal/memory"
)

var podMetrics = schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods"}

// NotServed tells whether a cluster does not know a kind at all: memfit, or a metrics server, is not installed.
func NotServed(err error) bool { return apierrors.IsNotFound(err) }

// Pods are those of a namespace, of all with "".
func (c *Cluster) Pods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	var out []corev1.Pod
	err := c.each(ctx, pods, namespace, func(u *unstructured.Unstructured) error {
		var pod corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &pod); err != nil {
			return err
		}
		out = append(out, pod)
		return nil
	})
	switch {
	case apierrors.IsForbidden(err) && namespace == "":
		return nil, fmt.Errorf("you may not list pods in all namespaces: name one with -n: %w", err)
	case err != nil:
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	return out, nil
}

// Used are the working sets that a metrics server tells.
func (c *Cluster) Used(ctx context.Context, namespace string) (map[inventory.Key]memory.Bytes, error) {
	used := map[inventory.Key]memory.Bytes{}
	err := c.each(ctx, podMetrics, namespace, func(u *unstructured.Unstructured) error {
		containers, _, _ := unstructured.NestedSlice(u.Object, "containers")
		for _, one := range containers {
			fields, _ := one.(map[string]any)
			name, _, _ := unstructured.NestedString(fields, "name")
			text, _, _ := unstructured.NestedString(fields, "usage", "memory")
			if amount, err := memory.ParseQuantity(text); err == nil {
				key := inventory.Key{Namespace: u.GetNamespace(), Pod: u.GetName(), Container: name}
				used[key] = memory.FromQuantity(amount)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing pods of metrics.k8s.io: %w", err)
	}
	return used, nil
}

// each reads objects in pages.
func (c *Cluster) each(
	ctx context.Context, resource schema.GroupVersionResource, namespace string,
	take func(*unstructured.Unstructured) error,
) error {
	client := c.client.Resource(resource).Namespace(namespace)
	pages := pager.New(
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
	)
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		return take(object.(*unstructured.Unstructured))
	})
}
