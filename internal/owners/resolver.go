// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package owners finds the workload of a pod: Pod -> ReplicaSet -> Deployment, Pod -> Job -> CronJob. A controller of
// another kind is not read: its owner reference is enough.
//
// A [Resolver] makes a few reads of a metadata-only cache per pod, and terminates for any owner references. It reads
// only kinds of [Objects]: a read of another kind would start an informer, and block until the deadline if memfit may
// not list that kind. It reads from [Resolver.APIReader] only if the cache lags.
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

// ErrNotSeen means that an owner could be read neither from the cache nor from the API server, so that its annotations
// are unknown.
var ErrNotSeen = errors.New("owner not seen yet")

// maxHops bounds the followed owners of a pod. Kubernetes itself has at most two; nested operators may have more.
const maxHops = 4

// Resolver finds the workload of a pod. The zero value with a Reader works.
type Resolver struct {
	// Reader is a cache of metadata (PartialObjectMetadata) of [Objects]. Required.
	Reader client.Reader
	// APIReader is uncached. It reads only owners that the cache lacks, as at the start of a rollout. nil: none are read.
	// Its rest.Config should have QPS -1, like controller-runtime's own: with client-go's default of 5 a second, the pods
	// of one rollout wait for each other.
	APIReader client.Reader
	// Gone stores deleted owners, which are not read again from APIReader. nil: they are read again.
	Gone *Gone
}

// Owner is the workload of a pod.
type Owner struct {
	Ref memory.WorkloadRef
	// UID is the workload's; empty if only its name could be inferred, and for pods not created yet.
	UID types.UID
	// Annotations are the workload's; do not change them. nil: the workload was not read, because its kind has no cache
	// or it was deleted.
	Annotations map[string]string
	// Gone is true if an owner of the pod no longer exists. Ref and Annotations are then a guess.
	Gone bool
}

// Owner returns the workload of pod, whose namespace must be set. A static pod is its own workload, as is a pod without
// a controller or with one that cannot exist. Such a workload has the pod's name or, before that is set, generateName.
// With an error, the returned Owner is a guess, perhaps without annotations.
func (r Resolver) Owner(ctx context.Context, pod metav1.Object) (Owner, error) {
	own := Owner{
		Ref:         memory.WorkloadRef{APIVersion: "v1", Kind: "Pod", Namespace: pod.GetNamespace(), Name: pod.GetName()},
		UID:         pod.GetUID(),
		Annotations: pod.GetAnnotations(),
	}
	if own.Ref.Name == "" {
		own.Ref.Name = pod.GetGenerateName()
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind == "Node" && ref.APIVersion == "v1" || !plausible(ref) {
		return own, nil
	}
	return r.follow(ctx, pod, ref)
}

// Named returns the cached workload with a name and UID; an empty UID matches any. found is false if the workload no
// longer exists. A workload of a kind without a cache always counts as found.
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

// maxGone bounds the stored deleted owners: about 2 MB. A dropped owner costs another read of the API server.
const maxGone = 8192

// Gone stores deleted owners by name and UID, so that a forged reference with another tenant's UID affects only itself.
// Safe for concurrent use; nil stores nothing. Create it with [NewGone].
type Gone struct{ owners *lru.Cache }

type goneOwner struct {
	ref memory.WorkloadRef
	uid types.UID
}

// NewGone returns an empty Gone.
func NewGone() *Gone { return &Gone{lru.New(maxGone)} }

// Add records that an owner no longer exists. It ignores an empty UID, because another object may have the name.
func (g *Gone) Add(ref memory.WorkloadRef, uid types.UID) {
	if g != nil && uid != "" {
		g.owners.Add(goneOwner{ref, uid}, nil)
	}
}

// Has reports whether an owner is known to be deleted.
func (g *Gone) Has(ref memory.WorkloadRef, uid types.UID) bool {
	if g == nil {
		return false
	}
	_, found := g.owners.Get(goneOwner{ref, uid})
	return found
}
