// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/rollout"
)

// OutcomeOf returns the outcome of an API server's response, and the error again if it is uncertain. noRight: memfit
// lacks the right, which the response does not show, because admission refuses with the same reason.
func OutcomeOf(a rollout.Action, err error, noRight bool) (rollout.Outcome, error) {
	switch {
	case err == nil:
		return rollout.Outcome{}, nil
	case !a.Evict && apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// The path is missing, not the pod.
		return rollout.Outcome{Kind: rollout.OutcomeRefused, All: true,
			Why: "this API server does not serve pods/resize, which is on by default since Kubernetes 1.33: check the " +
				"feature gate InPlacePodVerticalScaling"}, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return rollout.Outcome{Kind: rollout.OutcomeGone}, nil
	case a.Evict && apierrors.IsTooManyRequests(err):
		return rollout.Outcome{Kind: rollout.OutcomeBudget, Why: "a PodDisruptionBudget does not allow it now"}, nil
	case apierrors.IsForbidden(err) && noRight:
		return rollout.Outcome{
			Kind: rollout.OutcomeNoRight, Why: "the API server refuses it: " + quote.Line(err.Error()) + granted(a),
		}, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsMethodNotSupported(err),
		apierrors.IsBadRequest(err):
		return rollout.Outcome{
			Kind: rollout.OutcomeRefused, Why: "the API server refuses it: " + quote.Line(err.Error()),
		}, nil
	}
	return rollout.Outcome{}, err
}

// granted returns the part of the installation with the missing right.
func granted(a rollout.Action) string {
	if a.Evict {
		return " (the kustomize component config/rbac/evict-pods grants it, or rights.evictPods of the chart)"
	}
	return " (the kustomize component config/rbac/resize-pods grants it, or rights.resizePods of the chart)"
}

// Disturbs reports whether an action makes an available pod unavailable.
func Disturbs(pod *corev1.Pod, a rollout.Action) bool {
	restarts := false
	for c := range constraints.Containers(&pod.Spec) {
		_, asked := a.Sizes[c.Name]
		restarts = restarts || asked && oom.RestartsOnResize(c)
	}
	return serves(pod) && (a.Evict || !a.Undo && restarts)
}

// TooFewServe returns why no further pod may become unavailable; empty: one may. wanted is the desired number of pods;
// 0: unknown, so that all pods that have not ended count, also unscheduled and terminating ones.
func (st *State) TooFewServe(s *Snapshot, a rollout.Action, wanted int) string {
	var pods []rollout.Pod
	for _, pod := range s.Pods {
		if ended(pod) {
			continue
		}
		p := rollout.Pod{UID: pod.UID, Ready: ready(pod), Terminating: pod.DeletionTimestamp != nil}
		for c := range constraints.Containers(&pod.Spec) {
			p.Containers = append(p.Containers, rollout.Container{Name: c.Name, RestartsOnResize: oom.RestartsOnResize(c)})
		}
		pods = append(pods, p)
	}
	wanted = cmp.Or(wanted, len(pods))
	return st.rollout.Availability(pods, wanted, a.UID).TooFew(rolloutPolicy(s, wanted).MaxUnavailable)
}

// living counts the pods that are not terminating, scheduled or not.
func living(s *Snapshot) int {
	count := 0
	for _, pod := range s.Pods {
		if pod.DeletionTimestamp == nil && !ended(pod) {
			count++
		}
	}
	return count
}

func ready(pod *corev1.Pod) bool {
	is, _ := readySince(pod)
	return is
}

// readySince returns since when a pod is ready; false: not ready.
func readySince(pod *corev1.Pod) (is bool, since time.Time) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return true, c.LastTransitionTime.UTC()
		}
	}
	return false, time.Time{}
}

func serves(pod *corev1.Pod) bool { return ready(pod) && pod.DeletionTimestamp == nil && !ended(pod) }
