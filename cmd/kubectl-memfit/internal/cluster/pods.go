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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/memfit/memfit/internal/memory"
)

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	nodes      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	podMetrics = schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods"}
)

// NotServed reports whether a cluster does not serve a kind: memfit, or a metrics server, is not installed.
func NotServed(err error) bool { return apierrors.IsNotFound(err) }

// EachPod reads the pods of a namespace (of all with ""). take must not keep the pod: there may be a hundred thousand.
func (c *Cluster) EachPod(ctx context.Context, namespace string, take func(*corev1.Pod)) error {
	return podsError(eachPage(ctx, c.core.Pods(namespace).List, take), namespace)
}

// Node reads name and labels of a node.
func (c *Cluster) Node(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	node, err := c.metadata.Resource(nodes).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the labels of node %s: %w", name, err)
	}
	return node, nil
}

// EachNode reads the names and labels of all nodes.
func (c *Cluster) EachNode(ctx context.Context, take func(*metav1.PartialObjectMetadata)) error {
	if err := eachPage(ctx, c.metadata.Resource(nodes).List, take); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	return nil
}

// EachPodName reads names, labels and owners of the pods of a namespace (of all with "").
func (c *Cluster) EachPodName(ctx context.Context, namespace string, take func(*metav1.PartialObjectMetadata)) error {
	return podsError(eachPage(ctx, c.metadata.Resource(pods).Namespace(namespace).List, take), namespace)
}

func podsError(err error, namespace string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err) && namespace == "":
		return fmt.Errorf("you may not list pods in all namespaces: name one with -n: %w", err)
	}
	return fmt.Errorf("listing pods: %w", err)
}

// EachUse reads the working sets of containers from metrics.k8s.io.
func (c *Cluster) EachUse(
	ctx context.Context, namespace string, take func(namespace, pod, container string, used memory.Bytes),
) error {
	err := c.each(ctx, podMetrics, namespace, func(u *unstructured.Unstructured) {
		containers, _, _ := unstructured.NestedSlice(u.Object, "containers")
		for _, one := range containers {
			fields, _ := one.(map[string]any)
			name, _, _ := unstructured.NestedString(fields, "name")
			text, _, _ := unstructured.NestedString(fields, "usage", "memory")
			if amount, err := memory.ParseQuantity(text); err == nil {
				take(u.GetNamespace(), u.GetName(), name, memory.FromQuantity(amount))
			}
		}
	})
	if err != nil {
		return fmt.Errorf("listing pods of metrics.k8s.io: %w", err)
	}
	return nil
}
