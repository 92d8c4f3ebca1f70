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

// slimMeta is what is kept of the metadata of such an object.
func slimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
	}
}

// slimHorizontal keeps for whom it is, who owns it, and the metrics that are memory.
func slimHorizontal(in any) (any, error) {
	h, ok := in.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok {
		return in, nil
	}
	owners, spec := h.OwnerReferences, h.Spec
	h.ObjectMeta, h.Status = slimMeta(h.ObjectMeta), autoscalingv2.HorizontalPodAutoscalerStatus{}
	h.OwnerReferences = owners
	h.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: spec.ScaleTargetRef}
	for _, m := range spec.Metrics {
		pods := m.Resource != nil && m.Resource.Name == corev1.ResourceMemory
		one := m.ContainerResource != nil && m.ContainerResource.Name == corev1.ResourceMemory
		if pods || one {
			h.Spec.Metrics = append(h.Spec.Metrics, m)
		}
	}
	return h, nil
}

// slimLimitRange drops managed fields and annotations; the rest is small.
func slimLimitRange(in any) (any, error) {
	if l, ok := in.(*corev1.LimitRange); ok {
		l.ObjectMeta = slimMeta(l.ObjectMeta)
	}
	return in, nil
}

// slimQuota keeps scopes, and the entries for memory.
func slimQuota(in any) (any, error) {
	if q, ok := in.(*corev1.ResourceQuota); ok {
		q.ObjectMeta = slimMeta(q.ObjectMeta)
		for _, list := range []*corev1.ResourceList{&q.Spec.Hard, &q.Status.Hard, &q.Status.Used} {
			*list = aboutMemory(*list)
		}
	}
	return in, nil
}

func aboutMemory(all corev1.ResourceList) corev1.ResourceList {
	var kept corev1.ResourceList
	for _, name := range []corev1.ResourceName{
		corev1.ResourceLimitsMemory, corev1.ResourceRequestsMemory, corev1.ResourceMemory,
	} {
		if q, found := all[name]; found {
			if kept == nil {
				kept = corev1.ResourceList{}
			}
			kept[name] = q
		}
	}
	return kept
}

// slimOthers is for kinds without an entry in [CacheOptions]: VerticalPodAutoscalers, because an entry for a kind that
// the API server does not serve would keep the cache from being made. Of them the spec is kept; the recommendations in
// their status are the bulk.
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

// VPAKind is read without VPA's Go module: a few fields matter, and the kind may not be there.
var VPAKind = schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}

// NewVPA is an empty VerticalPodAutoscaler.
func NewVPA() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(VPAKind)
	return u
}
