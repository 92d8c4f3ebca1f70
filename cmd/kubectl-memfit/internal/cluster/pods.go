// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/memory"
)

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	nodes      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	podMetrics = schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods"}
)

// EachPod calls take with each pod of the namespace. take must not keep the pod: there may be a hundred thousand.
func (c *Cluster) EachPod(ctx context.Context, take func(*corev1.Pod)) error {
	return c.podsError(eachPage(ctx, c.core.Pods(c.Namespace).List, take))
}

// Node reads the name and labels of a node.
func (c *Cluster) Node(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	node, err := c.metadata.Resource(nodes).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the labels of node %s: %w", name, err)
	}
	return node, nil
}

// EachNode calls take with the name and labels of each node.
func (c *Cluster) EachNode(ctx context.Context, take func(*metav1.PartialObjectMetadata)) error {
	if err := eachPage(ctx, c.metadata.Resource(nodes).List, take); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	return nil
}

// eachPodMetadata calls take with the name, labels and owners of each pod of the namespace.
func (c *Cluster) eachPodMetadata(ctx context.Context, take func(*metav1.PartialObjectMetadata)) error {
	return c.podsError(eachPage(ctx, c.metadata.Resource(pods).Namespace(c.Namespace).List, take))
}

func (c *Cluster) podsError(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err) && c.Namespace == "":
		return fmt.Errorf("you may not list pods in all namespaces: name one with -n: %w", err)
	}
	return fmt.Errorf("listing pods: %w", err)
}

// EachUse calls take with the working set of each container, from metrics.k8s.io.
func (c *Cluster) EachUse(ctx context.Context, take func(namespace, pod, container string, used memory.Bytes)) error {
	err := c.each(ctx, podMetrics, c.Namespace, func(u *unstructured.Unstructured) {
		containers, _, _ := unstructured.NestedSlice(u.Object, "containers")
		for _, container := range containers {
			fields, _ := container.(map[string]any)
			name, _, _ := unstructured.NestedString(fields, "name")
			text, _, _ := unstructured.NestedString(fields, "usage", "memory")
			if quantity, err := memory.ParseQuantity(text); err == nil {
				take(u.GetNamespace(), u.GetName(), name, memory.FromQuantity(quantity))
			}
		}
	})
	if err != nil {
		return fmt.Errorf("listing pods.metrics.k8s.io: %w", err)
	}
	return nil
}

const (
	recommendations = "memoryrecommendations"
	snapshots       = "memorysnapshots"
	checkpoints     = "memorycheckpoints"
)

// EachSnapshot calls take with each snapshot of the namespace. take must not keep the snapshot: it may contain a
// map of pages, which is large.
func (c *Cluster) EachSnapshot(ctx context.Context, take func(*v1alpha1.MemorySnapshot)) error {
	return eachOf(ctx, c, snapshots, c.Namespace, take)
}

// ErrNoPod reports that a pod does not exist. [Cluster.Snapshot] and [Cluster.Choose] wrap it.
var ErrNoPod = errors.New("found no pod")

// Snapshot reads the snapshot of a pod. If the pod has none, the error names the node and how to find its agent.
func (c *Cluster) Snapshot(ctx context.Context, name string) (*v1alpha1.MemorySnapshot, error) {
	namespace := c.Namespace
	pod, err := c.core.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w %s in namespace %s; to list pods: kubectl -n %s get pods", ErrNoPod, name, namespace,
			namespace)
	case err != nil:
		return nil, fmt.Errorf("reading pod %s/%s: %w", namespace, name, err)
	}
	client := c.client.Resource(v1alpha1.GroupVersion.WithResource(snapshots)).Namespace(namespace)
	found, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if _, err = client.List(ctx, metav1.ListOptions{Limit: 1}); err == nil { // the kind exists
			return nil, noSnapshot(pod)
		}
	}
	if err != nil {
		return nil, helpful(err, snapshots, namespace)
	}
	var s v1alpha1.MemorySnapshot
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &s); err != nil {
		return nil, fmt.Errorf("reading MemorySnapshot %s/%s: %w", namespace, name, err)
	}
	if node := pod.Spec.NodeName; !s.IsOf(pod.UID, node) {
		return nil, fmt.Errorf("MemorySnapshot %s/%s is outdated: it is from node %q, or from an earlier pod with this "+
			"name; the agent of node %q replaces it within minutes", namespace, name, s.Status.NodeName, node)
	}
	return &s, nil
}

func noSnapshot(pod *corev1.Pod) error {
	if pod.Spec.NodeName == "" {
		return fmt.Errorf("pod %s/%s is not scheduled yet", pod.Namespace, pod.Name)
	}
	return fmt.Errorf("pod %s/%s on node %s has %s. The agent is optional and has its own manifests (config/agent); "+
		"to list the agents: kubectl get pods -A -o wide -l app.kubernetes.io/component=agent",
		pod.Namespace, pod.Name, pod.Spec.NodeName, report.NoSnapshot)
}
