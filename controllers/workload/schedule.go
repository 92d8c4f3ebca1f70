// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/workload"
)

// [workload.Timing] decides after a step when the next is due, and [workload.Arrival] when an event requests one.
// Other waits are only those of failed reconciles, with increasing delays (backoffs, and the queue's rate limiter), and
// of reconciles with a lagging cache (notYet).

// schedule sets how long samples alone cause no step, and returns after what time a step is due without any event.
func (r *Reconciler) schedule(e *entry, t workload.Timing, now time.Time) (requeueAfter time.Duration) {
	t.Interval, t.Workloads = r.Settings.StepInterval, r.states.len()
	t.Checkpoint = e.savedAt.Add(r.Settings.CheckpointEvery).Sub(now)
	requeueAfter, rest := t.Next()
	e.restUntil = now.Add(rest)
	return requeueAfter
}

// postpone returns how long a workload's next step may wait; 0: the step is due. While it waits, the state absorbs new
// samples.
func (r *Reconciler) postpone(
	ref memory.WorkloadRef, events *workload.PendingEvents, pods int, now time.Time,
) time.Duration {
	e, known := r.states.get(ref)
	if !known {
		return 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.state.DropOldCounters(events)
	arrival := workload.Arrival{
		Now: now, SteppedAt: e.state.SteppedAt(), RestUntil: e.restUntil, Pods: pods, Suspect: e.suspect,
		Runs:  identity.IsIdentity(ref),
		Ended: e.state.ContainerEnded(events), OnlySamples: events.OnlySamples() || old && events.Quiet(),
	}
	wait, absorb := arrival.Wait()
	if !absorb {
		return wait
	}
	pressing := e.state.AddSamples(events, now)
	r.Inbox.Done(ref)
	if pressing {
		return 0
	}
	return wait
}

const (
	// reconcileTimeout is how long one reconcile of a workload may take. It usually takes milliseconds, and a second for
	// the largest; ten seconds allow for a slow API server, and bound the delay of other workloads.
	reconcileTimeout = 10 * time.Second
	// firstBackoff and longestBackoff limit the backoff after a reconcile that took too long, doubled each time.
	firstBackoff   = 20 * time.Second
	longestBackoff = 10 * time.Minute
	statusTimeout  = 3 * time.Second // for writing the condition Stalled
	// refusedFor is how long the API server may refuse a checkpoint before memfit reports the refusal: by then it has
	// retried ten times, and temporary causes have passed.
	refusedFor = 10 * time.Second
	// longestRefused is the longest backoff after a refused checkpoint. It is short, because a user who has fixed the
	// cause waits for the retry, and a retry is only one write.
	longestRefused = time.Minute
)

var (
	errNotSaved   = errors.New("the workload's checkpoint was not stored")
	errUnreadable = errors.New("the stored checkpoint cannot be read")
)

// backoffs holds the workloads whose last reconcile took too long, or whose checkpoint is refused. Safe for concurrent
// use; the zero value is empty.
type backoffs struct {
	mu  sync.Mutex
	all map[memory.WorkloadRef]backoff
}

type backoff struct {
	until time.Time     // its end
	wait  time.Duration // its length
	since time.Time     // when the workload's checkpoint was first refused; zero: it is not refused
}

func (o *backoffs) wait(w memory.WorkloadRef, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[w].until.Sub(now)
}

// extend records a failed reconcile, and returns the next backoff, at most longest. first is true if there was none.
func (o *backoffs) extend(w memory.WorkloadRef, now time.Time, longest time.Duration) (wait time.Duration, first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.entry(w)
	wait = min(max(2*before.wait, firstBackoff), longest)
	o.all[w] = backoff{now.Add(wait), wait, before.since}
	return wait, before.wait == 0
}

// refused records a refused checkpoint, and returns how long the API server has refused it.
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

// refused reports whether the API server refuses the checkpoint itself. After a conflict or a deletion, the next
// reconcile reads the checkpoint again instead.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.Is(err, errNotSaved) && errors.As(err, &status) && !apierrors.IsConflict(err) &&
		!apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err)
}

// notSaved handles a checkpoint that the API server refuses. memfit delays the workload's next reconcile and reports
// why: without the checkpoint, it could make a change twice. Events remain in the inbox.
func (r *Reconciler) notSaved(ctx context.Context, ref memory.WorkloadRef, err error) (reconcile.Result, error) {
	if r.backoffs.refused(ref, r.Clock.Now()) < refusedFor {
		return reconcile.Result{}, err // most refusals are temporary
	}
	return r.stalled(ctx, ref, longestRefused, err, v1alpha1.ReasonCheckpointRefused, func(next string) string {
		return fmt.Sprintf("memfit cannot store the checkpoint of this workload. Until it can, it recommends and changes "+
			"nothing, and keeps new OOM kills to count them later; it retries at %s: %s", next, quote.Line(err.Error()))
	}), nil
}

// notRead handles a checkpoint that memfit cannot read, as after a rollback to an older version. Checkpoint and
// workload remain unchanged: otherwise memfit could count kills twice and repeat changes.
func (r *Reconciler) notRead(ctx context.Context, ref memory.WorkloadRef, err error) reconcile.Result {
	name := ref.Namespace + "/" + policy.RecordName(ref)
	reason, why := v1alpha1.ReasonCheckpointUnreadable, fmt.Sprintf("memfit does not manage this workload: "+
		"MemoryCheckpoint %s cannot be read. Restore or delete it; deleting forgets its history and sizes: %s", name,
		quote.Line(err.Error()))
	if errors.Is(err, workload.ErrTooNew) {
		reason, why = v1alpha1.ReasonCheckpointTooNew, fmt.Sprintf("memfit does not manage this workload: a newer version "+
			"wrote MemoryCheckpoint %s. Upgrade memfit, or delete the MemoryCheckpoint, which forgets its history and "+
			"sizes", name)
	}
	return r.stalled(ctx, ref, longestBackoff, err, reason, func(string) string { return why })
}

// stalled delays the next reconcile of a workload, by at most longest, and reports why in an Event and in the
// recommendation, if any. message gets the time of the next reconcile. If that succeeds, it removes the condition.
func (r *Reconciler) stalled(
	ctx context.Context, ref memory.WorkloadRef, longest time.Duration, err error, reason string,
	message func(next string) string,
) reconcile.Result {
	wait, first := r.backoffs.extend(ref, r.Clock.Now(), longest)
	logf.FromContext(ctx).Error(err, "Reconcile failed; retrying later", "reason", reason, "retryAfter", wait)
	why := message(format.Time(r.Clock.Now().Add(wait)))
	if first {
		of := memory.Workload{Ref: ref, UID: r.Inbox.Owner(ref)}
		r.Recorder.Record(of, workload.Stalled(of, reason, why))
	}
	r.writeStalled(ctx, ref, reason, why)
	return reconcile.Result{RequeueAfter: wait}
}

func (r *Reconciler) writeStalled(ctx context.Context, ref memory.WorkloadRef, reason, why string) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var rec v1alpha1.MemoryRecommendation
	key := client.ObjectKey{Namespace: ref.Namespace, Name: policy.RecordName(ref)}
	err := r.APIReader.Get(ctx, key, &rec)
	if err == nil && r.setStalled(&rec, reason, why) {
		err = r.Status().Update(ctx, &rec)
	}
	e, known := r.states.get(ref)
	switch {
	case client.IgnoreNotFound(err) != nil:
		logf.FromContext(ctx).Error(err, "Could not write why a workload is stalled")
	case err == nil && known:
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
