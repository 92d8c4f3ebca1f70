// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"context"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Applied creates or updates objects. It also sets the status of pods; of an existing pod it updates only the status.
func Applied(ctx context.Context, c client.Client, objects ...client.Object) {
	for _, obj := range objects {
		apply(ctx, c, obj)
	}
}

func apply(ctx context.Context, c client.Client, obj client.Object) {
	pod, isPod := obj.(*corev1.Pod)
	var status corev1.PodStatus
	if isPod {
		status = *pod.Status.DeepCopy()
	}
	existing, ok := obj.DeepCopyObject().(client.Object)
	gomega.ExpectWithOffset(2, ok).To(gomega.BeTrue())
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), existing)
	switch {
	case apierrors.IsNotFound(err):
		gomega.ExpectWithOffset(2, c.Create(ctx, obj)).To(gomega.Succeed())
	case err != nil:
		gomega.ExpectWithOffset(2, err).NotTo(gomega.HaveOccurred())
	case isPod:
		obj.SetResourceVersion(existing.GetResourceVersion())
		obj.SetUID(existing.GetUID())
	default:
		obj.SetResourceVersion(existing.GetResourceVersion())
		gomega.ExpectWithOffset(2, c.Update(ctx, obj)).To(gomega.Succeed())
	}
	if isPod {
		pod.Status = status
		gomega.ExpectWithOffset(2, c.Status().Update(ctx, pod)).To(gomega.Succeed())
	}
}

// Deleted deletes objects with a grace period of 0.
func Deleted(ctx context.Context, c client.Client, objects ...client.Object) {
	for _, obj := range objects {
		gomega.ExpectWithOffset(
			1, client.IgnoreNotFound(c.Delete(ctx, obj, client.GracePeriodSeconds(0))),
		).To(gomega.Succeed())
	}
}

// Exists asserts that an object exists, and reads it into its last argument, which it returns.
func Exists[T client.Object](ctx context.Context, c client.Reader, namespace, name string, into T) T {
	gomega.ExpectWithOffset(1, c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)).To(gomega.Succeed())
	return into
}

// Missing asserts that an object does not exist.
func Missing(ctx context.Context, c client.Reader, namespace, name string, obj client.Object) {
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	gomega.ExpectWithOffset(1, apierrors.IsNotFound(err)).To(gomega.BeTrue(), "got %v", err)
}

// HaveCondition matches a list that has a condition of this type, status and reason whose message equals or matches.
func HaveCondition(kind string, status metav1.ConditionStatus, reason string, message any) types.GomegaMatcher {
	return gomega.WithTransform(func(conditions []metav1.Condition) metav1.Condition {
		if c := meta.FindStatusCondition(conditions, kind); c != nil {
			return *c
		}
		return metav1.Condition{}
	}, gomega.And(
		gomega.HaveField("Status", status),
		gomega.HaveField("Reason", reason),
		gomega.HaveField("Message", message),
	))
}
