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

// Executor does to running pods what a step decided.
type Executor struct {
	// Evict evicts one pod, with its UID as a precondition (see [Evictor]). Nil: drift.action: Restart reports only.
	Evict func(context.Context, *corev1.Pod) error
	// Resize gives the containers of one pod new sizes (see [Resizer]). Nil: running pods are never resized.
	Resize func(context.Context, *corev1.Pod, map[string]memory.Size) error
	// HasRight reports whether memfit has the right to an action (see [Rights]), after the API server refused it. Nil: it
	// is assumed.
	HasRight func(context.Context, *corev1.Pod, rollout.Action) (bool, error)
}

// resizesAtOnce bounds how many pods of one workload are resized at the same time. On a busy node of two cores one
// resize took up to 500 ms: 20 pods that were killed in the same second waited 5 s for their raises one after another,
// and died again.
const resizesAtOnce = 10

// act carries out what the step decided to do to running pods. The checkpoint holds it already. Resizes that disturb
// no pod do not wait for one another; others are carried out one by one, and before each the pods that serve are
// counted.
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

// carryOutAlone is carryOut for a goroutine of its own, in which a panic would end the process. It becomes an error, as
// a panic of a reconcile does.
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

// podCount is how many pods a workload is to have; 0: unknown. A DaemonSet's number is for all nodes: those that have a
// pod of another class do not count for this one. A pod that is missing may be of any class.
func (r *Reconciler) podCount(ctx context.Context, ref memory.WorkloadRef) (int, error) {
	wanted, err := r.sweeper().PodCount(ctx, ref)
	if err != nil || ref.NodeClass == "" {
		return wanted, err
	}
	return max(wanted-r.Inbox.NodesOfOthers(ref), 0), nil
}

// carryOut does one thing to one pod.
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
		// A change of the pod brings the next step, which finds what there is then.
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

// changed counts and tells a change that the API server accepted.
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
