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
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
)

const (
	recommendations = "memoryrecommendations"
	snapshots       = "memorysnapshots"
	checkpoints     = "memorycheckpoints"
)

// EachSnapshot reads the snapshots of a namespace (of all with ""). take must not keep the snapshot: there is one for
// each pod, and it may hold a map of pages.
func (c *Cluster) EachSnapshot(ctx context.Context, namespace string, take func(*v1alpha1.MemorySnapshot)) error {
	return eachOf(ctx, c, snapshots, namespace, take)
}

// ErrNoPod is wrapped by the error of [Cluster.Snapshot] if the pod does not exist.
var ErrNoPod = errors.New("found no pod")

// Snapshot reads the snapshot of a pod. Where it is missing, the error states whether the pod exists, and on which
// node the agent is missing.
func (c *Cluster) Snapshot(ctx context.Context, namespace, name string) (*v1alpha1.MemorySnapshot, error) {
	pod, err := c.core.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w %s in namespace %s: kubectl -n %s get pods", ErrNoPod, name, namespace, namespace)
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
		return nil, fmt.Errorf("MemorySnapshot %s/%s is from node %q, or from another pod of this name; the pod "+
			"runs on node %q, whose agent writes a snapshot within minutes", namespace, name, s.Status.NodeName, node)
	}
	return &s, nil
}

func noSnapshot(pod *corev1.Pod) error {
	if pod.Spec.NodeName == "" {
		return fmt.Errorf("pod %s/%s is not scheduled yet", pod.Namespace, pod.Name)
	}
	return fmt.Errorf("pod %s/%s on node %s has %s. The agent is optional and installed on its own (config/agent): "+
		"kubectl get pods -A -o wide -l app.kubernetes.io/component=agent", pod.Namespace, pod.Name, pod.Spec.NodeName,
		report.NoSnapshot)
}
