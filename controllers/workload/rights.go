// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/memfit/memfit/internal/rollout"
)

// rightsTimeout is for one question.
const rightsTimeout = 5 * time.Second

// Rights asks the API server whether memfit has the right to an action. A refusal itself does not report whether an
// authorizer refused, which a grant would change, or admission. Every client that is authenticated may ask.
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
