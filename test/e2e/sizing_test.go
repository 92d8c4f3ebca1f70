// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

// sized returns a profile with a watch and a cooldown that are short enough for a test.
func sized(mode v1alpha1.SizingMode, runtime v1alpha1.RuntimeSpec) v1alpha1.MemoryProfileSpec {
	return v1alpha1.MemoryProfileSpec{
		Runtime: runtime,
		Sizing: v1alpha1.SizingSpec{Mode: mode, Disruption: &v1alpha1.DisruptionSpec{
			Watch: &metav1.Duration{Duration: 20 * time.Second}, Cooldown: &metav1.Duration{Duration: time.Minute},
		}},
	}
}

// holds runs a Go program that allocates the size and keeps it.
func holds(size string, replicas int32) func(*appsv1.Deployment) {
	return replicated(
		replicas, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = []string{"-hold", size} },
	)
}

// exceedMemory makes a program of holds allocate more than its limit, so that the kernel kills it. After its restart
// the program holds its first size again.
func exceedMemory(ctx context.Context, pod *corev1.Pod, size string) {
	GinkgoHelper()
	Eventually(func() error { // without a probe, a pod is ready before its program serves
		_, err := getFrom(ctx, pod, "/stats")
		return err
	}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
	_, _ = clientset.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name+":8080").
		SubResource("proxy").Suffix("hold").Param("size", size).DoRaw(ctx) // the program is killed before it answers
}

// switchMode changes the profile's sizing mode, for pods that started with the sizes of their template.
func switchMode(ctx context.Context, namespace string, mode v1alpha1.SizingMode) {
	GinkgoHelper()
	patch := fmt.Appendf(nil, `{"spec":{"sizing":{"mode":%q}}}`, mode)
	p := &v1alpha1.MemoryProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: profileName}}
	Expect(k8s.Patch(ctx, p, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// effective returns the memory limit that the kubelet reports for the first container with resources.
func effective(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Resources != nil {
			return s.Resources.Limits.Memory().String()
		}
	}
	return ""
}

func applied(rec *v1alpha1.MemoryRecommendation) metav1.Condition {
	return condition(rec.Status.Conditions, v1alpha1.ConditionApplied)
}

// eventuallyApplied waits until the condition Applied has the reason, and returns the condition.
func eventuallyApplied(ctx context.Context, namespace, reason string) metav1.Condition {
	GinkgoHelper()
	return appliedWithin(ctx, namespace, reason, later)
}

func appliedWithin(ctx context.Context, namespace, reason string, within time.Duration) metav1.Condition {
	GinkgoHelper()
	var c metav1.Condition
	Eventually(func(g Gomega) {
		rec, err := recommendation(ctx, namespace)
		g.Expect(err).NotTo(HaveOccurred())
		c = applied(rec)
		g.Expect(c.Reason).To(Equal(reason), c.Message)
	}).WithContext(ctx).WithTimeout(within).Should(Succeed())
	return c
}

// reaction holds the times at which a kill, its recommendation, and the accepted and effective resize were first seen.
type reaction struct{ killed, recommended, accepted, effective time.Time }

// watchReaction polls the pod and its recommendation every 20 ms until the resize is effective.
func watchReaction(ctx context.Context, namespace string, pod types.NamespacedName, limit string) reaction {
	GinkgoHelper()
	var r reaction
	first := func(t *time.Time, seen bool) {
		if seen && t.IsZero() {
			*t = time.Now()
		}
	}
	Eventually(func(g Gomega) {
		var p corev1.Pod
		g.Expect(k8s.Get(ctx, pod, &p)).To(Succeed())
		first(&r.killed, everOOMKilled(&p))
		if rec, err := recommendation(ctx, namespace); err == nil && len(rec.Status.Containers) == 1 &&
			rec.Status.OOMKills > 0 {
			first(&r.recommended, rec.Status.Containers[0].Recommended != nil)
		}
		first(&r.accepted, limitOf(&p) != limit)
		first(&r.effective, effective(&p) != limit && effective(&p) != "")
		g.Expect(r.effective).NotTo(BeZero())
	}).WithContext(ctx).WithTimeout(later).WithPolling(20 * time.Millisecond).Should(Succeed())
	return r
}

var native = v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNative}

