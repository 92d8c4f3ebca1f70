// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/workload"
)

// Executor carries out a step's decisions on running pods.
type Executor struct {
	// Evict evicts one pod, with its UID as a precondition (see [Evictor]). Nil: drift.action: Restart reports only.
	Evict func(context.Context, *corev1.Pod) error
	// Resize resizes the containers of one pod (see [Resizer]). nil: running pods are never resized.
	Resize func(context.Context, *corev1.Pod, map[string]memory.Size) error
	// HasRight reports whether memfit has the right to an action that the API server refused (see [Rights]). nil: assume
	// it.
	HasRight func(context.Context, *corev1.Pod, rollout.Action) (bool, error)
}

// resizesAtOnce bounds concurrent resizes of one workload's pods. On a busy node of two cores one resize took up to 500
// ms: without concurrency, 20 pods killed in the same second waited 5 s, and were killed again.
const resizesAtOnce = 10

// act carries out the step's decisions on running pods, which the checkpoint already has. Resizes that disturb no pod
// run concurrently; others run one by one, each after a count of the available pods.
func (r *Reconciler) act(
	ctx context.Context, s *workload.Snapshot, m *workload.State, actions []rollout.Action, now time.Time,
) error {
	var resizes, disturbances []rollout.Action
	for _, a := range actions {
		if pod := s.Pod(a.UID); pod != nil && workload.Disturbs(pod, a) {
			disturbances = append(disturbances, a)
		} else {
			resizes = append(resizes, a)
		}
	}
	outcomes, failed := make([]rollout.Outcome, len(resizes)), make([]error, len(resizes))
	var sent sync.WaitGroup
	places := make(chan struct{}, resizesAtOnce)
	for i, a := range resizes {
		places <- struct{}{}
		sent.Go(func() {
			defer func() { <-places }()
			outcomes[i], failed[i] = r.carryOutAlone(ctx, s, m, a)
		})
	}
	sent.Wait()
	for i, a := range resizes {
		m.Rollout().Note(a, outcomes[i], now)
	}
	for _, a := range disturbances {
		outcome, err := r.carryOut(ctx, s, m, a)
		m.Rollout().Note(a, outcome, now)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// carryOutAlone is carryOut for its own goroutine. It turns a panic into an error, as for a reconcile.
func (r *Reconciler) carryOutAlone(
	ctx context.Context, s *workload.Snapshot, m *workload.State, a rollout.Action,
) (o rollout.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			o, err = rollout.Outcome{}, fmt.Errorf("%s a pod of %s: panic: %v\n%s", verbOf(a), s.Owner.Ref, p, debug.Stack())
		}
	}()
	return r.carryOut(ctx, s, m, a)
}

// podCount returns the desired number of pods of a workload; 0: unknown. For a class of a DaemonSet it subtracts pods
// of other classes; a missing pod may be of any class.
func (r *Reconciler) podCount(ctx context.Context, ref memory.WorkloadRef) (int, error) {
	wanted, err := r.sweeper().PodCount(ctx, ref)
	if err != nil || ref.NodeClass == "" {
		return wanted, err
	}
	return max(wanted-r.Inbox.NodesOfOthers(ref), 0), nil
}

// carryOut carries out one action on one pod.
func (r *Reconciler) carryOut(
	ctx context.Context, s *workload.Snapshot, m *workload.State, a rollout.Action,
) (rollout.Outcome, error) {
	pod := s.Pod(a.UID)
	if pod == nil || a.Evict && r.Executor.Evict == nil || !a.Evict && r.Executor.Resize == nil {
		return rollout.Outcome{Kind: rollout.OutcomeGone}, nil
	}
	if workload.Disturbs(pod, a) {
		wanted, err := r.podCount(ctx, s.Owner.Ref)
		why := m.TooFewServe(s, a, wanted)
		if err != nil {
			why = quote.Line(err.Error())
		}
		if why != "" {
			return rollout.Outcome{Kind: rollout.OutcomeTooFew, Why: why}, nil
		}
	}
	var err error
	if a.Evict {
		err = r.Executor.Evict(ctx, pod)
	} else {
		err = r.Executor.Resize(ctx, pod, a.Sizes)
	}
	if errors.Is(err, errChanged) {
		// The pod's change triggers the next step, which decides again.
		return rollout.Outcome{}, nil
	}
	o, failed := workload.OutcomeOf(a, err, r.lacksRight(ctx, pod, a, err))
	if o.Kind == rollout.OutcomeRefused && !a.Evict {
		o.Why += workload.RefusedWhole(pod)
	}
	switch {
	case err == nil:
		r.changed(s, pod, a)
	case (o.Kind == rollout.OutcomeRefused || o.Kind == rollout.OutcomeNoRight) && !a.Restart:
		r.Recorder.Record(s.Owner, workload.RefusedPod(s.Owner, pod, a, o.Why))
	case failed != nil:
		failed = fmt.Errorf("%s pod %s/%s: %w", verbOf(a), pod.Namespace, pod.Name, failed)
	}
	return o, failed
}

// lacksRight reports whether an action was refused because memfit lacks the right to it. Where that is unknown, another
// reason is assumed.
func (r *Reconciler) lacksRight(ctx context.Context, pod *corev1.Pod, a rollout.Action, err error) bool {
	if !apierrors.IsForbidden(err) || r.Executor.HasRight == nil {
		return false
	}
	has, unknown := r.Executor.HasRight(ctx, pod, a)
	if unknown != nil {
		logf.FromContext(ctx).Error(unknown, "Could not find out why an action was refused", "pod", klog.KObj(pod))
	}
	return unknown == nil && !has
}

// changed counts and reports a change that the API server accepted.
func (r *Reconciler) changed(s *workload.Snapshot, pod *corev1.Pod, a rollout.Action) {
	if a.Restart {
		r.Metrics.restarted(s.Owner.Ref)
		r.Recorder.Record(s.Owner, workload.Restarted(s.Owner, pod, a.Why))
		return
	}
	r.Metrics.applied(s.Owner.Ref, actionName(a))
	r.Recorder.Record(s.Owner, workload.ChangedPod(s.Owner, pod, a))
}

func verbOf(a rollout.Action) string {
	if a.Evict {
		return "evicting"
	}
	return "resizing"
}
