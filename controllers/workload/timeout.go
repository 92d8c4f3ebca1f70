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
	// the largest; ten leave room for a slow API server, and hold another workload back for no longer than that.
	reconcileTimeout = 10 * time.Second
	// firstRest and longestRest are how long a workload is left alone after a reconcile that took too long: twice as long
	// each time.
	firstRest   = 20 * time.Second
	longestRest = 10 * time.Minute
	// sayBudget is for writing that down.
	sayBudget = 3 * time.Second
)

// backoffs are the workloads whose last reconcile took too long. Safe for concurrent use; the zero value is empty.
type backoffs struct {
	mu  sync.Mutex
	all map[memory.WorkloadRef]backoff
}

// backoff is until when a workload is left alone, and how long that is.
type backoff struct {
	until time.Time
	wait  time.Duration
}

// wait is how long a workload is still left alone.
func (o *backoffs) wait(w memory.WorkloadRef, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[w].until.Sub(now)
}

// again notes that a reconcile took too long, and returns how long the workload is left alone. first: the one before
// did not.
func (o *backoffs) again(w memory.WorkloadRef, now time.Time) (wait time.Duration, first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[memory.WorkloadRef]backoff{}
	}
	before, known := o.all[w]
	wait = min(max(2*before.wait, firstRest), longestRest)
	o.all[w] = backoff{now.Add(wait), wait}
	return wait, !known
}

func (o *backoffs) done(w memory.WorkloadRef) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, w)
}

// Reconcile deals with one workload within a budget of time, so that no workload holds another back for more than
// seconds. A workload whose reconcile takes longer is left alone for a while, and says so.
func (r *Reconciler) Reconcile(ctx context.Context, ref memory.WorkloadRef) (reconcile.Result, error) {
	if wait := r.overdue.wait(ref, r.Clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	defer r.Watchdog.Begin(ref)()
	began := r.Clock.Now()
	within, cancel := context.WithTimeout(ctx, cmp.Or(r.Timeout, reconcileTimeout))
	defer cancel()
	result, err := r.reconcile(within, ref)
	if err == nil || !errors.Is(within.Err(), context.DeadlineExceeded) {
		r.overdue.done(ref)
		return result, err
	}
	wait, first := r.overdue.again(ref, r.Clock.Now())
	logf.FromContext(ctx).Error(err, "The reconcile took too long and was given up", "again", wait)
	r.Metrics.gaveUp()
	r.stalled(ctx, ref, fmt.Sprintf("A reconcile of this workload, begun at %s, did not end within %s and was given up; "+
		"the next is at %s: %s", format.Time(began), format.InWords(cmp.Or(r.Timeout, reconcileTimeout)),
		format.Time(r.Clock.Now().Add(wait)), quote.Line(err.Error())), first)
	return reconcile.Result{RequeueAfter: wait}, nil
}

// stalled says on the workload, and in its recommendation if it has one, that its reconcile did not end. The next one
// that ends writes a status without that.
func (r *Reconciler) stalled(ctx context.Context, ref memory.WorkloadRef, why string, first bool) {
	if first {
		r.recordEvent(workload.Event{
			Regarding: workload.WorkloadObject(memory.Workload{Ref: ref}), Kind: corev1.EventTypeWarning,
			Reason: v1alpha1.ReasonReconcileTimedOut, Action: "Observed", Note: why,
		})
	}
	ctx, cancel := context.WithTimeout(ctx, sayBudget)
	defer cancel()
	var rec v1alpha1.MemoryRecommendation
	key := client.ObjectKey{Namespace: ref.Namespace, Name: policy.RecordName(ref)}
	err := r.Live.Get(ctx, key, &rec)
	if err == nil {
		meta.SetStatusCondition(&rec.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReconcileTimedOut,
			Message:            why,
			LastTransitionTime: metav1.NewTime(r.Clock.Now()),
		})
		err = r.Status().Update(ctx, &rec)
	}
	if err != nil {
		if !apierrors.IsNotFound(err) {
			logf.FromContext(ctx).Error(err, "Could not write that the reconcile took too long")
		}
		return
	}
	if e, known := r.states.get(ref); known {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.recommendation = projectionOf(&rec)
	}
}
