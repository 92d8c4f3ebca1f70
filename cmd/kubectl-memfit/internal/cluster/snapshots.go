// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

const (
	recommendations = "memoryrecommendations"
	snapshots       = "memorysnapshots"
)

// EachSnapshot reads the snapshots of a namespace, of all with "". take must not keep the snapshot: there is one for
// each pod, and it may hold a map of pages.
func (c *Cluster) EachSnapshot(ctx context.Context, namespace string, take func(*v1alpha1.MemorySnapshot)) error {
	return eachOf(ctx, c, snapshots, namespace, take)
}

// ErrNoPod is in the error of [Cluster.Snapshot] where the pod does not exist.
var ErrNoPod = errors.New("found no pod")

// Snapshot reads the snapshot of a pod. Where it is missing, the error states whether the pod exists, and on which
// node the agent is missing.
func (c *Cluster) Snapshot(ctx context.Context, namespace, pod string) (*v1alpha1.MemorySnapshot, error) {
	found, err := c.client.Resource(v1alpha1.GroupVersion.WithResource(snapshots)).Namespace(namespace).
		Get(ctx, pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, c.noSnapshot(ctx, namespace, pod)
	}
	if err != nil {
		return nil, helpful(err, snapshots, namespace)
	}
	var s v1alpha1.MemorySnapshot
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &s); err != nil {
		return nil, fmt.Errorf("reading MemorySnapshot %s/%s: %w", namespace, pod, err)
	}
	if err := c.genuine(ctx, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// genuine returns an error where a snapshot is not of the pod that has its name, or another node's agent wrote it.
func (c *Cluster) genuine(ctx context.Context, s *v1alpha1.MemorySnapshot) error {
	pod, err := c.core.Pods(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the pod of MemorySnapshot %s/%s: %w", s.Namespace, s.Name, err)
	}
	if node := pod.Spec.NodeName; !s.IsOf(pod.UID, node) {
		return fmt.Errorf("MemorySnapshot %s/%s is from node %q, or from another pod of this name; the pod "+
			"runs on node %q, whose agent writes a snapshot within minutes", s.Namespace, s.Name, s.Status.NodeName, node)
	}
	return nil
}

// noSnapshot returns why a snapshot is missing: the kind, the pod or the agent is.
func (c *Cluster) noSnapshot(ctx context.Context, namespace, name string) error {
	if _, err := c.client.Resource(v1alpha1.GroupVersion.WithResource(snapshots)).Namespace(namespace).
		List(ctx, metav1.ListOptions{Limit: 1}); apierrors.IsNotFound(err) {
		return helpful(err, snapshots, namespace)
	}
	pod, err := c.core.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w %s in namespace %s: kubectl -n %s get pods", ErrNoPod, name, namespace, namespace)
	case err != nil:
		return fmt.Errorf("pod %s/%s has no MemorySnapshot, and reading the pod failed: %w", namespace, name, err)
	}
	node := pod.Spec.NodeName
	if node == "" {
		return errors.New("pod " + namespace + "/" + name + " is not scheduled yet")
	}
	return fmt.Errorf("pod %s/%s on node %s has %s. The agent is optional and installed on its own (config/agent): "+
		"kubectl get pods -A -o wide -l app.kubernetes.io/component=agent", namespace, name, node, report.NoSnapshot)
}
