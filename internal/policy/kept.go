// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/owners"
	"github.com/memfit/memfit/internal/profile"
)

// Remembered is the part of a pod's [Resolution] that outlives its owners: pods may run for minutes after their
// ReplicaSet and Deployment were deleted, and still belong to them. The zero value is empty.
type Remembered struct {
	Workload memory.WorkloadRef // the pod's workload; empty: unknown
	Owner    types.UID          // the UID of the workload; empty: unknown
	// Controller is the UID in the pod's controller reference at that time. If it has changed, the pod was adopted or
	// orphaned, and is resolved again.
	Controller types.UID
	Profile    profile.Key // the pod's profile; empty: none
}

// Remember returns the part of a resolution that outlives its owners; false: an owner was missing.
func (r *Resolution) Remember(pod metav1.Object) (Remembered, bool) {
	if r.Gone || r.Ref == (memory.WorkloadRef{}) {
		return Remembered{}, false
	}
	k := Remembered{Workload: r.Ref, Owner: r.UID, Controller: ControllerOf(pod)}
	if r.Profile != nil {
		k.Profile = r.Profile.Key()
	}
	return k, true
}

func (k *Remembered) of(pod metav1.Object) bool {
	return k.Workload != (memory.WorkloadRef{}) && k.Controller == ControllerOf(pod)
}

// ControllerOf returns the UID of a pod's controller, which identifies its workload if the workload's UID is unknown.
func ControllerOf(pod metav1.Object) types.UID {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		return ref.UID
	}
	return ""
}

// ResolveCached resolves one pod like [Resolver.Resolve], from caches only. If an owner is missing, it uses kept; if
// kept is empty, it returns [owners.ErrNotSeen] and the best known name of the workload.
func (r *Resolver) ResolveCached(ctx context.Context, pod metav1.Object, kept Remembered) (Resolution, error) {
	resolved, err := r.resolveCached(ctx, pod, kept)
	if kept.of(pod) {
		r.stayInClass(ctx, pod, kept.Workload, &resolved)
	}
	return resolved, err
}

func (r *Resolver) resolveCached(ctx context.Context, pod metav1.Object, kept Remembered) (Resolution, error) {
	cached := r.owners
	cached.APIReader = nil
	owner, err := cached.Owner(ctx, pod)
	missing := owner.Gone || errors.Is(err, owners.ErrNotSeen)
	if !missing || !kept.of(pod) {
		return r.govern(ctx, pod, owner, err)
	}
	owner, found, err := cached.Named(ctx, kept.Workload, kept.Owner)
	if found || err != nil {
		return r.govern(ctx, pod, owner, err)
	}
	return Resolution{Owner: owner, Match: profile.Match{Profile: r.Profiles().Get(kept.Profile)}}, nil
}

// ResolveRemembered resolves one pod like [Resolver.ResolveCached], but if an owner is missing and kept is empty, it
// reads the owner from the API server. A deleted owner is read only once.
func (r *Resolver) ResolveRemembered(ctx context.Context, pod metav1.Object, kept Remembered) (Resolution, error) {
	if kept.of(pod) || r.outOfReach(pod) != "" {
		return r.ResolveCached(ctx, pod, kept)
	}
	return r.Resolve(ctx, pod)
}

// OwnerDeleted records that an owner of pods was deleted.
func (r *Resolver) OwnerDeleted(ref memory.WorkloadRef, uid types.UID) {
	r.owners.Gone.Add(ref.Whole(), uid)
}

// OwnerGone reports whether the owner with that name and UID is known to be deleted.
func (r *Resolver) OwnerGone(ref memory.WorkloadRef, uid types.UID) bool {
	return r.owners.Gone.Has(ref.Whole(), uid)
}
