// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/controllers/sweeper"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/inbox"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/records"
	"github.com/memfit/memfit/internal/workload"
)

// errNotYet means that the owner of a record is still uncertain, because a cache lags, or the garbage collector is
// about to delete the record.
var errNotYet = errors.New("not known yet")

// notYet is the delay before the retry. Caches lag by milliseconds; the garbage collector takes seconds.
const notYet = 2 * time.Second

func (r *Reconciler) sweeper() sweeper.Sweeper {
	return sweeper.Sweeper{Client: r.Client, APIReader: r.APIReader, Clock: r.Clock}
}

// leave drops the state of a workload that is deleted or being deleted, without writing it. For a deleted workload it
// also deletes records that lost their owner, as after `kubectl delete --cascade=orphan`.
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

// drop drops the in-memory state of a workload, but keeps a part for a later workload of the same name. The caller
// holds the entry's lock.
func (r *Reconciler) drop(w memory.WorkloadRef) {
	if e, known := r.states.get(w); known && e.state.HasHistory() {
		r.former.keep(w, former{
			owner: e.owner, namespace: e.namespace, state: e.state.RetainedState(), at: r.Clock.Now(),
		})
	}
	r.states.drop(w)
	r.backoffs.done(w)
	r.Metrics.forget(w)
	r.Totals.setLoans(w, nil)
	if r.Sources.History != nil {
		r.Sources.History.Forget(w)
	}
}

// vanished reports whether err only means that the workload or its namespace was deleted meanwhile.
func (r *Reconciler) vanished(ctx context.Context, s *workload.Snapshot, err error) bool {
	if namespaceGone(err) {
		return true
	}
	if !apierrors.IsNotFound(err) {
		return false
	}
	var unknown error
	s.Presence, unknown = r.sweeper().Confirm(ctx, s.Owner.Ref)
	return unknown == nil && (s.Presence.State == records.Gone || s.Presence.State == records.Terminating)
}

// claim reports whether a stored record may be used for the workload. It deletes the record if the record belongs to an
// earlier workload of the same name, or has no owner.
func (r *Reconciler) claim(ctx context.Context, s *workload.Snapshot, record client.Object) (usable bool, err error) {
	p := s.Presence
	p.UID = cmp.Or(p.UID, s.Owner.UID)
	owners := record.GetOwnerReferences()
	switch uid, owned := records.OwnerUID(owners, s.Owner.Ref); {
	case records.Orphaned(owners, s.Owner.Ref, p) != "":
		deleted, err := r.sweeper().DeleteIfOrphaned(ctx, s.Owner.Ref, record)
		if err == nil && !deleted {
			err = fmt.Errorf("%w: the owner of %s/%s (the cache lags)", errNotYet, record.GetNamespace(), record.GetName())
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

// rememberStored keeps the state in a checkpoint of an earlier workload of the same name, before the checkpoint is
// deleted. A state that is already in memory is newer, and remains.
func (r *Reconciler) rememberStored(s *workload.Snapshot, stored *v1alpha1.MemoryCheckpoint, namespace types.UID) {
	ref, state := s.Owner.Ref, workload.NewState()
	if stored.Status.Version == 0 || r.former.of(ref, s.Owner.UID, namespace, r.Clock.Now()) != nil {
		return
	}
	if _, err := state.Unpack(stored); err == nil {
		owner, _ := records.OwnerUID(stored.OwnerReferences, ref)
		r.former.keep(ref, former{owner: owner, namespace: namespace, state: state.RetainedState(), at: r.Clock.Now()})
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

// release drops a workload that no profile governs. Its checkpoint remains, so that opting out and in again loses
// nothing.
func (r *Reconciler) release(ctx context.Context, s *workload.Snapshot) error {
	ref := s.Owner.Ref
	r.Inbox.Done(ref)
	r.Inbox.Govern(ref, nil, profile.Key{})
	e, known := r.states.get(ref)
	if known {
		e.mu.Lock()
		r.drop(ref)
		e.mu.Unlock()
	}
	// when scaled to zero, the recommendation remains for the next pods, unless node classes have recommendations
	scaledToZero := len(s.Pods) == 0 && len(r.Inbox.NodeClasses(ref)) == 0
	var failed error
	if !scaledToZero {
		r.warn(s)
		failed = r.withdraw(ctx, ref)
	}
	if failed == nil {
		r.Inbox.Release(ref, inbox.NoProfile{Problem: s.Problem, Why: s.Why})
	}
	if !known {
		return failed
	}
	err := r.flush(ctx, ref, e)
	if scaledToZero && (apierrors.IsNotFound(err) || apierrors.IsConflict(err)) {
		return nil
	}
	return errors.Join(failed, err)
}

// namespaceGone reports whether an error means that the namespace is deleted or being deleted.
func namespaceGone(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) &&
		details != nil && details.Kind == "namespaces"
}

// countAgain is how often the identities of a profile at the maximum are counted again, because some may have expired.
const countAgain = time.Minute

// identities limits the identities of each profile, including node classes. Users who create pods control the labels
// that define identities, and each identity needs two objects in the API server.
type identities struct {
	mu       sync.Mutex
	profiles map[profile.Key]*counted
}

type counted struct {
	all map[memory.WorkloadRef]struct{}
	at  time.Time
}

// tooManyIdentities reports whether a new identity would exceed the maximum of its profile.
func (r *Reconciler) tooManyIdentities(ctx context.Context, s *workload.Snapshot) (bool, error) {
	if !identity.IsIdentity(s.Owner.Ref) && s.Owner.Ref.NodeClass == "" {
		return false, nil
	}
	key, most := s.Profile.Key(), cmp.Or(r.Settings.MaxIdentities, identity.MaxPerProfile)
	r.identities.mu.Lock()
	defer r.identities.mu.Unlock()
	c := r.identities.profiles[key]
	if c == nil || len(c.all) >= most && r.Clock.Since(c.at) >= countAgain {
		var err error
		if c, err = r.countIdentities(ctx, key); err != nil {
			return false, err
		}
		if r.identities.profiles == nil {
			r.identities.profiles = map[profile.Key]*counted{}
		}
		r.identities.profiles[key] = c
	}
	if _, known := c.all[s.Owner.Ref]; !known && len(c.all) >= most {
		return true, nil
	}
	c.all[s.Owner.Ref] = struct{}{}
	return false, nil
}

func (r *Reconciler) countIdentities(ctx context.Context, of profile.Key) (*counted, error) {
	var recs v1alpha1.MemoryRecommendationList
	inNamespace, identified := client.InNamespace(of.Namespace), client.HasLabels{v1alpha1.IdentityLabel}
	if err := r.List(ctx, &recs, inNamespace, identified, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("counting the identities of %s: %w", of, err)
	}
	c := &counted{all: map[memory.WorkloadRef]struct{}{}, at: r.Clock.Now()}
	for i := range recs.Items {
		if p := recs.Items[i].Status.Profile; p.Kind == of.Kind && p.Name == of.Name {
			c.all[workloadOf(&recs.Items[i])] = struct{}{}
		}
	}
	return c, nil
}
