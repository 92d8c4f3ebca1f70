// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// withPodLimit sets a pod-level limit of 112Mi for two containers, of which app holds 150Mi.
func withPodLimit(d *appsv1.Deployment) {
	annotated(d)
	p := &d.Spec.Template.Spec
	side := *p.Containers[0].DeepCopy()
	p.Containers[0].Args = []string{"-hold", "150Mi"}
	p.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}
	side.Name, side.Args = "side", []string{"-hold", "10Mi", "-listen", ":8081"}
	side.Resources = corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")},
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("24Mi")},
	}
	p.Containers = append(p.Containers, side)
	p.Resources = &corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("112Mi")},
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
	}
}

// expectGrown expects that both containers are ready, that app's limit exceeds its need, and that the kubelet reports
// the pod's limit. It returns the limit of the pod.
func expectGrown(g Gomega, pod *corev1.Pod) memory.Bytes {
	g.Expect(pod.Status.ContainerStatuses).To(HaveLen(2))
	for _, s := range pod.Status.ContainerStatuses {
		g.Expect(s.State.Running).NotTo(BeNil(), "%s: %+v", s.Name, s.State)
		g.Expect(s.Ready).To(BeTrue(), s.Name)
	}
	app := memory.FromQuantity(*pod.Spec.Containers[0].Resources.Limits.Memory())
	g.Expect(app).To(BeNumerically(">", 150*memory.MiB))
	g.Expect(pod.Spec.Resources).NotTo(BeNil())
	whole := memory.FromQuantity(*pod.Spec.Resources.Limits.Memory())
	g.Expect(whole).To(BeNumerically(">=", app), "the API server requires it")
	if pod.Status.Resources != nil || resizesWholePods(pod) {
		g.Expect(pod.Status.Resources).NotTo(BeNil())
		g.Expect(memory.FromQuantity(*pod.Status.Resources.Limits.Memory())).To(Equal(whole), "effective")
	}
	return whole
}

// resizesWholePods reports whether the pod's kubelet reports and resizes pod-level limits: from 1.36 on.
func resizesWholePods(pod *corev1.Pod) bool {
	GinkgoHelper()
	var node corev1.Node
	Expect(k8s.Get(context.Background(), client.ObjectKey{Name: pod.Spec.NodeName}, &node)).To(Succeed())
	kubelet, err := version.ParseGeneric(node.Status.NodeInfo.KubeletVersion)
	Expect(err).NotTo(HaveOccurred())
	return kubelet.AtLeast(version.MustParseGeneric("1.36.0"))
}

// podResizeUnsupported reports whether the pod's kubelet cannot resize pod-level limits. It then expects memfit to
// report that and to change neither the pod nor its containers.
func podResizeUnsupported(ctx SpecContext, pod *corev1.Pod) bool {
	GinkgoHelper()
	if resizesWholePods(pod) {
		return false
	}
	var refusal metav1.Condition
	Eventually(func(g Gomega) {
		rec, err := recommendation(ctx, pod.Namespace)
		g.Expect(err).NotTo(HaveOccurred())
		refusal = applied(rec)
		g.Expect(refusal.Reason).To(BeElementOf(v1alpha1.ReasonPodLimit, v1alpha1.ReasonRefused), refusal.Message)
		g.Expect(refusal.Message).To(ContainSubstring("InPlacePodLevelResourcesVerticalScaling"))
	}).WithContext(ctx).WithTimeout(later).Should(Succeed())
	now := &corev1.Pod{}
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(pod), now)).To(Succeed())
	Expect(now.Spec.Resources).To(Equal(pod.Spec.Resources))
	Expect(now.Spec.Containers).To(Equal(pod.Spec.Containers))
	AddReportEntry("kept", refusal.Message, ReportEntryVisibilityAlways)
	return true
}

