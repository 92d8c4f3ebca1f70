// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package sweeper

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/owners"
	"github.com/memfit/memfit/internal/records"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Cached reads only the cache; false if it lacks the workload. The result is unknown for an unreadable kind.
func (w Sweeper) Cached(ctx context.Context, of memory.WorkloadRef) (records.Presence, bool) {
	if identity.Is(of) {
		return records.Presence{State: records.Exists, UID: identity.UID(of)}, true
	}
	if workloadkind.IsPod(of.APIVersion, of.Kind) { // pods are cached whole
		var pod corev1.Pod
		err := w.Get(ctx, workloadKey(of), &pod)
		return presenceOf(&pod), err == nil
	}
	m, readable := owners.Metadata(of)
	if !readable {
		return records.Presence{}, true
	}
	err := w.Get(ctx, workloadKey(of), m)
	return presenceOf(m), err == nil
}

// Confirm asks the API server, because a stale cache must not delete anything.
func (w Sweeper) Confirm(ctx context.Context, of memory.WorkloadRef) (records.Presence, error) {
	if identity.Is(of) {
		return records.Presence{State: records.Exists, UID: identity.UID(of)}, nil
	}
	m, readable := owners.Metadata(of)
	if workloadkind.IsPod(of.APIVersion, of.Kind) {
		m, readable = &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: of.APIVersion, Kind: of.Kind}}, true
	}
	if !readable {
		return records.Presence{}, nil
	}
	switch err := w.APIReader.Get(ctx, workloadKey(of), m); {
	case apierrors.IsNotFound(err):
		return records.Presence{State: records.Gone}, nil
	case err != nil:
		return records.Presence{}, fmt.Errorf("reading %s: %w", of, err)
	}
	return presenceOf(m), nil
}

func presenceOf(obj client.Object) records.Presence {
	p := records.Presence{State: records.Exists, UID: obj.GetUID()}
	if obj.GetDeletionTimestamp() != nil {
		p.State = records.Leaving
	}
	return p
}

func workloadKey(of memory.WorkloadRef) client.ObjectKey {
	return client.ObjectKey{Namespace: of.Namespace, Name: of.Name}
}

// PodCount returns the desired number of pods of a workload; 0: unknown. It asks the API server each time, because the
// cache has only metadata.
func (w Sweeper) PodCount(ctx context.Context, ref memory.WorkloadRef) (int, error) {
	kind, known := workloadkind.Of(ref.APIVersion, ref.Kind)
	if !known || len(kind.PodCount) == 0 {
		return 0, nil
	}
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(ref.APIVersion)
	object.SetKind(ref.Kind)
	err := w.APIReader.Get(ctx, workloadKey(ref), object)
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("reading how many pods %s is to have: %w", ref, err)
	}
	count, _, _ := unstructured.NestedInt64(object.Object, kind.PodCount...)
	return int(count), nil
}
