// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
)

// meshPod is what a usual governed pod looks like: an app with twenty variables beside a mesh sidecar.
func meshPod() Input {
	in := nodePod("512Mi", v1alpha1.MemoryProfileSpec{
		Tuning:     v1alpha1.TuningSpec{ArenaMax: new(int32(2))},
		Containers: []v1alpha1.ContainerPolicy{{Name: "gows", Runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo}}},
	})
	for i := range 20 {
		in.Pod.Spec.Containers[0].Env = append(
			in.Pod.Spec.Containers[0].Env,
			corev1.EnvVar{Name: "VARIABLE_" + string(rune('A'+i)), Value: "https://service.example.test:8080/path"},
		)
	}
	in.Pod.Spec.Containers[0].Env = append(
		in.Pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "NODE_OPTIONS", Value: "--require ./trace.js"},
	)
	in.Pod.Spec.Containers = append(in.Pod.Spec.Containers, corev1.Container{
		Name: "gows",
		Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
		},
	})
	return in
}

func BenchmarkMakePlan(b *testing.B) {
	in := meshPod()
	b.ReportAllocs()
	for b.Loop() {
		MakePlan(in)
	}
}

func BenchmarkMakePlanAndApply(b *testing.B) {
	in := meshPod()
	b.ReportAllocs()
	for b.Loop() {
		pod := *in.Pod
		pod.Spec.Containers = append([]corev1.Container(nil), in.Pod.Spec.Containers...)
		pod.Annotations = nil
		in.Pod = &pod
		MakePlan(in).Apply(&pod)
		in.Pod.Spec.Containers = meshContainers
	}
}

var meshContainers = meshPod().Pod.Spec.Containers

func BenchmarkReinvoked(b *testing.B) {
	in := meshPod()
	in.Pod = inject(in)
	b.ReportAllocs()
	for b.Loop() {
		MakePlan(in).Apply(in.Pod)
	}
}

func BenchmarkCompare(b *testing.B) {
	in := meshPod()
	in.Pod = inject(in)
	b.ReportAllocs()
	for b.Loop() {
		Compare(in.Pod, in.Profile, nil)
	}
}