var _ = Describe("a pod with a size as a whole", func() {
	namespace := inNamespace()

	It("grows in place beyond its size, and the pod keeps running", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, profile(*namespace, sized(v1alpha1.SizingInPlace, native)))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "64Mi", nil, withPodLimit))).To(Succeed())
		first := runningPod(ctx, *namespace)
		if podResizeUnsupported(ctx, first) {
			return
		}
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(applied(rec).Status).To(Equal(metav1.ConditionTrue), applied(rec).Message)
			live := pods(ctx, *namespace)
			g.Expect(live).To(HaveLen(1))
			g.Expect(live[0].UID).To(Equal(first.UID), "the same pod")
			whole := expectGrown(g, &live[0])
			g.Expect(restarts(&live[0])).To(BeEquivalentTo(rec.Status.OOMKills), "the resize restarted the container")
			app, side := live[0].Spec.Containers[0].Resources.Limits, live[0].Spec.Containers[1].Resources.Limits
			together := memory.FromQuantity(*app.Memory()).Plus(memory.FromQuantity(*side.Memory()))
			g.Expect(whole).To(BeNumerically("<=", together.Plus(16*memory.MiB)), "more than its containers together")
		}).WithContext(ctx).WithTimeout(later * 2).Should(Succeed())
		// memfit sends Events after it has written the status.
		Eventually(eventsAbout).WithContext(ctx).WithArguments(
			*namespace, "Pod", first.Name, "Resized",
		).WithTimeout(soon).Should(
			ContainElement(HaveField("Message", ContainSubstring("limit of the whole pod 112Mi to "))),
		)
		pod := runningPod(ctx, *namespace)
		AddReportEntry("size", fmt.Sprintf("the pod as a whole %s, app %s, side %s", pod.Spec.Resources.Limits.Memory(),
			pod.Spec.Containers[0].Resources.Limits.Memory(), pod.Spec.Containers[1].Resources.Limits.Memory()),
			ReportEntryVisibilityAlways)
	}, SpecTimeout(later*4))

	It("is raised where a container without a limit needs it", Label("evidence"), func(ctx SpecContext) {
		skipUnlessCompressed(ctx)
		Expect(k8s.Create(ctx, profile(*namespace, sized(v1alpha1.SizingRecommend, native)))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "64Mi", nil, all(holds("116Mi", 1), func(d *appsv1.Deployment) {
			p := &d.Spec.Template.Spec
			p.Containers[0].Resources = corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
			}
			p.Resources = &corev1.ResourceRequirements{
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
			}
		})))).To(Succeed())
		first := runningPod(ctx, *namespace)
		switchMode(ctx, *namespace, v1alpha1.SizingInPlace)
		if podResizeUnsupported(ctx, first) {
			return
		}
		var limit memory.Bytes
		Eventually(func(g Gomega) {
			pod := runningPod(ctx, *namespace)
			g.Expect(pod.UID).To(Equal(first.UID))
			limit = memory.FromQuantity(*pod.Spec.Resources.Limits.Memory())
			g.Expect(limit).To(BeNumerically(">", 128*memory.MiB))
			g.Expect(memory.FromQuantity(*pod.Status.Resources.Limits.Memory())).To(Equal(limit), "effective")
			g.Expect(pod.Spec.Containers[0].Resources.Limits).NotTo(HaveKey(corev1.ResourceMemory))
			g.Expect(restarts(pod)).To(BeZero())
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(applied(rec).Status).To(Equal(metav1.ConditionTrue), applied(rec).Message)
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		AddReportEntry("size", "the pod as a whole "+limit.String(), ReportEntryVisibilityAlways)
	}, SpecTimeout(later*2))

	It("is created with a size that matches its containers", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, profile(*namespace, sized(v1alpha1.SizingOnCreate, native)))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "64Mi", nil, withPodLimit))).To(Succeed())
		Eventually(func(g Gomega) {
			for _, pod := range pods(ctx, *namespace) {
				if everOOMKilled(&pod) { // a replacement starts with the raised limit, and may be killed at that
					replacePod(ctx, &pod)
				}
			}
			live := pods(ctx, *namespace)
			g.Expect(live).To(HaveLen(1))
			expectGrown(g, &live[0])
		}).WithContext(ctx).WithTimeout(later * 2).WithPolling(usageRead / 9).Should(Succeed())
	}, SpecTimeout(later*4))
})
