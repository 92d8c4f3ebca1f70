// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && agent

package e2e

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// sumOfParts returns the resident memory of all parts plus the unexplained rest.
func sumOfParts(m *v1alpha1.MemoryParts) *resource.Quantity {
	sum := m.Unexplained.DeepCopy()
	for _, part := range m.Parts {
		sum.Add(part.Resident)
	}
	return &sum
}

// residentIn returns the resident memory of the part with the name, or 0 if the part is missing.
func residentIn(m *v1alpha1.MemoryParts, name string) memory.Bytes {
	i := slices.IndexFunc(m.Parts, func(p v1alpha1.MemoryPart) bool { return p.Name == name })
	if i < 0 {
		return 0
	}
	return memory.FromQuantity(m.Parts[i].Resident)
}

var _ = Describe("a stall that the agent sees", Label("agent"), func() {
	namespace := inNamespace()

	// The program fills its memory within a minute. It then runs just below its limit, where the kernel drops pages of its
	// mapped file as fast as it reads them. In mode Recommend, memfit does not raise the limit.
	It("is reported with the limit, the minute before, the growth and what filled the memory", func(ctx SpecContext) {
		const limit, held = 128 * memory.MiB, 110 * memory.MiB
		recommend := v1alpha1.MemoryProfileSpec{
			Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNative},
			Sizing:  v1alpha1.SizingSpec{Mode: v1alpha1.SizingRecommend},
		}
		Expect(k8s.Create(ctx, profile(*namespace, recommend))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(
			k8s.Create(
				ctx,
				workload(*namespace, goImage, limit.String(), nil, readsFromDisk(
					"web", "-hold", held.String(), "-hold-over", "1m", "-map-file", "26Mi", "-walk-random",
				)),
			),
		).To(Succeed())
		pod := runningPod(ctx, *namespace)

		By("waiting for the agent's record of the stall")
		var seen *v1alpha1.StallSnapshot
		Eventually(func(g Gomega) {
			s := snapshotOf(ctx, pod)
			g.Expect(s).NotTo(BeNil())
			g.Expect(s.LastStall).NotTo(BeNil())
			seen = s.LastStall
		}).WithContext(ctx).WithTimeout(2 * later).Should(Succeed())
		GinkgoWriter.Println(seen.Summary)
		Expect(seen.Ended).To(BeNil())
		Expect(seen.ContainerLimit.String()).To(Equal(limit.String()))
		Expect(seen.Summary).To(HavePrefix("stalls at its limit of 128Mi without an OOM kill: "))
		Expect(memory.FromQuantity(*seen.Usage)).To(BeNumerically(">=", limit.Percent(90)))
		// The program allocates about 2 MiB a second; the file's pages change the sum.
		Expect(seen.GrowthPerSecond).NotTo(BeNil(), seen.Summary)
		Expect(memory.FromQuantity(*seen.GrowthPerSecond)).To(And(
			BeNumerically(">", memory.MiB), BeNumerically("<", 4*memory.MiB),
		))
		Expect(seen.GrowthMilliseconds).To(BeNumerically(">", 10_000))
		Expect(len(seen.Series)).To(BeNumerically(">", 10))
		Expect(memory.FromQuantity(seen.Series[0].Usage)).To(BeNumerically("<", limit.Percent(70)), "the minute before")
		Expect(seen.Memory).NotTo(BeNil())
		Expect(seen.Memory.Resident.Cmp(*sumOfParts(seen.Memory))).To(BeZero(), "parts add up")
		Expect(residentIn(seen.Memory, "Go heap")).To(BeNumerically("~", held, held.Percent(10)))

		By("waiting for memfit's record, which the kubelet's numbers trigger after the process's start")
		const account = "; the kernel capped usage at 128Mi, the limit of its container; "
		var rec *v1alpha1.MemoryRecommendation
		var err error
		Eventually(func(g Gomega) {
			rec, err = recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.RecentStalls).To(HaveLen(1))
			g.Expect(rec.Status.RecentStalls[0].Summary).To(ContainSubstring(account))
		}).WithContext(ctx).WithTimeout(2 * later).Should(Succeed())
		stall := &rec.Status.RecentStalls[0]
		GinkgoWriter.Println(stall.Summary)
		Expect(rec.Status.OOMKills).To(BeZero())
		Expect(stall.Pod).To(Equal(pod.Name))
		Expect(stall.Summary).To(MatchRegexp(`Mi were in use, after growth by .*/s for .*; filled by Go heap 1[01]\d`))
		stalls := condition(rec.Status.Conditions, v1alpha1.ConditionMemoryStalled)
		Expect(string(stalls.Status)).To(Equal("True"))
		Expect(stalls.Message).To(ContainSubstring(account))
		Eventually(func() []string { // which of the two depends on whether memfit or the agent was first
			return slices.Concat(
				podEventMessages(ctx, *namespace, v1alpha1.EventMemoryStalled),
				podEventMessages(ctx, *namespace, v1alpha1.EventStallExplained),
			)
		}).WithContext(ctx).Should(ContainElement(ContainSubstring(account)))

		page := strings.Join(strings.Fields(plugin(ctx, "why", "pod/"+pod.Name, "-n", *namespace)), " ")
		Expect(page).To(And(
			ContainSubstring("OOM kill none observed"),
			ContainSubstring("Stalled since "+format.Time(seen.Started.Time)+" it stalls at its limit of 128Mi"),
			ContainSubstring("Limits 128Mi of the container"), ContainSubstring("Before "),
			MatchRegexp("Filled by .* Go heap"),
		))

		By("killing the agent, and checking that its record remains")
		killAgents(ctx)
		Consistently(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.Stalls).To(BeEquivalentTo(1), "the stall was counted twice")
			g.Expect(rec.Status.RecentStalls[0].Summary).To(ContainSubstring(account))
			var s v1alpha1.MemorySnapshot
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(pod), &s)).To(Succeed())
			g.Expect(s.Status.Containers[0].LastStall).NotTo(BeNil())
		}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
		Expect(restarts(runningPod(ctx, *namespace))).To(BeZero())
	}, SpecTimeout(5*later))
})
