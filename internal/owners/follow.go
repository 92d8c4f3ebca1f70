// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// follow follows owner references from the pod's controller to the workload whose pod template users edit.
func (r Resolver) follow(ctx context.Context, pod metav1.Object, ref *metav1.OwnerReference) (Owner, error) {
	namespace := pod.GetNamespace()
	visited := make([]*metav1.OwnerReference, 0, maxHops)
	for {
		k := kindOf(ref.APIVersion, ref.Kind)
		at := byReference(k, ref, namespace)
		if k == nil { // not a kind that memfit caches
			return at, nil
		}
		owner, err := r.cached(ctx, k, namespace, ref)
		if owner == nil && len(visited) == 0 {
			if workload, ok := r.inferred(ctx, pod, ref); ok {
				return workload, nil
			}
		}
		if owner == nil {
			owner, err = r.fromAPI(ctx, k, namespace, ref, err)
		}
		if owner == nil {
			if guess, ok := guessed(pod, ref); ok && len(visited) == 0 {
				at = guess
			}
			at.Gone = err == nil
			return at, err
		}
		at.Annotations = owner.Annotations
		visited = append(visited, ref)
		parent := metav1.GetControllerOfNoCopy(owner)
		if !k.Intermediate || parent == nil || !plausible(parent) || len(visited) == maxHops || circular(visited, parent) {
			return at, nil
		}
		ref = parent
	}
}

// circular reports whether the parent was visited before: owner references may form a ring.
func circular(visited []*metav1.OwnerReference, parent *metav1.OwnerReference) bool {
	return slices.ContainsFunc(visited, func(v *metav1.OwnerReference) bool {
		return v.Kind == parent.Kind && v.Name == parent.Name
	})
}

// cached reads an owner from the cache. The object is shared: do not modify it. nil without an error: the owner is
// missing, or another object has its name.
func (r Resolver) cached(
	ctx context.Context, k *workloadkind.Kind, namespace string, ref *metav1.OwnerReference,
) (*metav1.PartialObjectMetadata, error) {
	m := objectOf(k)
	err := r.Reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, m, client.UnsafeDisableDeepCopy)
	switch {
	case err == nil && sameUID(m, ref): // first: IsNotFound allocates even for nil, and for each pod
		return m, nil
	case err == nil, apierrors.IsNotFound(err):
		return nil, nil
	}
	return nil, fmt.Errorf("reading %s %s/%s from the cache: %w", ref.Kind, namespace, ref.Name, err)
}

// apiTimeout bounds one read from the API server; a pod of a built-in workload needs at most two, and a webhook has 2 s
// in total.
const apiTimeout = 500 * time.Millisecond

// fromAPI reads an owner from the API server after the cache returned cacheErr. nil without an error: the owner no
// longer exists. A deleted owner is read only once, because UIDs are never reused.
func (r Resolver) fromAPI(
	ctx context.Context, k *workloadkind.Kind, namespace string, ref *metav1.OwnerReference, cacheErr error,
) (*metav1.PartialObjectMetadata, error) {
	at := byReference(k, ref, namespace)
	if r.Gone.Has(at.Ref, at.UID) {
		return nil, nil
	}
	if r.APIReader == nil {
		if cacheErr != nil {
			return nil, cacheErr
		}
		return nil, fmt.Errorf("%w: %s %s/%s is not in the cache", ErrNotSeen, ref.Kind, namespace, ref.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	m := objectOf(k)
	err := r.APIReader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, m)
	switch {
	case apierrors.IsNotFound(err), err == nil && !sameUID(m, ref):
		r.Gone.Add(at.Ref, at.UID)
		return nil, nil
	case meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w: reading %s %s/%s from the API server: %w", ErrNotSeen, ref.Kind, namespace, ref.Name, err)
	}
	return m, nil
}

// sameUID reports whether m may be the referenced owner: an earlier or later object may have the same name.
func sameUID(m *metav1.PartialObjectMetadata, ref *metav1.OwnerReference) bool {
	return m.UID == ref.UID || m.UID == "" || ref.UID == ""
}

// byReference returns the owner from its reference alone. For a known kind, it replaces the API version by the one in
// the table of kinds, so that references to the same owner are equal.
func byReference(k *workloadkind.Kind, ref *metav1.OwnerReference, namespace string) Owner {
	w := memory.WorkloadRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: namespace, Name: ref.Name}
	if k != nil {
		w.APIVersion = k.APIVersion()
	}
	return Owner{Ref: w, UID: ref.UID}
}

// guessed returns the workload of a ReplicaSet that is not in the cache yet, as at the start of a rollout. It removes
// the hash in the pod's label from the ReplicaSet's name; false: the name does not end in that hash.
func guessed(pod metav1.Object, ref *metav1.OwnerReference) (Owner, bool) {
	if !workloadkind.Like(ref.APIVersion, ref.Kind).HasHash {
		return Owner{}, false
	}
	for _, k := range workloadkind.All() {
		hash := pod.GetLabels()[k.HashLabel]
		if name, ok := strings.CutSuffix(ref.Name, "-"+hash); k.HashLabel != "" && hash != "" && ok && name != "" {
			parent := metav1.OwnerReference{APIVersion: k.APIVersion(), Kind: k.Name, Name: name}
			return byReference(nil, &parent, pod.GetNamespace()), true
		}
	}
	return Owner{}, false
}

// inferred returns the result of guessed if the cache confirms that the workload exists, or if it does not cache the
// kind. A pod older than the workload belongs to an earlier workload of that name, whose ReplicaSet was deleted.
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
	o.UID, o.Annotations = m.UID, m.Annotations
	return o, true
}

// olderThan reports whether the pod is older than m; false for a pod that is being created.
func olderThan(pod metav1.Object, m *metav1.PartialObjectMetadata) bool {
	created := pod.GetCreationTimestamp()
	return !created.IsZero() && created.Before(&m.CreationTimestamp)
}
