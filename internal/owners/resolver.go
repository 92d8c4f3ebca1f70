// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/memory"
)

// ErrNotSeen means that an owner is not in the cache (yet) and could not be read live, so that its annotations are unknown - which is
// not the same as none. The Owner returned with it is the best name there is.
var ErrNotSeen = errors.New("owner not seen yet")

// Resolver finds the workload of a pod. The zero value with a Reader works.
type Resolver struct {
	// Reader is a cache of metadata (PartialObjectMetadata) of [Kinds]. Required.
	Reader client.Reader
	// Live is an uncached reader, asked only for owners the cache does not have yet. Nil: never.
	Live client.Reader
	// LiveTimeout bounds each live read, besides ctx. Default 500ms: a webhook has 2s in all.
	LiveTimeout time.Duration
	// Also are further kinds that Reader has a metadata cache for, such as Argo's Rollout.
	Also []schema.GroupVersionKind
}

// Owner is the workload of a pod, with what is known about it.
type Owner struct {
	Ref memory.WorkloadRef
	// UID is that of the workload; empty when only its name could be inferred, and for pods that are not created yet.
	UID types.UID
	// Annotations are the workload's own; nil when it is known by reference only. Read-only: they belong to the cache.
	Annotations map[string]string
}

// Workload returns the workload of pod and that workload's own annotations. See [Resolver.Owner].
func (r Resolver) Workload(ctx context.Context, pod metav1.Object) (memory.WorkloadRef, map[string]string, error) {
	o, err := r.Owner(ctx, pod)
	return o.Ref, o.Annotations, err
}

// Owner returns the workload of pod, whose namespace must be set.
func (r Resolver) Owner(_ context.Context, pod metav1.Object) (Owner, error) {
	return Owner{
		Ref:         memory.WorkloadRef{APIVersion: "v1", Kind: "Pod", Namespace: pod.GetNamespace(), Name: pod.GetName()},
		UID:         pod.GetUID(),
		Annotations: pod.GetAnnotations(),
	}, nil
}
