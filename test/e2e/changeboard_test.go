// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// What those ask for who have to allow changes in production: when, how much, and what if it goes wrong.
var _ = Describe("sizing within what a change board allows", func() {
	namespace := inNamespace()
	other := inNamespace()

	It("lowers nothing while no window is open, says until when, and raises after a kill", func(ctx SpecContext) {
		now := time.Now().UTC()
		opens := time.Date(now.Year(), now.Month()+6, 1, 0, 0, 0, 0, time.UTC)
		spec := sized(v1alpha1.SizingRecommend, native)
		spec.Sizing.Disruption.Windows = []v1alpha1.MaintenanceWindow{
			{Schedule: fmt.Sprintf("0 0 1 %d *", opens.Month()), Duration: metav1.Duration{Duration: time.Hour}},
		}
		Expect(k8s.Create(ctx, profile(*namespace, spec))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		remembered(ctx, workload(*namespace, goImage, "256Mi", nil, holds("30Mi", 1)), 256*memory.MiB, 45*memory.MiB)
		pod := readyPods(ctx, *namespace, 1)[0]
		switched(ctx, *namespace, v1alpha1.SizingInPlace)
		Expect(eventuallyApplied(ctx, *namespace, v1alpha1.ReasonWaitingForWindow).Message).To(
			ContainSubstring("opens at " + opens.Format(time.RFC3339)),
		)
		rec, err := recommendation(ctx, *namespace)
		Expect(err).NotTo(HaveOccurred())
		lower := rec.Status.Containers[0].Recommended.Limit
		Expect(lower.Cmp(resource.MustParse("256Mi"))).To(Equal(-1), "a lower limit waits")
		Expect(limitOf(&pods(ctx, *namespace)[0])).To(Equal("256Mi"))

		By("letting it die of its limit")
		needs(ctx, &pod, "300Mi")
		Eventually(func(g Gomega) {
			live := pods(ctx, *namespace)
			g.Expect(live).To(HaveLen(1))
			g.Expect(live[0].UID).To(Equal(pod.UID))
			limit := live[0].Spec.Containers[0].Resources.Limits.Memory()
			g.Expect(limit.Cmp(resource.MustParse("256Mi"))).To(Equal(1), limit.String())
			g.Expect(effective(&live[0])).To(Equal(limit.String()))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		eventuallyApplied(ctx, *namespace, v1alpha1.ReasonUpToDate)
		Expect(plugin(ctx, "history", "deploy/web", "-n", *namespace)).To(And(
			ContainSubstring("Resized, pod "+pod.Name+": limit of container app 256Mi to"),
			ContainSubstring("OOM-killed at 256Mi"), ContainSubstring("OOM kill ("),
		))
	}, SpecTimeout(later*3))

	It("takes a lower limit back, in an open window, from a pod that is not ready with it", func(ctx SpecContext) {
		spec := sized(v1alpha1.SizingRecommend, native)
		spec.Sizing.Disruption.Windows = []v1alpha1.MaintenanceWindow{
			{Schedule: "0 0 * * *", Duration: metav1.Duration{Duration: 24 * time.Hour}},
		}
		Expect(k8s.Create(ctx, profile(*namespace, spec))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		remembered(ctx, workload(*namespace, goImage, "256Mi", nil, replicated(2, func(d *appsv1.Deployment) {
			c := &d.Spec.Template.Spec.Containers[0]
			c.Args = []string{"-hold", "30Mi"}
			// It refuses work with less than 200 MB, and does not die of it.
			c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 2, TimeoutSeconds: 10, ProbeHandler: corev1.ProbeHandler{
				Exec: &corev1.ExecAction{Command: []string{"sh", "-c",
					`[ "$(cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null)" -gt 200000000 ]`}}}}
		})), 256*memory.MiB, 45*memory.MiB)
		readyPods(ctx, *namespace, 2)
		switched(ctx, *namespace, v1alpha1.SizingInPlace)
		Expect(eventuallyApplied(ctx, *namespace, v1alpha1.ReasonWatching).Message).To(ContainSubstring("the first of 2"))
		var told []corev1.Event
		Eventually(func(g Gomega) {
			var err error
			told, err = eventsAbout(ctx, *namespace, "Deployment", "web", v1alpha1.EventReverted)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(told).To(HaveLen(1))
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(applied(rec).Reason).To(Equal(v1alpha1.ReasonUpToDate), applied(rec).Message)
			live, unchanged := pods(ctx, *namespace), 0
			for i := range live {
				g.Expect(effective(&live[i])).To(Equal("256Mi"))
				if live[i].Generation == 1 {
					unchanged++
				}
			}
			g.Expect(unchanged).To(Equal(1), "the first pod alone was ever changed")
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Expect(told[0].Message).To(
			And(ContainSubstring("to 256Mi"), MatchRegexp("has not been ready since .*, and was before it")),
		)
		for _, pod := range readyPods(ctx, *namespace, 2) {
			Expect(restarts(&pod)).To(BeZero())
		}
		Expect(plugin(ctx, "history", "deploy/web", "-n", *namespace)).To(And(
			ContainSubstring("Reverted, pod "), ContainSubstring("has not been ready since"),
			ContainSubstring("limit of container app 256Mi to"),
		))
	}, SpecTimeout(later*3))

	It("raises only after a kill where the profile says so", func(ctx SpecContext) {
		spec := sized(v1alpha1.SizingInPlace, native)
		spec.Sizing.Increase, spec.Sizing.Decrease = v1alpha1.IncreaseAfterKill, v1alpha1.DecreaseNever
		Expect(k8s.Create(ctx, profile(*namespace, spec))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		remembered(ctx, workload(*namespace, goImage, "128Mi", nil, holds("30Mi", 1)), 128*memory.MiB, 124*memory.MiB)
		pod := readyPods(ctx, *namespace, 1)[0]
		Expect(limitOf(&pod)).To(Equal("128Mi"))
		eventuallyApplied(ctx, *namespace, v1alpha1.ReasonUpToDate)
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.Containers).To(HaveLen(1))
			g.Expect(rec.Status.Containers[0].Reasons).To(
				ContainElement(And(ContainSubstring("limit stays at 128Mi although use asks for"), ContainSubstring("AfterKill"))),
			)
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Expect(limitOf(&pods(ctx, *namespace)[0])).To(Equal("128Mi"))

		By("letting it die of its limit")
		needs(ctx, &pod, "160Mi")
		Eventually(func(g Gomega) {
			live := pods(ctx, *namespace)
			g.Expect(live).To(HaveLen(1))
			g.Expect(live[0].UID).To(Equal(pod.UID))
			limit := live[0].Spec.Containers[0].Resources.Limits.Memory()
			g.Expect(limit.Cmp(resource.MustParse("128Mi"))).To(Equal(1), limit.String())
			g.Expect(effective(&live[0])).To(Equal(limit.String()))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		eventuallyApplied(ctx, *namespace, v1alpha1.ReasonUpToDate)
		Expect(plugin(ctx, "history", "deploy/web", "-n", *namespace)).To(And(
			ContainSubstring("Resized, pod "+pod.Name+": limit of container app 128Mi to"),
			ContainSubstring("OOM-killed at 128Mi"),
		))
	}, SpecTimeout(later*3))

	// Serial: the budget is the whole cluster's.
	It("raises within an hour no more than the cluster's budget, but after a kill", Serial, func(ctx SpecContext) {
		withFlags(ctx, "--change-budget-bytes=48Mi")
		raise := func(namespace string) {
			GinkgoHelper()
			p := profile(namespace, v1alpha1.MemoryProfileSpec{})
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
			least := resource.MustParse("96Mi")
			p.Spec.Sizing.Mode, p.Spec.Sizing.Limit = v1alpha1.SizingInPlace, &v1alpha1.Bounds{Min: &least}
			Expect(k8s.Update(ctx, p)).To(Succeed())
		}
		for _, in := range []string{*namespace, *other} {
			Expect(k8s.Create(ctx, profile(in, sized(v1alpha1.SizingRecommend, native)))).To(Succeed())
			waitUntilKnown(ctx, in)
			remembered(ctx, workload(in, goImage, "64Mi", nil, holds("20Mi", 1)), 64*memory.MiB, 30*memory.MiB)
			readyPods(ctx, in, 1)
		}
		began := time.Now().Truncate(time.Second)
		raise(*namespace)
		eventuallyApplied(ctx, *namespace, v1alpha1.ReasonUpToDate)
		Expect(limitOf(&pods(ctx, *namespace)[0])).To(Equal("96Mi"))

		By("raising a second workload, for which there is no room")
		raise(*other)
		var why string
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *other)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(applied(rec).Reason).To(Equal(v1alpha1.ReasonWaitingForBudget), applied(rec).Message)
			g.Expect(applied(rec).Message).To(ContainSubstring("has no room"))
			why = applied(rec).Message
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Expect(why).To(ContainSubstring("32Mi of 48Mi raised"))
		var at time.Time
		for t := began.Add(time.Hour); t.Before(time.Now().Add(time.Hour)); t = t.Add(time.Second) {
			if strings.Contains(why, "there is at "+t.UTC().Format(time.RFC3339)) {
				at = t
			}
		}
		Expect(at).NotTo(BeZero(), why)
		pod := pods(ctx, *other)[0]
		Expect(limitOf(&pod)).To(Equal("64Mi"))

		By("letting the second die of its limit, which does not wait")
		needs(ctx, &pod, "100Mi")
		Eventually(func(g Gomega) {
			live := pods(ctx, *other)
			g.Expect(live).To(HaveLen(1))
			g.Expect(live[0].UID).To(Equal(pod.UID))
			limit := live[0].Spec.Containers[0].Resources.Limits.Memory()
			g.Expect(limit.Cmp(resource.MustParse("96Mi"))).To(Equal(1), limit.String())
			g.Expect(effective(&live[0])).To(Equal(limit.String()))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		eventuallyApplied(ctx, *other, v1alpha1.ReasonUpToDate)
		Expect(plugin(ctx, "history", "deploy/web", "-n", *other)).To(And(
			ContainSubstring("Resized, pod "+pod.Name+": limit of container app 64Mi to"),
			ContainSubstring("OOM-killed at 64Mi"),
		))
	}, SpecTimeout(later*5))
})
