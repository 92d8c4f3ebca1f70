// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/workload"
)

// resizeTimeout bounds one attempt.
const resizeTimeout = 10 * time.Second

// errChanged means that the pod was replaced or resized after the decision. The next step decides again.
var errChanged = errors.New("the pod's resources have changed since they were read")

// Resizer resizes pods through their resize subresource, by a client for core/v1. The patch tests the pod's UID and its
// current sizes, so that it fails for another pod of the same name, or after another writer's resize. A resource
// version would change with every status, and all the time in a crash loop.
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
			return errChanged
		}
		return err
	}
}

// unmet reports whether a test operation of the JSON patch failed. The API server then answers 422, as for an invalid
// pod, but without the pod's name.
func unmet(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" && len(details.Causes) == 0
}

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// resizePatch names only what changes. A size of 0 is unchanged, because a resize cannot remove a request or a limit.
// known is false if a container without memory is to get some, because the cache does not show its other resources.
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
	of := func(list string, containers []corev1.Container) {
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
	of("containers", pod.Spec.Containers)
	of("initContainers", pod.Spec.InitContainers)
	if size, asked := sizes[rollout.WholePod]; asked && pod.Spec.Resources != nil {
		replace("/spec/resources/limits/memory", pod.Spec.Resources.Limits, size.Limit)
		replace("/spec/resources/requests/memory", pod.Spec.Resources.Requests, size.Request)
	}
	return patch, known
}

// mergePatch adds missing memory to the version of the pod that was read.
func mergePatch(pod *corev1.Pod, sizes map[string]memory.Size) any {
	of := func(containers []corev1.Container) (some []*applycorev1.ContainerApplyConfiguration) {
		for i := range containers {
			if size, asked := sizes[containers[i].Name]; asked {
				c := applycorev1.Container().WithName(containers[i].Name)
				some = append(some, c.WithResources(requirements(size)))
			}
		}
		return some
	}
	spec := applycorev1.PodSpec().WithContainers(of(pod.Spec.Containers)...).
		WithInitContainers(of(pod.Spec.InitContainers)...)
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

// evictionTimeout bounds one attempt.
const evictionTimeout = 10 * time.Second

// Evictor evicts pods by the policy/v1 API, through a client for core/v1. It does not retry: a PodDisruptionBudget
// answers 429 with Retry-After, and client-go would block a worker for minutes with ten attempts.
func Evictor(core rest.Interface) func(context.Context, *corev1.Pod) error {
	return func(ctx context.Context, pod *corev1.Pod) error {
		ctx, cancel := context.WithTimeout(ctx, evictionTimeout)
		defer cancel()
		eviction := &policyv1.Eviction{
			TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
		}
		return core.Post().MaxRetries(0).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
			SubResource("eviction").Body(eviction).Do(ctx).Error()
	}
}

// rightsTimeout bounds one request.
const rightsTimeout = 5 * time.Second

// Rights asks the API server whether memfit has the right to an action. A refusal does not show whether it came from an
// authorizer, which a grant would change, or from admission. Every authenticated client may ask.
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
			return false, fmt.Errorf("asking for the right to %s pods/%s: %w", verb, subresource, err)
		}
		return review.Status.Allowed, nil
	}
}
