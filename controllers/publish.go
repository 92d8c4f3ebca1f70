// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/govern"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/records"
)

// projection is what is known of a workload's MemoryRecommendation: enough to know whether it must be written, and to write it.
type projection struct {
	meta metav1.ObjectMeta
	spec v1alpha1.MemoryRecommendationSpec
	// conditions as written, without messages: for transition times.
	conditions []metav1.Condition
	// gist is the hash of what was written last, without what changes with every sample.
	gist uint64
}

func projectionOf(rec *v1alpha1.MemoryRecommendation) projection {
	p := projection{
		meta: metav1.ObjectMeta{Name: rec.Name, Namespace: rec.Namespace, UID: rec.UID, ResourceVersion: rec.ResourceVersion, Generation: rec.Generation, OwnerReferences: rec.OwnerReferences},
		spec: rec.Spec, gist: statusHash(&rec.Status, sizes(&rec.Status)),
	}
	for _, c := range rec.Status.Conditions {
		p.conditions = append(p.conditions, metav1.Condition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
	}
	return p
}

// statusHash is a hash of what makes a status worth writing: numbers rounded so that they change a few times in a workload's life, and no
// prose. A size that is close to the one that stands counts as that one. Without it every sample would be an API write; with it a
// steady workload costs a handful of writes a day.
func statusHash(s *v1alpha1.MemoryRecommendationStatus, standing map[string]v1alpha1.Size) uint64 {
	c := s.DeepCopy()
	for i := range c.Containers {
		r := &c.Containers[i]
		if size, found := standing[r.Container]; found && r.Recommended != nil && near(*r.Recommended, size) {
			r.Recommended = &size
		}
		r.Reasons, r.Summary, r.Evidence.Window, r.UseSeen = nil, "", "", nil
		r.Evidence.Samples = rounded125(r.Evidence.Samples)
		for _, q := range []**resource.Quantity{&r.Evidence.PeakRSS, &r.Evidence.PeakWorkingSet, &r.Evidence.Trough, &r.Use} {
			*q = coarse(*q)
		}
		if r.Shape != nil {
			r.Shape.Summary, r.Shape.TimeToLimit, r.Shape.RatePerDay = "", "", coarse(r.Shape.RatePerDay)
			slices.Sort(r.Shape.SickPods) // who is the worst of them changes with every sample
		}
	}
	for i := range c.Conditions {
		c.Conditions[i].LastTransitionTime, c.Conditions[i].ObservedGeneration = metav1.Time{}, 0
		if c.Conditions[i].Reason != v1alpha1.ReasonConflict { // whose message is who it is with
			c.Conditions[i].Message = ""
		}
	}
	c.Summary, c.Limit, c.ObservedGeneration = "", "", 0
	data, err := json.Marshal(c)
	if err != nil {
		return 0 // cannot happen with these types; 0 means: write
	}
	h := fnv.New64a()
	_, _ = h.Write(data)
	return h.Sum64()
}

// nearPercent: evidence moves a number a little every hour. Nobody acts on 3 %, and every change is a write and an event.
const nearPercent = 5

// near says whether a size is as good as the one that stands.
func near(a, b v1alpha1.Size) bool {
	return nearQuantity(a.Limit, b.Limit) && nearQuantity(a.Request, b.Request)
}

func nearQuantity(a, b *resource.Quantity) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := memory.FromQuantity(*a), memory.FromQuantity(*b)
	return max(x, y).Minus(min(x, y)) <= y.Percent(nearPercent)
}

// sizes are the sizes that a status recommends, by container.
func sizes(s *v1alpha1.MemoryRecommendationStatus) map[string]v1alpha1.Size {
	standing := map[string]v1alpha1.Size{}
	for i := range s.Containers {
		if r := s.Containers[i].Recommended; r != nil {
			standing[s.Containers[i].Container] = *r
		}
	}
	return standing
}

// rounded125 rounds down to 1, 2 or 5 times a power of ten: three writes for each tenfold evidence.
func rounded125(n int64) int64 {
	for unit := int64(1); unit > 0 && unit <= n; unit *= 10 {
		switch {
		case n < 2*unit:
			return unit
		case n < 5*unit:
			return 2 * unit
		case n < 10*unit:
			return 5 * unit
		}
	}
	return 0
}

// coarse rounds up to an eighth of a power of two: 6 to 12 %.
func coarse(q *resource.Quantity) *resource.Quantity {
	if q == nil {
		return nil
	}
	b := memory.FromQuantity(*q)
	unit := memory.MiB
	for unit*16 < b {
		unit *= 2
	}
	return exact(b.CeilTo(unit))
}

