// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package sweeper deletes records (MemoryRecommendations and MemoryCheckpoints) that the garbage collector does not
// delete: records that lost their owner (`kubectl delete --cascade=orphan`), and records of identities without pods,
// which have no owner. It also checks whether a workload exists; before a deletion, it asks the API server.
package sweeper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/owners"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/records"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Sweeper checks whether workloads exist, and deletes records of those that do not. Its Start checks all records, on
// the leader.
type Sweeper struct {
	// Client reads workloads and MemoryRecommendations from the cache, and deletes.
	client.Client
	// APIReader reads from the API server: the metadata of records, and whether a workload exists.
	APIReader client.Reader
	Clock     clock.PassiveClock
}

const (
	// sweepPage is the number of records in one request: some 0.5 MB of metadata.
	sweepPage = 500
	// sweepEvery is how often all records are checked. Identities live for days.
	sweepEvery = 6 * time.Hour
)

// sweepBackoff is the delay after a failed sweep, doubled after each further failure.
var sweepBackoff = wait.Backoff{Duration: time.Minute, Factor: 2, Steps: math.MaxInt, Cap: sweepEvery}

// Start sweeps until ctx ends, on the leader. It checks records sequentially: 10,000 orphaned ones take minutes, with
// less load on the API server than a few kubectl commands.
func (w Sweeper) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("sweep")
	backoff := sweepBackoff
	for ctx.Err() == nil {
		deleted, err := w.Sweep(logf.IntoContext(ctx, log))
		if deleted > 0 {
			log.Info("Deleted records without an owner and of expired identities", "records", deleted)
		}
		next := sweepEvery
		if err == nil {
			backoff = sweepBackoff
		} else if next = backoff.Step(); ctx.Err() == nil {
			log.Error(err, "Could not check every record; retrying", "after", next.String())
		}
		select {
		case <-ctx.Done():
		case <-time.After(next):
		}
	}
	return nil
}

// Sweep checks every record once, and returns how many it deleted.
func (w Sweeper) Sweep(ctx context.Context) (deleted int, failed error) {
	for _, kind := range []string{"MemoryRecommendation", "MemoryCheckpoint"} {
		n, err := w.sweepKind(ctx, kind)
		deleted, failed = deleted+n, errors.Join(failed, err)
	}
	return deleted, failed
}

func (w Sweeper) sweepKind(ctx context.Context, kind string) (deleted int, failed error) {
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
	for {
		if err := w.APIReader.List(ctx, page, client.Limit(sweepPage), client.Continue(page.Continue)); err != nil {
			return deleted, errors.Join(failed, fmt.Errorf("listing %ss: %w", kind, err))
		}
		for i := range page.Items {
			record := &page.Items[i]
			record.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
			gone, err := w.check(ctx, record)
			if gone {
				deleted++
			}
			failed = errors.Join(failed, err)
		}
		if page.Continue == "" || ctx.Err() != nil {
			return deleted, failed
		}
	}
}

// check deletes a record of an expired identity, or without an owner.
func (w Sweeper) check(ctx context.Context, record client.Object) (deleted bool, err error) {
	_, identified := record.GetLabels()[v1alpha1.IdentityLabel]
	switch {
	case identified:
		return w.expire(ctx, record)
	case len(record.GetOwnerReferences()) > 0, record.GetName() == v1alpha1.PriorsName:
		return false, nil
	}
	return w.delete(ctx, record, "it has no owner reference")
}

// expire deletes a record of an identity that had no pod for [identity.TimeToLive]. If the identity has no
// recommendation, as after its profile was removed, the time since the record was last written counts instead.
func (w Sweeper) expire(ctx context.Context, record client.Object) (deleted bool, err error) {
	seen := lastWritten(record)
	var rec v1alpha1.MemoryRecommendation
	err = w.Get(ctx, client.ObjectKeyFromObject(record), &rec, client.UnsafeDisableDeepCopy)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return false, fmt.Errorf("reading a MemoryRecommendation of an identity: %w", err)
	case err == nil && rec.Status.Identity == nil: // the status is not written yet
		return false, nil
	case err == nil:
		seen = rec.Status.Identity.LastSeen
	}
	if w.Clock.Since(seen.Time) < identity.TimeToLive {
		return false, nil
	}
	return w.delete(ctx, record, "its identity has had no pod for 35 days")
}

