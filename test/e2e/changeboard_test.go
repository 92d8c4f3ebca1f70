// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
)

// A change board approves changes in production: their time, their size, and their rollback.
var _ = Describe("sizing within what a change board allows", func() {
	namespace := inNamespace()
	other := inNamespace()

	It("raises only after a kill where the profile asks for it", Label("evidence"), func(ctx SpecContext) {
		skipUnlessCompressed(ctx)
		spec := sized(v1alpha1.SizingInPlace, native)
		spec.Sizing.Increase, spec.Sizing.Decrease = v1alpha1.IncreaseAfterKill, v1alpha1.DecreaseNever
		Expect(k8s.Create(ctx, profile(*namespace, spec))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "128Mi", nil, holds("110Mi", 1)))).To(Succeed())
		pod := readyPods(ctx, *namespace, 1)[0]
		Expect(limitOf(&pod)).To(Equal("128Mi"))
		eventuallyApplied(ctx, *namespace, v1alpha1.ReasonUpToDate)
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.Containers).To(HaveLen(1))
			g.Expect(rec.Status.Containers[0].Reasons).To(
				ContainElement(And(ContainSubstring("limit stays at 128Mi although use needs"), ContainSubstring("AfterKill"))),
			)
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Expect(limitOf(&pods(ctx, *namespace)[0])).To(Equal("128Mi"))

		By("exceeding its limit")
		exceedMemory(ctx, &pod, "160Mi")
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
	It("raises no more in an hour than the budget, but after a kill", Serial, Label("evidence"), func(ctx SpecContext) {
		skipUnlessCompressed(ctx)
		withFlags(ctx, "--change-budget-bytes=48Mi")
		raise := func(namespace string) {
			GinkgoHelper()
			p := profile(namespace, v1alpha1.MemoryProfileSpec{})
			least := v1alpha1.NewMemoryQuantity(resource.MustParse("96Mi"))
			edit(ctx, p, func() {
				p.Spec.Sizing.Mode, p.Spec.Sizing.Limit = v1alpha1.SizingInPlace, &v1alpha1.Bounds{Min: least}
			})
		}
		for _, in := range []string{*namespace, *other} {
			Expect(k8s.Create(ctx, profile(in, sized(v1alpha1.SizingRecommend, native)))).To(Succeed())
			waitUntilKnown(ctx, in)
			Expect(k8s.Create(ctx, workload(in, goImage, "64Mi", nil, holds("20Mi", 1)))).To(Succeed())
			readyPods(ctx, in, 1)
		}
		began := time.Now().Truncate(time.Second)
		raise(*namespace)
		eventuallyApplied(ctx, *namespace, v1alpha1.ReasonUpToDate)
		Expect(limitOf(&pods(ctx, *namespace)[0])).To(Equal("96Mi"))

		By("raising a second workload, for which the budget is too small")
		raise(*other)
		var why string
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *other)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(applied(rec).Reason).To(Equal(v1alpha1.ReasonWaitingForBudget), applied(rec).Message)
			g.Expect(applied(rec).Message).To(ContainSubstring("change budget of this hour is spent"))
			why = applied(rec).Message
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Expect(why).To(ContainSubstring("32Mi of 48Mi raised"))
		var at time.Time
		for t := began.Add(time.Hour); t.Before(time.Now().Add(time.Hour)); t = t.Add(time.Second) {
			if strings.Contains(why, "it continues at "+t.UTC().Format(time.RFC3339)) {
				at = t
			}
		}
		Expect(at).NotTo(BeZero(), why)
		pod := pods(ctx, *other)[0]
		Expect(limitOf(&pod)).To(Equal("64Mi"))

		By("exceeding the limit of the second, whose raise does not wait")
		exceedMemory(ctx, &pod, "100Mi")
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
