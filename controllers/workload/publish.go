// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/conditions"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/workload"
)

// projection describes a workload's stored MemoryRecommendation, to decide whether and how to write it.
type projection struct {
	object
	generation int64
	conditions []metav1.Condition    // without messages, for transition times
	worth      workload.StatusHashes // of the status
	writtenAt  time.Time             // zero: another process wrote the status
}

func (e *entry) projectionOf(rec *v1alpha1.MemoryRecommendation) projection {
	p := projection{
		object: objectOf(rec), generation: rec.Generation, worth: e.state.HashStatus(&rec.Status),
	}
	p.conditions = make([]metav1.Condition, len(rec.Status.Conditions))
	for i, c := range rec.Status.Conditions {
		p.conditions[i] = metav1.Condition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}
	}
	return p
}

// stored returns the object for the next write, without its status.
func (p *projection) stored(w memory.WorkloadRef) *v1alpha1.MemoryRecommendation {
	rec := &v1alpha1.MemoryRecommendation{ObjectMeta: p.meta(w)}
	rec.Generation = p.generation
	return rec
}

// publish writes the MemoryRecommendation if it reports something new, or if another writer edited or deleted it.
func (r *Reconciler) publish(
	ctx context.Context, s *workload.Snapshot, e *entry, f *workload.Effects, now time.Time,
) error {
	// generation 0: writeRecommendation fills it in
	f.Status.Conditions = conditions.Settle(f.Status.Conditions, e.recommendation.conditions, 0, now)
	f.Status.Profile = s.Profile.Ref
	f.Status.Workload = v1alpha1.WorkloadReference{
		APIVersion: s.Owner.Ref.APIVersion, Kind: s.Owner.Ref.Kind, Name: s.Owner.Ref.Name,
	}
	if r.upToDate(e, f, now) {
		if err := r.detectForeignEdit(ctx, s, e); err != nil || r.upToDate(e, f, now) {
			return err
		}
	}
	rec := e.recommendation.stored(s.Owner.Ref)
	if err := r.writeRecommendation(ctx, s, rec, f.Status); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
			// Another writer edited or deleted it: read the current version, and retry with the next reconcile.
			return cmp.Or(r.identifyRecommendation(ctx, s, e), err)
		}
		return err
	}
	e.recommendation = e.projectionOf(rec)
	e.recommendation.writtenAt = now
	return nil
}

// detectForeignEdit updates e.recommendation if another writer edited or deleted the recommendation, as the cached
// resource version shows. An older version only means that the cache lags.
func (r *Reconciler) detectForeignEdit(ctx context.Context, s *workload.Snapshot, e *entry) error {
	stored, err := r.stored(ctx, s.Owner.Ref)
	switch {
	case err != nil:
		return err
	case stored == nil:
		e.recommendation = projection{}
		return nil
	}
	order, err := resourceversion.CompareResourceVersion(stored.ResourceVersion, e.recommendation.resourceVersion)
	if err == nil && order <= 0 {
		return nil
	}
	return r.identifyRecommendation(ctx, s, e)
}

// upToDate reports whether no write is due: the recommendation is unchanged, or only its figures
// ([workload.StatusHashes]) differ. Figures change with every step of a leaking or crashing container, so they are
// written at most once per CheckpointEvery.
func (r *Reconciler) upToDate(e *entry, f *workload.Effects, now time.Time) bool {
	known, worth := &e.recommendation, e.state.HashStatus(&f.Status)
	return known.resourceVersion != "" && known.worth.Stable == worth.Stable &&
		(known.worth.Fluctuating == worth.Fluctuating || now.Sub(known.writtenAt) < r.Settings.CheckpointEvery)
}

// stored returns the cached recommendation; nil: none.
func (r *Reconciler) stored(ctx context.Context, ref memory.WorkloadRef) (*v1alpha1.MemoryRecommendation, error) {
	var rec v1alpha1.MemoryRecommendation
	err := r.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: policy.RecordName(ref)}, &rec)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &rec, nil
}

func (r *Reconciler) writeRecommendation(
	ctx context.Context, s *workload.Snapshot, rec *v1alpha1.MemoryRecommendation,
	status v1alpha1.MemoryRecommendationStatus,
) error {
	if rec.ResourceVersion == "" {
		if s.Owner.UID == "" {
			return fmt.Errorf("%w: the UID of %s", errNotYet, s.Owner.Ref) // a record written now would have no owner
		}
		rec.ObjectMeta = newRecord(s.Owner)
		if err := r.Create(ctx, rec); err != nil {
			return fmt.Errorf("creating MemoryRecommendation %s/%s: %w", rec.Namespace, rec.Name, err)
		}
	}
	rec.Status = status
	rec.Status.ObservedGeneration = rec.Generation
	for i := range rec.Status.Conditions {
		rec.Status.Conditions[i].ObservedGeneration = rec.Generation
	}
	if err := r.Status().Update(ctx, rec); err != nil {
		return fmt.Errorf("writing the status of MemoryRecommendation %s/%s: %w", rec.Namespace, rec.Name, err)
	}
	return nil
}

// withdraw deletes the recommendation of a workload that no profile governs any longer.
func (r *Reconciler) withdraw(ctx context.Context, ref memory.WorkloadRef) error {
	rec, err := r.stored(ctx, ref)
	if err != nil || rec == nil {
		return err
	}
	if err := r.Delete(ctx, rec); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting MemoryRecommendation %s/%s: %w", rec.Namespace, rec.Name, err)
	}
	return nil
}

// warn records an Event, once, if the workload's profile is missing or profiles conflict, and stores the problem for
// the status of these profiles.
func (r *Reconciler) warn(s *workload.Snapshot) {
	if s.Problem != profile.NotFound && s.Problem != profile.Ambiguous {
		r.Problems.Clear(s.Owner.Ref)
	} else if r.Problems.Set(s.Owner.Ref, s.Why, s.Claims) {
		r.Recorder.Record(s.Owner, workload.ProfileProblem(s.Owner, s.Problem, s.Why))
	}
}
