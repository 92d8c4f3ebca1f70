// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

// targets reports whether t, the target of an autoscaler, is w. It ignores the API version, and a missing group.
func targets(t, w memory.WorkloadRef) bool {
	return t.Namespace == w.Namespace && t.Kind == w.Kind && t.Name == w.Name &&
		(t.APIVersion == "" || workloadkind.Group(t.APIVersion) == workloadkind.Group(w.APIVersion))
}

// VPA has the relevant fields of a VerticalPodAutoscaler.
type VPA struct {
	Name string
	// Target has the namespace of the autoscaler.
	Target memory.WorkloadRef
	// UpdateMode is the field's value; "" is VPA's default, which applies recommendations.
	UpdateMode string
	policies   []containerPolicy
}

// containerPolicy is an entry of resourcePolicy.containerPolicies; "*" is for containers without their own entry.
type containerPolicy struct {
	container string
	off       bool
	memory    bool
}

// ReadVPA reads a VerticalPodAutoscaler of autoscaling.k8s.io/v1. It returns false if the object has no target.
func ReadVPA(content map[string]any) (VPA, bool) {
	v := VPA{
		Name: text(content, "metadata", "name"),
		Target: memory.WorkloadRef{
			APIVersion: text(content, "spec", "targetRef", "apiVersion"),
			Kind:       text(content, "spec", "targetRef", "kind"),
			Namespace:  text(content, "metadata", "namespace"),
			Name:       text(content, "spec", "targetRef", "name"),
		},
		UpdateMode: text(content, "spec", "updatePolicy", "updateMode"),
	}
	for _, entry := range list(content, "spec", "resourcePolicy", "containerPolicies") {
		fields, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		p := containerPolicy{container: text(fields, "containerName"), off: text(fields, "mode") == "Off", memory: true}
		if controlled := list(fields, "controlledResources"); controlled != nil {
			p.memory = slices.Contains(controlled, any(string(corev1.ResourceMemory)))
		}
		v.policies = append(v.policies, p)
	}
	return v, v.Target.Kind != "" && v.Target.Name != ""
}

// controls reports whether the VPA sets the memory of a container. A policy for the container's name overrides "*".
func (v *VPA) controls(container string) bool {
	controlled := true
	for _, p := range v.policies {
		if p.container == container {
			return p.memory && !p.off
		}
		if p.container == "*" {
			controlled = p.memory && !p.off
		}
	}
	return controlled
}

// HPA has the relevant fields of a HorizontalPodAutoscaler.
type HPA struct {
	Name string
	// Target has the namespace of the autoscaler.
	Target memory.WorkloadRef
	// ScaledObject is the name of the KEDA ScaledObject that owns the HPA; "": none.
	ScaledObject string
	pods         bool     // it scales on the memory of whole pods
	containers   []string // it scales on the memory of these containers
}

// ReadHPA reads a HorizontalPodAutoscaler. It ignores custom and external metrics: their names do not show what they
// measure, and their targets do not depend on requests.
func ReadHPA(h *autoscalingv2.HorizontalPodAutoscaler) HPA {
	ref := h.Spec.ScaleTargetRef
	target := memory.WorkloadRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: h.Namespace, Name: ref.Name}
	out := HPA{Name: h.Name, Target: target}
	if owner := metav1.GetControllerOfNoCopy(h); owner != nil && owner.Kind == "ScaledObject" &&
		workloadkind.Group(owner.APIVersion) == "keda.sh" {
		out.ScaledObject = owner.Name
	}
	for i := range h.Spec.Metrics {
		m := &h.Spec.Metrics[i]
		if m.Resource != nil && m.Resource.Name == corev1.ResourceMemory {
			out.pods = true
		}
		if m.ContainerResource != nil && m.ContainerResource.Name == corev1.ResourceMemory {
			out.containers = append(out.containers, m.ContainerResource.Container)
		}
	}
	return out
}

// follows reports whether the HPA scales on the memory of any of the containers.
func (h *HPA) follows(containers []string) bool {
	return len(containers) > 0 && (h.pods || slices.ContainsFunc(
		h.containers, func(c string) bool { return slices.Contains(containers, c) },
	))
}

func text(m map[string]any, fields ...string) string {
	s, _, _ := unstructured.NestedString(m, fields...) // a value of another type counts as missing
	return s
}

// list returns nil if the field is missing or not a list.
func list(m map[string]any, fields ...string) []any {
	v, _, _ := unstructured.NestedFieldNoCopy(m, fields...)
	l, _ := v.([]any)
	return l
}
