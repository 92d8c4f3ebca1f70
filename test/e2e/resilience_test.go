// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

// waitUntilKnown waits until memfit has read the profile, so that it applies to a pod created next.
func waitUntilKnown(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var p v1alpha1.MemoryProfile
		g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: profileName}, &p)).To(Succeed())
		g.Expect(condition(p.Status.Conditions, v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue))
		g.Expect(p.Status.ObservedGeneration).To(Equal(p.Generation))
	}).WithContext(ctx).Should(Succeed())
}

// getFrom sends a GET request to a pod through the API server's proxy.
func getFrom(ctx context.Context, pod *corev1.Pod, path string) (string, error) {
	raw, err := clientset.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, "8080", path, nil).DoRaw(ctx)
	return string(raw), err
}

func scaleManager(ctx context.Context, replicas int32) {
	GinkgoHelper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := clientset.AppsV1().Deployments(systemNamespace).Patch(
		ctx, managerName, "application/merge-patch+json", patch, metav1.PatchOptions{},
	)
	Expect(err).NotTo(HaveOccurred())
}

// Serial: no other spec can run while memfit is down.
var _ = Describe("while memfit is down", Serial, func() {
	namespace := inNamespace()

	It("pods start unchanged, and it reports them when it is back", func(ctx SpecContext) {
		Expect(
			k8s.Create(
				ctx, profile(*namespace, v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo}}),
			),
		).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		DeferCleanup(func(ctx context.Context) {
			scaleManager(ctx, 2)
			Eventually(managersReady).WithContext(ctx).WithTimeout(later).Should(Equal(2))
		})
		scaleManager(ctx, 0)
		Eventually(func() []corev1.Pod { return managerPods(ctx) }).WithContext(ctx).Should(BeEmpty())

		Expect(k8s.Create(ctx, workload(*namespace, goImage, "128Mi", nil, annotated))).To(Succeed())
		Expect(env(runningPod(ctx, *namespace))).NotTo(HaveKey("GOMEMLIMIT"))

		scaleManager(ctx, 2)
		Eventually(func(g Gomega) {
			var p v1alpha1.MemoryProfile
			g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: *namespace, Name: profileName}, &p)).To(Succeed())
			g.Expect(p.Status.Coverage).NotTo(BeNil())
			g.Expect(p.Status.Coverage.Missed).To(BeEquivalentTo(1))
			up := condition(p.Status.Conditions, v1alpha1.ConditionInjectionUpToDate)
			g.Expect(up.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(up.Message).To(ContainSubstring("1"))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
	}, SpecTimeout(later*3))
})