var _ = Describe("sizing running pods", func() {
	namespace := inNamespace()

	It("raises the limit in place after a kill, and the pod stays", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, profile(*namespace, sized(v1alpha1.SizingInPlace, native)))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		// It runs for three seconds: kubelets before 1.36 do not resize a container that ends soon after its start.
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "64Mi", nil, takes("100Mi", 3, 1)))).To(Succeed())
		var pod corev1.Pod
		Eventually(func(g Gomega) {
			live := pods(ctx, *namespace)
			g.Expect(live).To(HaveLen(1))
			pod = live[0]
		}).WithContext(ctx).Should(Succeed())

		r := watchReaction(ctx, *namespace, client.ObjectKeyFromObject(&pod), "64Mi")
		fmt.Fprintf(GinkgoWriter, "reaction kill_to_recommendation_ms=%d kill_to_accepted_ms=%d kill_to_in_force_ms=%d\n",
			r.recommended.Sub(r.killed).Milliseconds(), r.accepted.Sub(r.killed).Milliseconds(),
			r.effective.Sub(r.killed).Milliseconds())
		AddReportEntry("reaction",
			fmt.Sprintf("kill seen -> recommendation %s -> resize accepted %s -> effective %s (bars: 2s and 3s on an idle node)",
				r.recommended.Sub(r.killed).Round(time.Millisecond), r.accepted.Sub(r.killed).Round(time.Millisecond),
				r.effective.Sub(r.killed).Round(time.Millisecond)), ReportEntryVisibilityAlways)

		By("waiting until the container runs with the new limit")
		var rec *v1alpha1.MemoryRecommendation
		Eventually(func(g Gomega) {
			var err error
			rec, err = recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(applied(rec).Status).To(Equal(metav1.ConditionTrue), applied(rec).Message)
			live := pods(ctx, *namespace)
			g.Expect(live).To(HaveLen(1))
			g.Expect(live[0].UID).To(Equal(pod.UID), "the same pod")
			g.Expect(effective(&live[0])).To(Equal(rec.Status.Containers[0].Recommended.Limit.String()))
			g.Expect(restarts(&live[0])).To(BeEquivalentTo(rec.Status.OOMKills), "the resize restarted the container")
			g.Expect(live[0].Status.ContainerStatuses[0].State.Running).NotTo(BeNil())
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Eventually(eventsAbout).WithContext(ctx).WithArguments(
			*namespace, "Pod", pod.Name, "Resized",
		).WithTimeout(later).ShouldNot(BeEmpty())
		Eventually(eventsAbout).WithContext(ctx).WithArguments(
			*namespace, "Deployment", "web", "Resized",
		).WithTimeout(later).ShouldNot(BeEmpty())
	}, SpecTimeout(later*3))

	It("stops while memfit's own namespace is paused, and goes on afterwards", Serial, func(ctx SpecContext) {
		pauseAll := func(ctx context.Context, on bool) {
			value := `null`
			if on {
				value = `"true"`
			}
			_, err := clientset.CoreV1().Namespaces().Patch(ctx, systemNamespace, types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.PauseAnnotation, value), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		pauseAll(ctx, true)
		DeferCleanup(func(ctx context.Context) { pauseAll(ctx, false) })
		Expect(k8s.Create(ctx, profile(*namespace, sized(v1alpha1.SizingInPlace, native)))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "64Mi", nil, takes("100Mi", 3, 1)))).To(Succeed())
		Expect(eventuallyApplied(ctx, *namespace, "Paused").Message).To(ContainSubstring("Namespace " + systemNamespace))
		Expect(limitOf(&pods(ctx, *namespace)[0])).To(Equal("64Mi"))
		pauseAll(ctx, false)
		eventuallyApplied(ctx, *namespace, "UpToDate")
		Expect(limitOf(&pods(ctx, *namespace)[0])).NotTo(Equal("64Mi"))
	}, SpecTimeout(later*3))
})
