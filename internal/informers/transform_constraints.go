// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// slimHPA keeps target, owner and memory metrics.
func slimHPA(h *autoscalingv2.HorizontalPodAutoscaler) {
	m, spec := h.ObjectMeta, h.Spec
	h.ObjectMeta = metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		OwnerReferences: m.OwnerReferences,
	}
	h.Status = autoscalingv2.HorizontalPodAutoscalerStatus{}
	h.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: spec.ScaleTargetRef}
	for _, m := range spec.Metrics {
		pods := m.Resource != nil && m.Resource.Name == corev1.ResourceMemory
		container := m.ContainerResource != nil && m.ContainerResource.Name == corev1.ResourceMemory
		if pods || container {
			h.Spec.Metrics = append(h.Spec.Metrics, m)
		}
	}
}

// slimOthers transforms kinds without an entry in [CacheOptions]. Of VerticalPodAutoscalers it keeps the spec: the
// status is much larger. They have no entry because the cache cannot be created with a kind that the API server lacks.
func slimOthers(in any) (any, error) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok || u.GroupVersionKind() != VPAKind {
		return stripManagedFields(in)
	}
	slim := NewVPA()
	slim.Object["spec"] = u.Object["spec"]
	slim.SetNamespace(u.GetNamespace())
	slim.SetName(u.GetName())
	slim.SetUID(u.GetUID())
	slim.SetResourceVersion(u.GetResourceVersion())
	return slim, nil
}

var stripManagedFields = cache.TransformStripManagedFields()

// VPAKind is the kind of VerticalPodAutoscalers. memfit reads few of their fields, as unstructured objects.
var VPAKind = schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}

// NewVPA returns an empty VerticalPodAutoscaler.
func NewVPA() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(VPAKind)
	return u
}
