// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/memfit/memfit/internal/constraints"
)

// checkValid checks what the API server checks about the fields that memfit writes, so that a plan can never turn a pod
// that would have been accepted into one that is refused.
func checkValid(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	size := 0
	for k, v := range pod.Annotations {
		size += len(k) + len(v)
	}
	if size > 256<<10 {
		t.Errorf("annotations take %d bytes, the API server allows 256 KiB", size)
	}
	check := func(c *corev1.Container, once bool) {
		for _, v := range c.Env {
			if msgs := validation.IsEnvVarName(v.Name); len(msgs) > 0 {
				t.Errorf("container %s: env name %q: %v", c.Name, v.Name, msgs)
			}
			if v.Value != "" && v.ValueFrom != nil {
				t.Errorf("container %s: %s has value and valueFrom", c.Name, v.Name)
			}
		}
		if have := constraints.SizeOf(&c.Resources); have.Limit > 0 && have.Request > have.Limit {
			t.Errorf("container %s: %s", c.Name, have)
		}
		var seen []corev1.ResourceName
		for _, p := range c.ResizePolicy {
			if slices.Contains(seen, p.ResourceName) {
				t.Errorf("container %s: two resize policies for %s", c.Name, p.ResourceName)
			}
			seen = append(seen, p.ResourceName)
			if p.RestartPolicy == corev1.RestartContainer && (once || pod.Spec.RestartPolicy == corev1.RestartPolicyNever) {
				t.Errorf(
					"container %s: RestartContainer is refused for pods that never restart and for plain init containers", c.Name,
				)
			}
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		check(c, c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways)
	}
	for i := range pod.Spec.Containers {
		check(&pod.Spec.Containers[i], false)
	}
}
