// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && agent

package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

// ramps runs a program that allocates 5 MiB a second until it holds twice its limit of 128Mi.
func ramps(d *appsv1.Deployment) {
	annotated(d)
	c := &d.Spec.Template.Spec.Containers[0]
	c.Args = []string{"-hold", "256Mi", "-hold-over", "50s"}
	c.Env = append(c.Env, corev1.EnvVar{Name: "GOGC", Value: "off"})
}

var _ = Describe("a container that grows beyond its limit, with rescue", Label("agent"), func() {
	namespace := inNamespace()

	It("gets a loan before the kernel kills it, and people can read of it", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, profile(*namespace, v1alpha1.MemoryProfileSpec{
			Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNative},
			Sizing:  v1alpha1.SizingSpec{Mode: v1alpha1.SizingInPlace, Rescue: v1alpha1.RescueEnabled},
		}))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "128Mi", nil, ramps))).To(Succeed())
		pod := runningPod(ctx, *namespace)
		Eventually(func() []string {
			return podEventMessages(ctx, *namespace, v1alpha1.EventMemoryLoaned)
		}).WithContext(ctx).WithTimeout(later).Should(ContainElement(ContainSubstring("from 128Mi to 512Mi before")))

		By("waiting until the program holds all its memory")
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
			c := &pod.Status.ContainerStatuses[0]
			g.Expect(c.RestartCount).To(BeZero())
			g.Expect(c.Resources.Limits.Memory().String()).To(Equal("512Mi"))
			g.Expect(time.Since(c.State.Running.StartedAt.Time)).To(BeNumerically(">", time.Minute))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		why := strings.Join(strings.Fields(plugin(ctx, "why", "pod/"+pod.Name, "-n", *namespace)), " ")
		Expect(why).To(ContainSubstring(v1alpha1.EventMemoryLoaned))
		Expect(plugin(ctx, "history", "deployment/web", "-n", *namespace)).To(ContainSubstring(v1alpha1.EventMemoryLoaned))
	}, NodeTimeout(4*later))
})
