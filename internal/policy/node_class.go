// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/workloadkind"
)

// InNodeClass returns the resolution of a pod with the class of its node, for a resolution from metadata alone.
func (r *Resolver) InNodeClass(ctx context.Context, pod *corev1.Pod, resolved Resolution) Resolution {
	if resolved.Identity == nil {
		resolved.Ref, resolved.Identity = r.inNodeClass(ctx, pod, resolved.Ref, resolved.Profile)
	}
	return resolved
}

// inNodeClass returns the workload of a pod on its class of nodes, and its identity; nil: the profile has no classes.
func (r *Resolver) inNodeClass(
	ctx context.Context, pod *corev1.Pod, w memory.WorkloadRef, by *profile.Profile,
) (memory.WorkloadRef, *identity.Identity) {
	label := by.NodeClass()
	if label == "" || !workloadkind.PerNode(w.APIVersion, w.Kind) {
		return w.Whole(), nil
	}
	labels, _ := r.nodeLabels(ctx, identity.NodeOf(pod))
	return identity.InClass(w, label, labels[label])
}

// stayInClass keeps a pod in its class if its node is unknown, because a node may be deleted before its pods.
func (r *Resolver) stayInClass(ctx context.Context, pod metav1.Object, before memory.WorkloadRef, now *Resolution) {
	label := now.Profile.NodeClass()
	whole, read := pod.(*corev1.Pod)
	if before.NodeClass == "" || before.Whole() != now.Ref || label == "" || !read {
		return
	}
	if _, found := r.nodeLabels(ctx, identity.NodeOf(whole)); !found {
		now.Ref, now.Identity = identity.InClass(before, label, before.NodeClass)
	}
}

// nodeLabels returns the cached labels of a node; false if missing, or on error: the pod then has no class.
func (r *Resolver) nodeLabels(ctx context.Context, name string) (map[string]string, bool) {
	if name == "" {
		return nil, false
	}
	var node corev1.Node
	if err := r.reader.Get(ctx, client.ObjectKey{Name: name}, &node, client.UnsafeDisableDeepCopy); err != nil {
		return nil, false
	}
	return node.Labels, true
}
