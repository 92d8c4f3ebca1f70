// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/workloadkind"
)

// guessed names the owner of a ReplicaSet that is not in the cache yet: in the first moments of a rollout the webhook
// sees pods before the watch has brought their ReplicaSet.
func guessed(pod metav1.Object, ref *metav1.OwnerReference) (Owner, bool) {
	if !workloadkind.Like(ref.APIVersion, ref.Kind).HasHash {
		return Owner{}, false
	}
	labels := pod.GetLabels()
	for _, k := range workloadkind.All() {
		hash := labels[k.HashLabel]
		name, ok := strings.CutSuffix(ref.Name, "-"+hash)
		if k.HashLabel == "" || hash == "" || !ok || name == "" {
			continue
		}
		above := metav1.OwnerReference{APIVersion: k.APIVersion(), Kind: k.Name, Name: name}
		return byReference(nil, &above, pod.GetNamespace()), true
	}
	return Owner{}, false
}

// inferred is the guess, if the cache confirms that there is such a workload, or cannot know its kind. A pod that is
// older than the workload is a remainder of an earlier one of that name, whose ReplicaSet is gone already.
func (r Resolver) inferred(ctx context.Context, pod metav1.Object, ref *metav1.OwnerReference) (Owner, bool) {
	o, ok := guessed(pod, ref)
	if !ok {
		return Owner{}, false
	}
	k := kindOf(o.Ref.APIVersion, o.Ref.Kind)
	if k == nil {
		return o, true
	}
	m, err := r.cached(ctx, k, o.Ref.Namespace, &metav1.OwnerReference{Kind: o.Ref.Kind, Name: o.Ref.Name})
	if err != nil || m == nil || olderThan(pod, m) {
		return Owner{}, false
	}
	o.UID, o.Annotations, o.ByReference = m.UID, m.Annotations, false
	return o, true
}

// olderThan: a pod that is only being created has no age yet.
func olderThan(pod metav1.Object, m *metav1.PartialObjectMetadata) bool {
	created := pod.GetCreationTimestamp()
	return !created.IsZero() && created.Before(&m.CreationTimestamp)
}
