// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/apply"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/neighbours"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/signals"
)

// The right to resize is not in the manager's role but in config/rbac/resize-pods, a component for those whose profiles say sizing.mode: InPlace
// or InPlaceOrEvict.

// resizes: the profile lets memfit change running pods.
func resizes(mode v1alpha1.SizingMode) bool {
	return mode == v1alpha1.SizingInPlace || mode == v1alpha1.SizingInPlaceOrEvict
}

// applyInput is what a decision about running pods depends on, but for the sizes that are recommended.
func applyInput(s *snapshot, m *state, live map[string]inject.Live, now time.Time) apply.Input {
	in := apply.Input{Now: now, Policy: applyPolicy(s), State: m.rollout, Namespace: s.owner.Ref.Namespace, Desired: map[string]recommend.GuardInput{}}
	if !resizes(s.profile.Spec.Sizing.Mode) {
		in.State.Rollout = nil // the owner has taken memfit's hand off the size of running pods
		if s.profile.Spec.Drift.Action != v1alpha1.DriftRestart {
			return in
		}
	}
	for _, pod := range s.governed {
		if pod.Spec.NodeName != "" { // one that no node has taken runs nothing
			in.Pods = append(in.Pods, m.runningPod(s, pod, live, now))
		}
	}
	return in
}

func applyPolicy(s *snapshot) apply.Policy {
	sizing := s.profile.Spec.Sizing
	p := apply.Policy{Evict: sizing.Mode == v1alpha1.SizingInPlaceOrEvict, MaxUnavailable: 1}
	switch s.owner.Ref.Kind {
	case "Job", "CronJob":
		p.OnlyRaise = "a run of a Job keeps what it began with; the next one begins with the recommended size"
	case "Pod":
		p.NoEvict = "nobody would start it again"
	}
	if d := sizing.Disruption; d != nil {
		p.SingleReplicaMayRestart = d.SingleReplica == "Allowed"
		if d.MaxUnavailable != nil {
			p.MaxUnavailable = *d.MaxUnavailable
		}
		if d.Watch != nil {
			p.Watch = d.Watch.Duration
		}
	}
	return p
}

// runningPod is a pod as its status shows it.
func (m *state) runningPod(s *snapshot, pod *corev1.Pod, live map[string]inject.Live, now time.Time) apply.Pod {
	p := apply.Pod{
		Name: pod.Name, UID: pod.UID, Created: pod.CreationTimestamp.UTC(), Ready: ready(pod), Leaving: pod.DeletionTimestamp != nil,
		QoS: string(pod.Status.QOSClass), NodeSize: s.facts.NodeSize[pod.Spec.NodeName], Resize: resizeOf(pod),
	}
	if writer := resizedBy(pod); writer != "" {
		p.Writer = quote.Name(writer)
	}
	for _, c := range managed(s.profile, pod) {
		spec, status := containerOf(pod, c.name)
		running := apply.Container{Name: c.name, Spec: sizeOf(spec.Resources), Actual: c.current, RestartsOnResize: signals.RestartsOnResize(spec)}
		ref := memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: c.name}
		if status != nil {
			lifeOf(&running, pod, spec, status, now)
		}
		if limit, asked, known := m.ledger.InForce(ref); known && asked > 0 {
			running.InForce = limit
		}
		if in, found := m.instances[ref]; found {
			running.RSS = in.recent.now()
		}
		frozen := inject.FrozenIn(pod, s.profile, live, c.name)
		running.FrozenHeap, running.Overhead, running.Literal = frozen.Cap, frozen.Overhead, frozen.Literal
		p.Containers = append(p.Containers, running)
	}
	return p
}

// briefLife: the kubelet lists what its containers do every second and then acts, so that no resize meets one that lives for less than
// two; statuses know whole seconds, which takes one more.
const briefLife = 3 * time.Second

// lifeOf fills in what the status says of the instance that runs, or ran last.
func lifeOf(c *apply.Container, pod *corev1.Pod, spec *corev1.Container, status *corev1.ContainerStatus, now time.Time) {
	c.Restarts = status.RestartCount
	last := status.LastTerminationState.Terminated
	if t := status.State.Terminated; t != nil {
		last = t
		sidecar := spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways
		c.Done = !sidecar && t.ExitCode == 0 && isInit(pod, spec.Name)
	}
	if r := status.State.Running; r != nil {
		c.Started = r.StartedAt.UTC()
		if now.Sub(c.Started) >= briefLife {
			return
		}
	}
	c.Brief = last != nil && last.FinishedAt.Sub(last.StartedAt.Time) < briefLife
}