// publish writes the MemoryRecommendation if it says something new.
func (r *WorkloadReconciler) publish(ctx context.Context, s *snapshot, e *entry, f *effects, now time.Time) error {
	f.status.Conditions = settled(f.status.Conditions, e.recommendation.conditions, 0, now) // 0: the object's, which its write tells
	spec := v1alpha1.MemoryRecommendationSpec{
		Profile:  s.profile.Ref,
		Workload: v1alpha1.WorkloadReference{APIVersion: s.owner.Ref.APIVersion, Kind: s.owner.Ref.Kind, Name: s.owner.Ref.Name},
	}
	if upToDate, err := r.upToDate(ctx, s, e, f, spec); err != nil || upToDate {
		return err
	}
	rec := &v1alpha1.MemoryRecommendation{ObjectMeta: *e.recommendation.meta.DeepCopy(), Spec: e.recommendation.spec}
	if err := r.writeRecommendation(ctx, s, rec, spec, f.status); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
			// Somebody edited or deleted it: take over what is there and try again.
			if again := r.recallRecommendation(ctx, s, e); again != nil {
				return again
			}
		}
		return err
	}
	e.recommendation, e.state.standing = projectionOf(rec), f.recommended
	r.Metrics.recommended(s.owner.Ref, f.status.Containers)
	return nil
}

// upToDate: the recommendation says all this already.
func (r *WorkloadReconciler) upToDate(ctx context.Context, s *snapshot, e *entry, f *effects, spec v1alpha1.MemoryRecommendationSpec) (bool, error) {
	known := &e.recommendation
	if known.meta.ResourceVersion == "" || known.spec != spec || known.gist != statusHash(&f.status, e.state.standing) {
		return false, nil
	}
	stored, err := r.stored(ctx, s.owner.Ref)
	switch {
	case err != nil:
		return false, err
	case stored == nil:
		e.recommendation = projection{}
		return false, nil
	case stored.Generation <= known.meta.Generation:
		return true, nil
	}
	// Somebody edited the spec: until it is put right, the object is not ready.
	return false, r.recallRecommendation(ctx, s, e)
}

// exists asks the cache whether the recommendation exists. A cache that lags after creation is no reason to write again: the
// deletion event queues the workload once more.
func (r *WorkloadReconciler) exists(ctx context.Context, workload memory.WorkloadRef) (bool, error) {
	rec, err := r.stored(ctx, workload)
	return rec != nil, err
}

// stored is the recommendation as the cache has it; nil: there is none.
func (r *WorkloadReconciler) stored(ctx context.Context, workload memory.WorkloadRef) (*v1alpha1.MemoryRecommendation, error) {
	var rec v1alpha1.MemoryRecommendation
	err := r.Get(ctx, client.ObjectKey{Namespace: workload.Namespace, Name: govern.RecordName(workload)}, &rec)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &rec, nil
}

func (r *WorkloadReconciler) writeRecommendation(ctx context.Context, s *snapshot, rec *v1alpha1.MemoryRecommendation, spec v1alpha1.MemoryRecommendationSpec, status v1alpha1.MemoryRecommendationStatus) error {
	switch {
	case rec.ResourceVersion == "" && s.owner.UID == "":
		return fmt.Errorf("%w: the UID of %s", errNotYet, s.owner.Ref) // what is written now would be nobody's
	case rec.ResourceVersion == "":
		rec.ObjectMeta = metav1.ObjectMeta{Namespace: s.owner.Ref.Namespace, Name: govern.RecordName(s.owner.Ref), OwnerReferences: []metav1.OwnerReference{records.Owner(s.owner.Ref, s.owner.UID)}}
		rec.Spec = spec
		if err := r.Create(ctx, rec); err != nil {
			return fmt.Errorf("creating MemoryRecommendation %s/%s: %w", rec.Namespace, rec.Name, err)
		}
	case rec.Spec != spec:
		rec.Spec = spec
		if err := r.Update(ctx, rec); err != nil {
			return fmt.Errorf("updating MemoryRecommendation %s/%s: %w", rec.Namespace, rec.Name, err)
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

// withdraw deletes the recommendation of a workload that nobody governs any more.
func (r *WorkloadReconciler) withdraw(ctx context.Context, workload memory.WorkloadRef) error {
	exists, err := r.exists(ctx, workload)
	if err != nil || !exists {
		return err
	}
	rec := &v1alpha1.MemoryRecommendation{ObjectMeta: metav1.ObjectMeta{Namespace: workload.Namespace, Name: govern.RecordName(workload)}}
	if err := r.Delete(ctx, rec); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting MemoryRecommendation %s/%s: %w", rec.Namespace, rec.Name, err)
	}
	return nil
}

// warn tells the workload's owner, once, that the profile it asks for cannot be had, and the profiles that stand in each other's way.
func (r *WorkloadReconciler) warn(s *snapshot) {
	if s.problem != profile.NotFound && s.problem != profile.Ambiguous {
		r.solved(s.owner.Ref)
		return
	}
	if r.Problems == nil {
		return
	}
	news, concerned := r.Problems.Set(s.owner.Ref, s.why, s.claims)
	if news {
		r.recordEvent(profileProblem(s.owner, s.problem, s.why))
	}
	r.concern(concerned)
}

// solved forgets the problem of a workload, and tells the profiles that stood in each other's way.
func (r *WorkloadReconciler) solved(w memory.WorkloadRef) {
	if r.Problems != nil {
		r.concern(r.Problems.Clear(w))
	}
}

func (r *WorkloadReconciler) concern(profiles []ProfileKey) {
	if len(profiles) > 0 && r.OnProblem != nil {
		r.OnProblem(profiles...)
	}
}
