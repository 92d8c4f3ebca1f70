// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/workload"
)

const (
	// reconcileTimeout is how long one reconcile of a workload may take. It usually takes milliseconds, and a second for
	// the largest; ten seconds allow for a slow API server, and bound the delay of other workloads.
	reconcileTimeout = 10 * time.Second
	// firstRest and longestRest bound the backoff after a reconcile that took too long, doubled each time.
	firstRest   = 20 * time.Second
	longestRest = 10 * time.Minute
	// statusBudget bounds the write of that status.
	statusBudget = 3 * time.Second
	// refusedFor is how long the API server may refuse a checkpoint before that is reported: by then memfit has retried
	// ten times, and temporary causes have passed.
	refusedFor = 10 * time.Second
	// longestRefused is the longest backoff after a refused checkpoint: a user who fixes the cause waits for it, and an
	// attempt is only one write.
	longestRefused = time.Minute
)

// errNotSaved means that a checkpoint was not written.
var errNotSaved = errors.New("the workload's checkpoint was not stored")

// errUnreadable means that a stored checkpoint cannot be decoded.
var errUnreadable = errors.New("the stored checkpoint cannot be read")

// backoffs holds the workloads whose last reconcile took too long, or whose checkpoint is refused. Safe for concurrent
// use; the zero value is empty.
type backoffs struct {
	mu  sync.Mutex
	all map[memory.WorkloadRef]backoff
}

// backoff is the end and length of a workload's backoff; since is when its checkpoint was first refused.
type backoff struct {
	until time.Time
	wait  time.Duration
	since time.Time
}

// wait returns the remaining backoff of a workload.
func (o *backoffs) wait(w memory.WorkloadRef, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[w].until.Sub(now)
}

// again records a failed reconcile, and returns the backoff, at most longest. first: there was no backoff before.
func (o *backoffs) again(w memory.WorkloadRef, now time.Time, longest time.Duration) (wait time.Duration, first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.entry(w)
	wait = min(max(2*before.wait, firstRest), longest)
	o.all[w] = backoff{now.Add(wait), wait, before.since}
	return wait, before.wait == 0
}

// refused records a refused checkpoint, and returns for how long it has been refused.
func (o *backoffs) refused(w memory.WorkloadRef, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.entry(w)
	if b.since.IsZero() {
		b.since = now
		o.all[w] = b
	}
	return now.Sub(b.since)
}

func (o *backoffs) entry(w memory.WorkloadRef) backoff {
	if o.all == nil {
		o.all = map[memory.WorkloadRef]backoff{}
	}
	return o.all[w]
}

func (o *backoffs) done(w memory.WorkloadRef) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, w)
}

// refused reports whether the API server rejects the checkpoint itself. After a conflict or a deletion, the next
// reconcile reads it again.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.Is(err, errNotSaved) && errors.As(err, &status) && !apierrors.IsConflict(err) &&
		!apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err)
}

// notSaved handles a checkpoint that the API server refuses. The workload waits and reports why, because unstored
// changes might be repeated. Events remain in the inbox.
func (r *Reconciler) notSaved(ctx context.Context, ref memory.WorkloadRef, err error) (reconcile.Result, error) {
	now := r.Clock.Now()
	if r.overdue.refused(ref, now) < refusedFor {
		return reconcile.Result{}, err // most refusals are temporary
	}
	wait, first := r.overdue.again(ref, now, longestRefused)
	logf.FromContext(ctx).Error(err, "The API server refuses the checkpoint", "again", wait)
	r.stalled(ctx, ref, v1alpha1.ReasonCheckpointRefused,
		fmt.Sprintf("memfit cannot store the checkpoint of this workload, and counts, recommends and changes nothing "+
			"until it can; it retries at %s, and nothing is lost until then: %s", format.Time(now.Add(wait)),
			quote.Line(err.Error())), first)
	return reconcile.Result{RequeueAfter: wait}, nil
}

// notRead handles a checkpoint that this memfit cannot read, as after a rollback to an older version. Checkpoint and
// workload remain unchanged: otherwise kills would count twice, and changes repeat.
func (r *Reconciler) notRead(ctx context.Context, ref memory.WorkloadRef, err error) (reconcile.Result, error) {
	wait, first := r.overdue.again(ref, r.Clock.Now(), longestRest)
	logf.FromContext(ctx).Error(err, "Cannot read the checkpoint", "again", wait)
	name := ref.Namespace + "/" + policy.RecordName(ref)
	reason, why := v1alpha1.ReasonCheckpointUnreadable, fmt.Sprintf("memfit does not manage this workload: "+
		"MemoryCheckpoint %s cannot be read. Restore or delete it; deleting forgets its history and sizes: %s", name,
		quote.Line(err.Error()))
	if errors.Is(err, workload.ErrTooNew) {
		reason, why = v1alpha1.ReasonCheckpointTooNew, fmt.Sprintf("memfit does not manage this workload: a newer version "+
			"wrote MemoryCheckpoint %s. Upgrade memfit, or delete the MemoryCheckpoint, which forgets its history and "+
			"sizes", name)
	}
	r.stalled(ctx, ref, reason, why, first)
	return reconcile.Result{RequeueAfter: wait}, nil
}

// stalled reports in an Event, and in the recommendation if there is one, why the reconcile does not succeed. The next
// successful reconcile removes the condition.
func (r *Reconciler) stalled(ctx context.Context, ref memory.WorkloadRef, reason, why string, first bool) {
	if first {
		of := memory.Workload{Ref: ref, UID: r.Inbox.Owner(ref)}
		r.Recorder.Record(of, workload.Event{
			Regarding: workload.WorkloadObject(of), Kind: corev1.EventTypeWarning,
			Reason: reason, Action: "Observed", Note: why,
		})
	}
	ctx, cancel := context.WithTimeout(ctx, statusBudget)
	defer cancel()
	var rec v1alpha1.MemoryRecommendation
	key := client.ObjectKey{Namespace: ref.Namespace, Name: policy.RecordName(ref)}
	err := r.APIReader.Get(ctx, key, &rec)
	if err == nil && r.setStalled(&rec, reason, why) {
		err = r.Status().Update(ctx, &rec)
	}
	if err != nil {
		if !apierrors.IsNotFound(err) {
			logf.FromContext(ctx).Error(err, "Could not write why a workload is stalled")
		}
		return
	}
	if e, known := r.states.get(ref); known {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.recommendation = e.projectionOf(&rec)
	}
}

// setStalled sets the conditions Stalled and Ready of a recommendation, and reports whether that changes them.
func (r *Reconciler) setStalled(rec *v1alpha1.MemoryRecommendation, reason, why string) (changed bool) {
	for kind, status := range map[string]metav1.ConditionStatus{
		v1alpha1.ConditionStalled: metav1.ConditionTrue, v1alpha1.ConditionReady: metav1.ConditionFalse,
	} {
		changed = meta.SetStatusCondition(&rec.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: why, LastTransitionTime: metav1.NewTime(r.Clock.Now()),
			ObservedGeneration: rec.Generation,
		}) || changed
	}
	rec.Status.Problem = workload.Problem(rec.Status.Conditions)
	return changed
}
