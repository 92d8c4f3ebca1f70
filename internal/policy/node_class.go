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
)

// InNodeClass adds the class of a pod's node to a resolution that was made from the pod's metadata alone.
func (r *Resolver) InNodeClass(ctx context.Context, pod *corev1.Pod, resolved Resolution) Resolution {
	if label := resolved.Profile.NodeClass(); label != "" && resolved.Identity == nil {
		labels, _ := r.nodeLabels(ctx, identity.NodeOf(pod))
		resolved.Ref, resolved.Identity = identity.InClass(resolved.Ref, label, labels[label])
	}
	return resolved
}

// stayInClass keeps a pod in its class if its node is unknown, because a node may be deleted before its pods.
func (r *Resolver) stayInClass(ctx context.Context, pod metav1.Object, before memory.WorkloadRef, now *Resolution) {
	label := now.Profile.NodeClass()
	full, isPod := pod.(*corev1.Pod)
	if before.NodeClass == "" || before.Whole() != now.Ref || label == "" || !isPod {
		return
	}
	if _, found := r.nodeLabels(ctx, identity.NodeOf(full)); !found {
		now.Ref, now.Identity = identity.InClass(before, label, before.NodeClass)
	}
}

// nodeLabels returns the cached labels of a node; false: unavailable, and the pod has no class.
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
