// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/controllers/sweeper"
	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/records"
	"github.com/memfit/memfit/internal/workload"
)

// errNotYet means that the owner of a record is still uncertain: a cache lags, or the garbage collector is about to
// delete the record.
var errNotYet = errors.New("not known yet")

// notYet is the delay before the workload is reconciled again. Caches lag by milliseconds; the garbage collector takes
// seconds.
const notYet = 2 * time.Second

func (r *Reconciler) sweeper() sweeper.Sweeper {
	return sweeper.Sweeper{Client: r.Client, APIReader: r.APIReader, Clock: r.Clock}
}

// leave drops the state of a workload that is deleted or being deleted, without writing it. For a deleted one it
// deletes the records that lost their owner, as after `kubectl delete --cascade=orphan`.
func (r *Reconciler) leave(ctx context.Context, s *workload.Snapshot) error {
	w := s.Owner.Ref
	r.Inbox.Done(w)
	r.Inbox.Govern(w, nil, profile.Key{})
	_, known := r.states.get(w)
	r.drop(w)
	r.Problems.Clear(w)
	if s.Presence.State != records.Gone {
		return nil
	}
	if rec, err := r.stored(ctx, w); err != nil || !known && rec == nil {
		return err
	}
	return r.sweeper().Clear(ctx, w)
}

// drop drops the in-memory state of a workload, whose entry is locked. A later one of the same name may take over what
// remains.
func (r *Reconciler) drop(w memory.WorkloadRef) {
	if e, known := r.states.get(w); known {
		r.former.keep(w, former{
			owner: e.owner, namespace: e.namespace, state: e.state.Remains(), at: r.Clock.Now(),
		})
	}
	r.states.drop(w)
	r.overdue.done(w)
	r.Metrics.forget(w)
	r.Accounts.lent(w, nil)
	if r.Sources.Past != nil {
		r.Sources.Past.Forget(w)
	}
}

// vanished reports whether an error only means that the workload was deleted meanwhile, with its records or with its
// whole namespace.
func (r *Reconciler) vanished(ctx context.Context, s *workload.Snapshot, err error) bool {
	if namespaceGone(err) {
		return true
	}
	if !apierrors.IsNotFound(err) {
		return false
	}
	var unknown error
	s.Presence, unknown = r.sweeper().Confirm(ctx, s.Owner.Ref)
	return unknown == nil && (s.Presence.State == records.Gone || s.Presence.State == records.Leaving)
}

// claim reports whether a stored record may be used for the workload. One of an earlier workload of the same name, or
// without an owner, is deleted.
func (r *Reconciler) claim(ctx context.Context, s *workload.Snapshot, record client.Object) (usable bool, err error) {
	p := s.Presence
	p.UID = cmp.Or(p.UID, s.Owner.UID)
	owners := record.GetOwnerReferences()
	switch uid, owned := records.OwnerUID(owners, s.Owner.Ref); {
	case records.Orphaned(owners, s.Owner.Ref, p) != "":
		deleted, err := r.sweeper().Judge(ctx, s.Owner.Ref, record)
		if err == nil && !deleted {
			err = fmt.Errorf("%w: the cache is behind: whose %s/%s is", errNotYet, record.GetNamespace(), record.GetName())
		}
		return false, err
	case owned && s.Owner.UID != "" && uid != s.Owner.UID:
		return false, fmt.Errorf(
			"%w: the garbage collector has not removed %s/%s of an earlier workload", errNotYet, record.GetNamespace(),
			record.GetName(),
		)
	}
	return true, nil
}

// rememberStored keeps what a checkpoint has of an earlier workload of the same name, before it is deleted. What is in
// memory is newer.
func (r *Reconciler) rememberStored(s *workload.Snapshot, stored *v1alpha1.MemoryCheckpoint, namespace types.UID) {
	ref, state := s.Owner.Ref, workload.NewState()
	if stored.Status.Version == 0 || r.former.of(ref, s.Owner.UID, namespace, r.Clock.Now()) != nil {
		return
	}
	if _, err := state.Unpack(stored); err == nil {
		owner, _ := records.OwnerUID(stored.OwnerReferences, ref)
		r.former.keep(ref, former{owner: owner, namespace: namespace, state: state.Remains(), at: r.Clock.Now()})
	}
}

// namespaceUID returns the UID of a namespace in the cache; empty: unknown.
func (r *Reconciler) namespaceUID(ctx context.Context, name string) types.UID {
	ns := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	if r.Get(ctx, client.ObjectKey{Name: name}, ns, client.UnsafeDisableDeepCopy) != nil { // only read
		return ""
	}
	return ns.UID
}

// release stops watching a workload without a profile. Its checkpoint remains, so that opting out and in again loses
// nothing.
func (r *Reconciler) release(ctx context.Context, s *workload.Snapshot) error {
	ref := s.Owner.Ref
	r.Inbox.Done(ref)
	r.Inbox.Govern(ref, nil, profile.Key{})
	e, known := r.states.get(ref)
	// the recommendation remains for the next pods, unless these use those of their classes of nodes
	scaledToNothing := len(s.Pods) == 0 && len(r.Inbox.NodeClasses(ref)) == 0
	if !scaledToNothing {
		r.warn(s)
	}
	if known {
		e.mu.Lock()
		r.drop(ref)
		e.mu.Unlock()
	}
	var failed error
	if !scaledToNothing {
		failed = r.withdraw(ctx, ref)
	}
	if failed == nil {
		r.Inbox.Release(ref, inbox.Answer{Problem: s.Problem, Why: s.Why})
	}
	if !known {
		return failed
	}
	err := r.flush(ctx, ref, e)
	if scaledToNothing && (apierrors.IsNotFound(err) || apierrors.IsConflict(err)) {
		return nil
	}
	return errors.Join(failed, err)
}

// namespaceGone reports whether an error means that the namespace is deleted or being deleted, so that nothing can be
// created in it.
func namespaceGone(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) &&
		details != nil && details.Kind == "namespaces"
}
