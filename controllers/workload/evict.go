// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// evictionTimeout is for one attempt.
const evictionTimeout = 10 * time.Second

// Evictor evicts pods by the policy/v1 API, through a client for core/v1. It asks once: a PodDisruptionBudget answers
// 429 with Retry-After, and client-go would hold up a worker for minutes by asking ten times.
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
