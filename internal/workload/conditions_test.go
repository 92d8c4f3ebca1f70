// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/profile"
)

// TestAppliedGoesByWhatTheKubeletSays: replicas that share their template in the cache may have other sizes, because
// one of them was resized and the kubelet has not carried it out in another.
func TestAppliedGoesByWhatTheKubeletSays(t *testing.T) {
	size := func(limit string) corev1.ResourceRequirements {
		list := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
		return corev1.ResourceRequirements{Limits: list, Requests: list}
	}
	template := []corev1.Container{{Name: "app", Resources: size("256Mi")}, {Name: "side", Resources: size("64Mi")}}
	pod := func(actual string) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: template}}
		if actual != "" {
			has := size(actual)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Resources: &has}}
		}
		return p
	}
	s := &Snapshot{
		Profile:  &profile.Named{Spec: &v1alpha1.MemoryProfileSpec{}},
		Governed: []*corev1.Pod{pod("256Mi"), pod("128Mi"), pod(""), pod("512Mi")},
	}
	recommended := resource.MustParse("256Mi")
	v := &result{recommended: map[string]v1alpha1.Size{"app": {Limit: &recommended, Request: &recommended}}}
	if !alike(s.Governed[0], s.Governed[1]) {
		t.Fatal("the pods are not alike, so this tests nothing")
	}
	if with, without := applied(s, v); with != 2 || without != 2 {
		t.Errorf("%d pods have the size and %d have not, want 2 and 2", with, without)
	}
}