func isInit(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name })
}

// containerOf finds a container and its status, which is nil before the kubelet has seen it.
func containerOf(pod *corev1.Pod, name string) (spec *corev1.Container, status *corev1.ContainerStatus) {
	find := func(containers []corev1.Container, statuses []corev1.ContainerStatus) {
		for i := range containers {
			if containers[i].Name == name {
				spec = &containers[i]
			}
		}
		for i := range statuses {
			if statuses[i].Name == name {
				status = &statuses[i]
			}
		}
	}
	find(pod.Spec.Containers, pod.Status.ContainerStatuses)
	find(pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
	return spec, status
}

// resizeOf reads the pod's conditions about a resize.
func resizeOf(pod *corev1.Pod) apply.Resize {
	var r apply.Resize
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case corev1.PodResizePending:
			r.Deferred, r.Infeasible = c.Reason == corev1.PodReasonDeferred, c.Reason == corev1.PodReasonInfeasible
		case corev1.PodResizeInProgress:
			r.InProgress, r.Failed = true, c.Reason == corev1.PodReasonError
		default:
			continue
		}
		if c.Message != "" {
			r.Message = quote.Message(c.Message)
		}
	}
	return r
}

// fieldManager is memfit's name in the managed fields of the pods it resizes.
const fieldManager = "memfit"

// resizedBy is who resized a pod last, if it was not memfit. The cache keeps only that of the managed fields (see slimPod).
func resizedBy(pod *corev1.Pod) string {
	var last metav1.ManagedFieldsEntry
	for _, e := range pod.ManagedFields {
		if e.Subresource == "resize" && (last.Time == nil || e.Time != nil && last.Time.Before(e.Time)) {
			last = e
		}
	}
	if last.Manager == fieldManager {
		return ""
	}
	return last.Manager
}

// wish is what guards know of a container besides its pods.
func (q *containerInput) wish(s *snapshot, rec recommend.Recommendation) recommend.GuardInput {
	return recommend.GuardInput{
		Recommendation: rec, Current: q.container.current, Policy: q.container.sizePolicy(), Now: q.now,
		Paused: s.paused, Conflict: s.facts.Conflict, WindowPeak: lastDay(q.history),
		RangeName: s.facts.Range.Name, RangeMin: s.facts.Range.Min, RangeMax: s.facts.Range.Max,
		RangeRefusal: s.facts.Refusal(s.template, map[string]neighbours.Size{q.container.name: neighbours.Size(rec.Size)}),
		NodeSize:     s.facts.LargestNode, QuotaName: s.facts.Quota.Name, QuotaLimits: s.facts.Quota.Limits, QuotaRequests: s.facts.Quota.Requests,
	}
}

// lastDay is the highest demand of today and yesterday: at least the last 24 hours.
func lastDay(h *history.Container) memory.Bytes {
	if h == nil {
		return 0
	}
	var peak memory.Bytes
	days := h.Days()
	for _, d := range days[max(len(days)-2, 0):] {
		peak = max(peak, d.Peak)
	}
	return peak
}

// act does to running pods what the step decided, which the checkpoint says already.
func (r *WorkloadReconciler) act(ctx context.Context, s *snapshot, m *state, actions []apply.Action, now time.Time) error {
	var failed error
	for _, a := range actions {
		result, err := r.carryOut(ctx, s, a)
		m.note(a, result, now)
		failed = errors.Join(failed, err)
	}
	return failed
}

// outcome is what became of an action.
type outcome struct {
	kind outcomeKind
	// why the API server refused it.
	why string
}

type outcomeKind int

const (
	// outcomeUnknown: it was done, or nobody knows; the next step sees what there is.
	outcomeUnknown outcomeKind = iota
	// outcomeGone: the pod does not exist any more, or another has its name.
	outcomeGone
	// outcomeBudget: a PodDisruptionBudget does not allow it now.
	outcomeBudget
	// outcomeRefused: the API server does not allow it.
	outcomeRefused
	// outcomeNotAttempted: it was not sent.
	outcomeNotAttempted
)

