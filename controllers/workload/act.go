// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/workload"
)

// act does to running pods what the step decided, which the checkpoint says already.
func (r *Reconciler) act(
	ctx context.Context, s *workload.Snapshot, m *workload.State, actions []rollout.Action, now time.Time,
) error {
	var failed error
	for _, a := range actions {
		result, err := r.carryOut(ctx, s, a)
		m.Note(a, result, now)
		failed = errors.Join(failed, err)
	}
	return failed
}

// carryOut does one thing to one pod.
func (r *Reconciler) carryOut(ctx context.Context, s *workload.Snapshot, a rollout.Action) (workload.Outcome, error) {
	pod := s.Pod(a.UID)
	if pod == nil || !a.Evict && !a.Restart && r.Resize == nil || (a.Evict || a.Restart) && r.Evict == nil {
		return workload.Outcome{Kind: workload.OutcomeGone}, nil
	}
	var err error
	if a.Evict || a.Restart {
		err = r.Evict(ctx, pod)
	} else {
		err = r.Resize(ctx, pod, a.Sizes)
	}
	if errors.Is(err, errChanged) {
		// A change of the pod brings the next step, which finds what there is then.
		return workload.Outcome{}, nil
	}
	o, failed := outcomeOf(a, err)
	if o.Kind == workload.OutcomeRefused && !a.Evict && !a.Restart {
		o.Why += workload.RefusedWhole(pod)
	}
	switch {
	case err == nil:
		r.changed(s, pod, a)
	case (o.Kind == workload.OutcomeRefused || o.Kind == workload.OutcomeNoRight) && !a.Restart:
		r.recordEvent(workload.RefusedPod(s.Owner, pod, a, o.Why))
	case failed != nil:
		failed = fmt.Errorf("%s pod %s/%s: %w", verbOf(a), pod.Namespace, pod.Name, failed)
	}
	return o, failed
}

// changed tells that the API server took a change.
func (r *Reconciler) changed(s *workload.Snapshot, pod *corev1.Pod, a rollout.Action) {
	if a.Restart {
		r.Metrics.restarted(s.Owner.Ref)
		r.recordEvent(workload.RestartedPod(s.Owner, pod, a.Why))
		r.recordEvent(workload.RestartedWorkload(s.Owner, pod, a.Why))
		return
	}
	r.Metrics.applied(s.Owner.Ref, actionName(a))
	r.recordEvent(workload.ChangedPod(s.Owner, pod, a))
}

func verbOf(a rollout.Action) string {
	if a.Evict || a.Restart {
		return "evicting"
	}
	return "resizing"
}

// outcomeOf says what the API server's answer means, and returns the error again where it means nothing for sure.
func outcomeOf(a rollout.Action, err error) (workload.Outcome, error) {
	evicts := a.Evict || a.Restart
	switch {
	case err == nil:
		return workload.Outcome{}, nil
	case !evicts && apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// Not the pod is missing, but the path.
		return workload.Outcome{Kind: workload.OutcomeRefused,
			Why: "this API server does not know pods/resize, which is on by default since Kubernetes 1.33: " +
				"was the feature gate InPlacePodVerticalScaling turned off?"}, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return workload.Outcome{Kind: workload.OutcomeGone}, nil
	case evicts && apierrors.IsTooManyRequests(err):
		return workload.Outcome{Kind: workload.OutcomeBudget}, nil
	case a.Restart && apierrors.IsForbidden(err):
		return workload.Outcome{
			Kind: workload.OutcomeRefused,
			Why: "memfit may not evict pods here (the kustomize component config/rbac/evict-pods grants it): " +
				quote.Line(err.Error()),
		}, nil
	case noRight(err):
		return workload.Outcome{
			Kind: workload.OutcomeNoRight, Why: "the API server refuses it: " + quote.Line(err.Error()) + granted(a),
		}, nil
	case !a.Restart && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsBadRequest(err)):
		return workload.Outcome{
			Kind: workload.OutcomeRefused, Why: "the API server refuses it: " + quote.Line(err.Error()),
		}, nil
	}
	return workload.Outcome{}, err
}

// noRight: RBAC, or whoever else authorizes, says so. Admission plugins and webhooks forbid in other words, and then no
// right would help.
func noRight(err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	text := err.Error()
	return strings.Contains(text, " cannot patch resource ") || strings.Contains(text, " cannot create resource ")
}

// granted says which part of the installation holds the right that is missing.
func granted(a rollout.Action) string {
	if a.Evict {
		return " (the kustomize component config/rbac/evict-pods grants it, or rights.evictPods of the chart)"
	}
	return " (the kustomize component config/rbac/resize-pods grants it, or rights.resizePods of the chart)"
}
