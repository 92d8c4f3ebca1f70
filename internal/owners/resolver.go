// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package owners finds the workload a pod belongs to: Pod -> ReplicaSet -> Deployment, Job -> CronJob, any other
// controller by reference.
//
// It makes at most a few reads of a metadata-only cache per pod and needs no index. It never starts an informer for a
// kind outside [Objects] (asking a controller-runtime cache for a kind that may not be listed blocks until the
// deadline), and it ends for any owner references. It only uses the readers it is given; [Resolver.APIReader] is asked
// only where the cache lags.
package owners

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/memory"
)

// ErrNotSeen means that an owner is not in the cache (yet) and could not be read from the API server, so that its
// annotations are unknown - which is not the same as none. The Owner returned with it has the best name there is.
var ErrNotSeen = errors.New("owner not seen yet")

// maxHops is how many owners are followed. Two are the longest chain Kubernetes makes; the rest is for operators that
// stack.
const maxHops = 4

// Resolver finds the workload of a pod. The zero value with a Reader works.
type Resolver struct {
	// Reader is a cache of metadata (PartialObjectMetadata) of [Objects]. Required.
	Reader client.Reader
	// APIReader is uncached, and asked only for owners that the cache does not have, as in the first moments of a rollout.
	// Nil: never. Its rest.Config should have QPS -1, as controller-runtime's own has: with client-go's default of 5 a
	// second, the pods of one rollout wait for each other until apiTimeout (seen: 10 pods, the last after 430 ms).
	APIReader client.Reader
	// Gone are owners that no longer exist; APIReader is not asked for them again. Nil: none is remembered.
	Gone *Gone
}

// Owner is the workload of a pod, with what is known about it.
type Owner struct {
	Ref memory.WorkloadRef
	// UID is that of the workload; empty when only its name could be inferred, and for pods that are not created yet.
	UID types.UID
	// Annotations are the workload's own; a bare pod's are the pod's. Read-only: they belong to the cache. Nil where the
	// workload itself was not read, because its kind has no cache here or because it is gone.
	Annotations map[string]string
	// Gone is true when an owner of the pod no longer exists. Ref and Annotations are then the best guess.
	Gone bool
}

// Owner returns the workload of pod, whose namespace must be set: an admission request may have it outside the pod
// only. A pod without a controller, or with one that cannot exist, is its own workload, and so is a static pod, which
// its Node owns; while such a pod is only being created and has no name yet, its generateName is used. With an error,
// the Owner is still the best there is, and its annotations may be missing.
func (r Resolver) Owner(ctx context.Context, pod metav1.Object) (Owner, error) {
	at := Owner{
		Ref:         memory.WorkloadRef{APIVersion: "v1", Kind: "Pod", Namespace: pod.GetNamespace(), Name: pod.GetName()},
		UID:         pod.GetUID(),
		Annotations: pod.GetAnnotations(),
	}
	if at.Ref.Name == "" {
		at.Ref.Name = pod.GetGenerateName()
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind == "Node" && ref.APIVersion == "v1" || !plausible(ref) {
		return at, nil
	}
	return r.follow(ctx, pod, ref)
}

// Named returns the workload with that name and UID as the cache has it; an empty UID is that of any. found is false
// when it no longer exists. A kind without a cache is found by reference.
func (r Resolver) Named(ctx context.Context, of memory.WorkloadRef, uid types.UID) (o Owner, found bool, err error) {
	o = Owner{Ref: of, UID: uid}
	k := kindOf(of.APIVersion, of.Kind)
	if k == nil {
		return o, true, nil
	}
	ref := &metav1.OwnerReference{APIVersion: of.APIVersion, Kind: of.Kind, Name: of.Name, UID: uid}
	m, err := r.cached(ctx, k, of.Namespace, ref)
	if m == nil || err != nil {
		o.Gone = err == nil
		return o, false, err
	}
	o.UID, o.Annotations = m.UID, m.Annotations
	return o, true, nil
}

// goneKept is how many deleted owners are remembered: about 2 MB. One that is forgotten costs one more read of the API
// server.
const goneKept = 8192

// Gone remembers owners that no longer exist, from the deletions that informers deliver and from reads that the API
// server answered with 404. The name belongs to the key, so that a forged reference with the UID of another tenant's
// object marks nothing but itself. Safe for concurrent use; nil remembers nothing. Create it with [NewGone].
type Gone struct{ owners *lru.Cache }

type goneOwner struct {
	ref memory.WorkloadRef
	uid types.UID
}

// NewGone remembers nothing yet.
func NewGone() *Gone { return &Gone{lru.New(goneKept)} }

// Add notes that the owner with that name and UID no longer exists. An empty UID is ignored: another object may have
// the name.
func (g *Gone) Add(ref memory.WorkloadRef, uid types.UID) {
	if g != nil && uid != "" {
		g.owners.Add(goneOwner{ref, uid}, nil)
	}
}

// Has reports whether the owner is known to be gone.
func (g *Gone) Has(ref memory.WorkloadRef, uid types.UID) bool {
	if g == nil {
		return false
	}
	_, found := g.owners.Get(goneOwner{ref, uid})
	return found
}
