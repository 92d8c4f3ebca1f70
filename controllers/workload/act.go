// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/workload"
)

// Executor carries out a step's decisions on running pods.
type Executor struct {
	// Evict is an [Evictor]; nil: drift.action: Restart reports only.
	Evict func(context.Context, *corev1.Pod) error
	// MayEvict is an [Evictor] with a dry run; nil: in-place restarts do not respect PodDisruptionBudgets.
	MayEvict func(context.Context, *corev1.Pod) error
	// Resize is a [Resizer]; nil: running pods are never resized.
	Resize func(context.Context, *corev1.Pod, map[string]memory.Size) error
	// HasRight is [Rights], for an action that the API server refused; nil: memfit has the right.
	HasRight func(context.Context, *corev1.Pod, rollout.Action) (bool, error)
}

// maxConcurrentResizes limits the resizes of one workload's pods. On a busy node of two cores a resize took up to 500
// ms: without concurrency, 20 pods that were killed in the same second waited 5 s, and were killed again.
const maxConcurrentResizes = 10

// act carries out the step's actions on running pods; the checkpoint already has them. Resizes that do not disrupt a
// pod run concurrently. Other actions run one by one, each after a count of the available pods.
func (r *Reconciler) act(
	ctx context.Context, s *workload.Snapshot, m *workload.State, actions []rollout.Action, now time.Time,
) error {
	var resizes, disruptions []rollout.Action
	for _, a := range actions {
		if pod := s.Pod(a.UID); pod != nil && workload.MakesUnavailable(pod, a) {
			disruptions = append(disruptions, a)
		} else {
			resizes = append(resizes, a)
		}
	}
	outcomes, failed := make([]rollout.Outcome, len(resizes)), make([]error, len(resizes))
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), maxConcurrentResizes, len(resizes), func(i int) {
		outcomes[i], failed[i] = r.carryOut(ctx, s, m, resizes[i])
	})
	for i, a := range resizes {
		m.Rollout().Note(a, outcomes[i], now)
	}
	for _, a := range disruptions {
		outcome, err := r.carryOut(ctx, s, m, a)
		m.Rollout().Note(a, outcome, now)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// podCount returns the desired number of pods; 0: unknown. For a node class of a DaemonSet it subtracts the pods on
// nodes of other classes. A missing pod counts, because its node may be of any class.
func (r *Reconciler) podCount(ctx context.Context, ref memory.WorkloadRef) (int, error) {
	wanted, err := r.sweeper().PodCount(ctx, ref)
	if err != nil || ref.NodeClass == "" {
		return wanted, err
	}
	return max(wanted-r.Inbox.NodesOfOthers(ref), 0), nil
}

// carryOut carries out one action on one pod. It may run in its own goroutine, so it recovers from panics.
func (r *Reconciler) carryOut(
	ctx context.Context, s *workload.Snapshot, m *workload.State, a rollout.Action,
) (o rollout.Outcome, failed error) {
	defer func() {
		if p := recover(); p != nil {
			o, failed = rollout.Outcome{}, fmt.Errorf("%s a pod of %s: panic: %v\n%s", verbOf(a), s.Owner.Ref, p, debug.Stack())
		}
	}()
	pod := s.Pod(a.UID)
	if pod == nil || a.Evict && r.Executor.Evict == nil || !a.Evict && r.Executor.Resize == nil {
		return rollout.Outcome{Kind: rollout.OutcomeGone}, nil
	}
	if workload.MakesUnavailable(pod, a) {
		wanted, err := r.podCount(ctx, s.Owner.Ref)
		why := m.TooFewAvailable(s, a, wanted)
		if err != nil {
			why = quote.Line(err.Error())
		}
		if why == "" && !a.Evict {
			why = r.budgetForbids(ctx, pod)
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
	if errors.Is(err, ErrPodChanged) {
		return rollout.Outcome{}, nil // the pod's change causes the next step, which decides again
	}
	o, failed = workload.OutcomeOf(a, err, r.lacksRight(ctx, pod, a, err))
	if o.Kind == rollout.OutcomeRefused && !a.Evict {
		o.Why += workload.PodSizeHint(pod)
	}
	if o.Kind == rollout.OutcomeNoRight && !a.Evict {
		o.Why += workload.WithoutResizeHint(s, pod, a)
	}
	switch {
	case err == nil:
		r.recordChange(s, pod, a)
	case (o.Kind == rollout.OutcomeRefused || o.Kind == rollout.OutcomeNoRight) && !a.Restart:
		r.Recorder.Record(s.Owner, workload.RefusedPod(s.Owner, pod, a, o.Why))
	case failed != nil:
		failed = fmt.Errorf("%s pod %s/%s: %w", verbOf(a), pod.Namespace, pod.Name, failed)
	}
	return o, failed
}

// budgetForbids returns why a PodDisruptionBudget forbids the in-place restart of a container; "": none forbids it, or
// memfit cannot check. It checks an eviction, which would disrupt the pod for longer.
func (r *Reconciler) budgetForbids(ctx context.Context, pod *corev1.Pod) string {
	if r.Executor.MayEvict == nil || !apierrors.IsTooManyRequests(r.Executor.MayEvict(ctx, pod)) {
		return ""
	}
	return workload.BlockedByBudget
}

// lacksRight reports whether memfit is known to lack the right to a refused action.
func (r *Reconciler) lacksRight(ctx context.Context, pod *corev1.Pod, a rollout.Action, err error) bool {
	if !apierrors.IsForbidden(err) || r.Executor.HasRight == nil {
		return false
	}
	has, unknown := r.Executor.HasRight(ctx, pod, a)
	if unknown != nil {
		logf.FromContext(ctx).Error(unknown, "Could not check the right to a refused action", "pod", klog.KObj(pod))
	}
	return unknown == nil && !has
}

func (r *Reconciler) recordChange(s *workload.Snapshot, pod *corev1.Pod, a rollout.Action) {
	if a.Restart {
		r.Metrics.restarts.WithLabelValues(s.Owner.Ref.Namespace, label(s.Owner.Ref)).Inc()
		r.Recorder.Record(s.Owner, workload.Restarted(s.Owner, pod, a.Why))
		return
	}
	r.Metrics.countChange(s.Owner.Ref, actionName(a))
	r.Recorder.Record(s.Owner, workload.ChangedPod(s.Owner, pod, a))
}

func verbOf(a rollout.Action) string {
	if a.Evict {
		return "evicting"
	}
	return "resizing"
}

// Timeouts of one attempt.
const resizeTimeout, evictionTimeout, rightsTimeout = 10 * time.Second, 10 * time.Second, 5 * time.Second

// ErrPodChanged means that the pod was replaced or resized after the decision. The next step decides again.
var ErrPodChanged = errors.New("the pod's resources have changed since they were read")

// Resizer returns a function that resizes pods through their resize subresource. core is a client for core/v1. The
// patch tests the pod's UID and its current sizes, so that it fails for another pod of the same name, or after another
// writer's resize. It does not test the resource version, which every status update changes.
func Resizer(core rest.Interface) func(context.Context, *corev1.Pod, map[string]memory.Size) error {
	return func(ctx context.Context, pod *corev1.Pod, sizes map[string]memory.Size) error {
		ctx, cancel := context.WithTimeout(ctx, resizeTimeout)
		defer cancel()
		kind := types.JSONPatchType
		operations, known := resizePatch(pod, sizes)
		patch := any(operations)
		if !known {
			kind, patch = types.StrategicMergePatchType, mergePatch(pod, sizes)
		}
		data, err := json.Marshal(patch)
		if err != nil {
			return fmt.Errorf("encoding the resize of pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		err = core.Patch(kind).MaxRetries(0).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("resize").
			Param("fieldManager", workload.FieldManager).Body(data).Do(ctx).Error()
		if apierrors.IsConflict(err) || unmet(err) {
			return ErrPodChanged
		}
		return err
	}
}

// unmet reports whether a test operation of a JSON patch failed. The API server then responds with 422, as for an
// invalid pod, but without the pod's name.
func unmet(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" && len(details.Causes) == 0
}

// operation is an operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// resizePatch returns a JSON patch with only the changes. A size of 0 means unchanged, because a resize cannot remove a
// request or a limit. known is false if a missing request or limit must be added: the patch depends on the container's
// other resources, which the cache drops.
func resizePatch(pod *corev1.Pod, sizes map[string]memory.Size) (patch []operation, known bool) {
	patch, known = []operation{{"test", "/metadata/uid", pod.UID}}, true
	replace := func(path string, list corev1.ResourceList, to memory.Bytes) {
		had, found := list[corev1.ResourceMemory]
		if found {
			patch = append(patch, operation{"test", path, had.String()})
		}
		if to > 0 {
			patch, known = append(patch, operation{"replace", path, to.Quantity()}), known && found
		}
	}
	replaceIn := func(list string, containers []corev1.Container) {
		for i := range containers {
			c := &containers[i]
			if size, asked := sizes[c.Name]; asked {
				path := fmt.Sprintf("/spec/%s/%d", list, i)
				patch = append(patch, operation{"test", path + "/name", c.Name})
				replace(path+"/resources/limits/memory", c.Resources.Limits, size.Limit)
				replace(path+"/resources/requests/memory", c.Resources.Requests, size.Request)
			}
		}
	}
	replaceIn("containers", pod.Spec.Containers)
	replaceIn("initContainers", pod.Spec.InitContainers)
	if size, asked := sizes[rollout.WholePod]; asked && pod.Spec.Resources != nil {
		replace("/spec/resources/limits/memory", pod.Spec.Resources.Limits, size.Limit)
		replace("/spec/resources/requests/memory", pod.Spec.Resources.Requests, size.Request)
	}
	return patch, known
}

// mergePatch returns a strategic merge patch, which can add requests and limits. It applies only to the version of the
// pod that was read.
func mergePatch(pod *corev1.Pod, sizes map[string]memory.Size) any {
	configsOf := func(containers []corev1.Container) (configs []*applycorev1.ContainerApplyConfiguration) {
		for i := range containers {
			if size, asked := sizes[containers[i].Name]; asked {
				c := applycorev1.Container().WithName(containers[i].Name)
				configs = append(configs, c.WithResources(requirements(size)))
			}
		}
		return configs
	}
	spec := applycorev1.PodSpec().WithContainers(configsOf(pod.Spec.Containers)...).
		WithInitContainers(configsOf(pod.Spec.InitContainers)...)
	if size, asked := sizes[rollout.WholePod]; asked {
		spec.WithResources(requirements(size))
	}
	return applycorev1.Pod(pod.Name, pod.Namespace).WithUID(pod.UID).WithResourceVersion(pod.ResourceVersion).
		WithSpec(spec)
}

func requirements(size memory.Size) *applycorev1.ResourceRequirementsApplyConfiguration {
	r := applycorev1.ResourceRequirements()
	if size.Limit > 0 {
		r.WithLimits(corev1.ResourceList{corev1.ResourceMemory: size.Limit.Quantity()})
	}
	if size.Request > 0 {
		r.WithRequests(corev1.ResourceList{corev1.ResourceMemory: size.Request.Quantity()})
	}
	return r
}

// Evictor returns a function that evicts pods through the policy/v1 API. core is a client for core/v1. With
// [metav1.DryRunAll] it only checks whether the eviction is allowed. It does not retry: for a PodDisruptionBudget, the
// API server responds with 429 and Retry-After, and client-go's ten attempts would block a worker for minutes.
func Evictor(core rest.Interface, dryRun ...string) func(context.Context, *corev1.Pod) error {
	return func(ctx context.Context, pod *corev1.Pod) error {
		ctx, cancel := context.WithTimeout(ctx, evictionTimeout)
		defer cancel()
		eviction := &policyv1.Eviction{
			TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}, DryRun: dryRun},
		}
		request := core.Post().MaxRetries(0).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
			SubResource("eviction").Body(eviction)
		for _, dry := range dryRun {
			request.Param("dryRun", dry) // admission webhooks see only this parameter, not the one in DeleteOptions
		}
		return request.Do(ctx).Error()
	}
}

// Rights returns a function that asks the API server whether memfit has the right to an action. The refusal of an
// action does not show this, because it may come from an authorizer or from an admission plugin.
func Rights(
	reviews authorization.SelfSubjectAccessReviewsGetter,
) func(context.Context, *corev1.Pod, rollout.Action) (bool, error) {
	return func(ctx context.Context, pod *corev1.Pod, a rollout.Action) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, rightsTimeout)
		defer cancel()
		verb, subresource := "patch", "resize"
		if a.Evict {
			verb, subresource = "create", "eviction"
		}
		review, err := reviews.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: pod.Namespace, Name: pod.Name, Verb: verb, Resource: "pods", Subresource: subresource, Version: "v1",
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("checking the right to %s pods/%s: %w", verb, subresource, err)
		}
		return review.Status.Allowed, nil
	}
}