// lastWritten returns when a record was last written, as its managed fields show, or when it was created.
func lastWritten(record client.Object) metav1.Time {
	last := record.GetCreationTimestamp()
	for _, e := range record.GetManagedFields() {
		if e.Time != nil && last.Before(e.Time) {
			last = *e.Time
		}
	}
	return last
}

// Clear deletes both records of a workload, if the API server confirms that they are orphaned.
func (w Sweeper) Clear(ctx context.Context, of memory.WorkloadRef) error {
	var failed error
	for _, record := range []client.Object{&v1alpha1.MemoryRecommendation{}, &v1alpha1.MemoryCheckpoint{}} {
		key := client.ObjectKey{Namespace: of.Namespace, Name: policy.RecordName(of)}
		err := w.APIReader.Get(ctx, key, record)
		if err == nil {
			_, err = w.DeleteIfOrphaned(ctx, of, record)
		}
		if client.IgnoreNotFound(err) != nil {
			failed = errors.Join(failed, fmt.Errorf("clearing the record of %s: %w", of, err))
		}
	}
	return failed
}

// DeleteIfOrphaned asks the API server for the workload of a record, and deletes the record if it is orphaned.
func (w Sweeper) DeleteIfOrphaned(
	ctx context.Context, of memory.WorkloadRef, record client.Object,
) (deleted bool, err error) {
	presence, err := w.Confirm(ctx, of)
	why := records.Orphaned(record.GetOwnerReferences(), of, presence)
	if err != nil || why == "" {
		return false, err
	}
	return w.delete(ctx, record, why)
}

// delete deletes this version of a record only: a newer version may have a workload or a pod again.
func (w Sweeper) delete(ctx context.Context, record client.Object, why string) (deleted bool, err error) {
	uid, version := record.GetUID(), record.GetResourceVersion()
	err = w.Delete(ctx, record, client.Preconditions{UID: &uid, ResourceVersion: &version})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("deleting %s/%s, because %s: %w", record.GetNamespace(), record.GetName(), why, err)
	}
	logf.FromContext(ctx).Info("Deleted a record", "record", client.ObjectKeyFromObject(record), "why", why)
	return true, nil
}

// Cached returns whether the cached workload exists or is being deleted; false: the cache lacks it. For kinds that
// memfit cannot read, the state is unknown.
func (w Sweeper) Cached(ctx context.Context, of memory.WorkloadRef) (records.Presence, bool) {
	p, err := presence(ctx, w.Client, of)
	return p, err == nil
}

// Confirm asks the API server whether a workload exists. Deletions need it, because the cache may be stale.
func (w Sweeper) Confirm(ctx context.Context, of memory.WorkloadRef) (records.Presence, error) {
	p, err := presence(ctx, w.APIReader, of)
	switch {
	case apierrors.IsNotFound(err):
		return records.Presence{State: records.Gone}, nil
	case err != nil:
		return p, fmt.Errorf("reading %s: %w", of, err)
	}
	return p, nil
}

func presence(ctx context.Context, from client.Reader, of memory.WorkloadRef) (p records.Presence, err error) {
	if identity.IsIdentity(of) {
		return records.Presence{State: records.Exists, UID: identity.UID(of)}, nil
	}
	var obj client.Object = &corev1.Pod{} // of other kinds, only metadata is cached
	if !workloadkind.IsPod(of.APIVersion, of.Kind) {
		m, readable := owners.Metadata(of)
		if !readable {
			return p, nil
		}
		obj = m
	}
	if err := from.Get(ctx, workloadKey(of), obj); err != nil {
		return p, err
	}
	p.State, p.UID = records.Exists, obj.GetUID()
	if obj.GetDeletionTimestamp() != nil {
		p.State = records.Terminating
	}
	return p, nil
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
		return 0, fmt.Errorf("reading the replica count of %s: %w", ref, err)
	}
	count, _, _ := unstructured.NestedInt64(object.Object, kind.PodCount...)
	return int(count), nil
}