// note takes in what became of an action, so that what was refused is not asked for again at once. Whatever failed otherwise is tried
// again by the next step, because the state says that it is to be done; but for an eviction for memory that climbs: of that nobody
// knows whether it happened, and it counts as done.
func (m *state) note(a apply.Action, o outcome, now time.Time) {
	if a.Restart && o.kind != outcomeUnknown {
		m.restarts.Undo(a.UID)
	}
	switch o.kind {
	case outcomeGone:
		m.rollout.Gone(a.UID)
	case outcomeBudget:
		m.refuse(a, apply.ReasonBudget, budgetRefusal, now.Add(afterBudget), now)
	case outcomeRefused:
		m.refuse(a, apply.ReasonRefused, o.why, now.Add(afterForbidden), now)
	case outcomeNotAttempted:
		if a.Restart {
			m.rollout.Gone(a.UID)
		}
	case outcomeUnknown:
	}
}

const budgetRefusal = "a PodDisruptionBudget does not allow it now"

func (m *state) refuse(a apply.Action, reason, why string, until, now time.Time) {
	if !a.Restart {
		m.rollout.Refused(a, reason, why, now)
		return
	}
	m.rollout.Gone(a.UID)
	m.restartRefused = refusal{until, why}
}

// notDone notes that none of the actions was sent: what people read could not be written, and nothing is done behind their backs.
func (m *state) notDone(actions []apply.Action) {
	for _, a := range actions {
		m.note(a, outcome{kind: outcomeNotAttempted}, time.Time{})
	}
}

// carryOut does one thing to one pod.
func (r *WorkloadReconciler) carryOut(ctx context.Context, s *snapshot, a apply.Action) (outcome, error) {
	pod := s.pod(a.UID)
	if pod == nil || !a.Evict && !a.Restart && r.Resize == nil || (a.Evict || a.Restart) && r.Evict == nil {
		return outcome{kind: outcomeGone}, nil
	}
	var err error
	if a.Evict || a.Restart {
		err = r.Evict(ctx, pod)
	} else {
		err = r.Resize(ctx, pod, a.Sizes)
	}
	o, failed := outcomeOf(a, err)
	switch {
	case err == nil:
		r.changed(s, pod, a)
	case o.kind == outcomeRefused && !a.Restart:
		r.recordEvent(refusedPod(s.owner, pod, a, o.why))
	case failed != nil:
		failed = fmt.Errorf("%s pod %s/%s: %w", verbOf(a), pod.Namespace, pod.Name, failed)
	}
	return o, failed
}

// changed tells that the API server took a change.
func (r *WorkloadReconciler) changed(s *snapshot, pod *corev1.Pod, a apply.Action) {
	if a.Restart {
		r.Metrics.restarted(s.owner.Ref)
		r.recordEvent(restartedPod(s.owner, pod, a.Why))
		r.recordEvent(restartedWorkload(s.owner, pod, a.Why))
		return
	}
	r.Metrics.applied(s.owner.Ref, actionName(a))
	r.recordEvent(changedPod(s.owner, pod, a))
}

func verbOf(a apply.Action) string {
	if a.Evict || a.Restart {
		return "evicting"
	}
	return "resizing"
}

// outcomeOf says what the API server's answer means, and returns the error again where it means nothing for sure.
func outcomeOf(a apply.Action, err error) (outcome, error) {
	evicts := a.Evict || a.Restart
	switch {
	case err == nil, errors.Is(err, errChanged): // a change of the pod brings the next step, which finds what there is then
		return outcome{}, nil
	case !evicts && apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// Not the pod is missing, but the path.
		return outcome{outcomeRefused, "this API server does not know pods/resize, which is on by default since Kubernetes 1.33: " +
			"was the feature gate InPlacePodVerticalScaling turned off?"}, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return outcome{kind: outcomeGone}, nil
	case evicts && apierrors.IsTooManyRequests(err):
		return outcome{kind: outcomeBudget}, nil
	case a.Restart && apierrors.IsForbidden(err):
		return outcome{outcomeRefused, "memfit may not evict pods here (the kustomize component config/rbac/evict-pods grants it): " + quote.Line(err.Error())}, nil
	case !a.Restart && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsBadRequest(err)):
		return outcome{outcomeRefused, "the API server refuses it: " + quote.Line(err.Error()) + granted(a, err)}, nil
	}
	return outcome{}, err
}

// granted says which part of the installation holds the right that is missing; empty when none is.
func granted(a apply.Action, err error) string {
	switch {
	case !apierrors.IsForbidden(err):
		return ""
	case a.Evict:
		return " (the kustomize component config/rbac/evict-pods grants it)"
	}
	return " (the kustomize component config/rbac/resize-pods grants it)"
}

func (s *snapshot) pod(uid types.UID) *corev1.Pod {
	for _, pod := range s.governed {
		if pod.UID == uid {
			return pod
		}
	}
	return nil
}
