// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/records"
	"github.com/memfit/memfit/internal/signals"
)

// errNotYet means that whose a record is will be known in a moment: a cache lags, or the garbage collector is about to remove it.
var errNotYet = errors.New("not known yet")

// notYet is after how long a workload is looked at again for that. Caches lag by milliseconds; the garbage collector takes seconds.
const notYet = 2 * time.Second

func (r *WorkloadReconciler) census() census { return census{cached: r.Client, live: r.Live} }

// identify keeps of what was gathered what belongs to the workload that has the name now. Pods of one that had it before still end, and
// their kills would make the new one, which may run another program, inherit a size.
func (s *snapshot) identify(p records.Presence, of map[types.UID]types.UID) {
	s.presence = p
	if s.owner.UID = p.UID; s.owner.UID == "" { // its kind cannot be read: the newest pod that knows says it
		for _, pod := range s.pods {
			s.owner.UID = cmp.Or(s.owner.UID, of[pod.UID])
		}
	}
	strange := func(owner types.UID) bool {
		if s.owner.UID == "" || owner == s.owner.UID {
			return false
		}
		return owner != "" || p.State == records.Exists // a reference that can be read and leads nowhere leads to one that is gone
	}
	others := map[types.UID]bool{}
	for _, pod := range s.pods {
		if strange(of[pod.UID]) {
			others[pod.UID] = true
		}
	}
	for pod, owner := range s.events.Departed {
		if strange(owner) {
			others[pod] = true
		}
	}
	if len(others) == 0 {
		return
	}
	s.pods = slices.DeleteFunc(s.pods, func(pod *corev1.Pod) bool { return others[pod.UID] })
	s.events.Observations = slices.DeleteFunc(s.events.Observations, func(o signals.Observation) bool { return others[o.Container.UID] })
	s.events.Samples = slices.DeleteFunc(s.events.Samples, func(sample memory.Sample) bool { return others[sample.Container.UID] })
	s.events.Counters = slices.DeleteFunc(s.events.Counters, func(c signals.Counter) bool { return others[c.Container.UID] })
	if s.events.Last != nil && others[s.events.Last.UID] {
		s.events.Profile, s.events.Last = nil, nil
	}
}

// leave forgets a workload that is being deleted, or is, and deletes what an earlier memfit or a race left of one that is gone. What
// names its owner would go with it anyway; nothing is written for it any more.
func (r *WorkloadReconciler) leave(ctx context.Context, s *snapshot) error {
	w := s.owner.Ref
	r.Inbox.Done(w)
	r.Inbox.Govern(w, nil, ProfileKey{})
	_, known := r.states.get(w)
	r.states.drop(w)
	r.Metrics.forget(w)
	r.solved(w)
	if s.presence.State != records.Gone {
		return nil
	}
	if recommended, err := r.exists(ctx, w); err != nil || !known && !recommended {
		return err
	}
	return Sweeper{Client: r.Client, Live: r.Live}.clear(ctx, w)
}

// vanished tells an error that only says that the workload went meanwhile: its records with it, or its whole namespace.
func (r *WorkloadReconciler) vanished(ctx context.Context, s *snapshot, err error) bool {
	if namespaceGone(err) {
		return true
	}
	if !apierrors.IsNotFound(err) {
		return false
	}
	var unknown error
	s.presence, unknown = r.census().confirm(ctx, s.owner.Ref)
	return unknown == nil && (s.presence.State == records.Gone || s.presence.State == records.Leaving)
}

// claim says whether a stored record may be used for the workload. One that names no owner is given it; one of an earlier workload of
// the same name is deleted.
func (r *WorkloadReconciler) claim(ctx context.Context, s *snapshot, record client.Object) (usable bool, err error) {
	p := s.presence
	p.UID = cmp.Or(p.UID, s.owner.UID)
	action, _ := records.Judge(metaOf(record), s.owner.Ref, p)
	switch uid, owned := records.OwnerUID(record.GetOwnerReferences(), s.owner.Ref); {
	case action == records.Adopt:
		return true, r.adopt(ctx, s, record)
	case action == records.Delete:
		deleted, err := Sweeper{Client: r.Client, Live: r.Live}.judge(ctx, s.owner.Ref, record)
		if err == nil && !deleted {
			err = fmt.Errorf("%w: the cache is behind: whose %s/%s is", errNotYet, record.GetNamespace(), record.GetName())
		}
		return false, err
	case owned && s.owner.UID != "" && uid != s.owner.UID:
		return false, fmt.Errorf("%w: the garbage collector has not removed %s/%s of an earlier workload", errNotYet, record.GetNamespace(), record.GetName())
	}
	return true, nil
}

// adopt writes the ownerReference that an older memfit did not.
func (r *WorkloadReconciler) adopt(ctx context.Context, s *snapshot, record client.Object) error {
	before, ok := record.DeepCopyObject().(client.Object)
	if !ok {
		return nil
	}
	record.SetOwnerReferences(append(record.GetOwnerReferences(), records.Owner(s.owner.Ref, s.owner.UID)))
	if err := r.Patch(ctx, record, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("making %s the owner of %s: %w", s.owner.Ref, record.GetName(), err)
	}
	return nil
}

func metaOf(record client.Object) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{OwnerReferences: record.GetOwnerReferences(), CreationTimestamp: record.GetCreationTimestamp()}
}
