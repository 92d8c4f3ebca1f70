// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

// faulting lets time go by with a sample of each pod every 15 s: the first one as told, the others on 40 MiB and calm.
// The effective limit bounds what is used; the rest of it is page cache.
type faulting struct {
	*fleet
	faults int64
	full   memory.Bytes // what the first pod uses with its page cache; 0: 255Mi
}

func (f *faulting) uses(d time.Duration, anon memory.Bytes, faults int64) {
	GinkgoHelper()
	for range d / (15 * time.Second) {
		f.passes(15 * time.Second)
		f.faults += 15 * faults
		for i, pod := range f.pods {
			s := memory.Sample{
				Container: memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: "app"},
				Time:      f.clock.Now(), Started: f.born, RSS: 40 * memory.MiB, HasRSS: true, Exact: true,
				WorkingSet: 48 * memory.MiB,
				Usage:      60 * memory.MiB, HasMajorFaults: true,
			}
			if i == 0 {
				s.RSS, s.WorkingSet, s.Usage, s.MajorFaults = anon, anon.Plus(memory.MiB), cmp.Or(f.full, 255*memory.MiB), f.faults
			}
			f.reconciler.Inbox.Sampled("node-1", []memory.Sample{s}, "kubelet")
		}
		Expect(f.reconcile(f.ref)).To(Succeed())
		f.actuated()
	}
}

var _ = Describe("A stall", func() {
	var w *world
	var f *faulting
	BeforeEach(func() {
		w = newWorld()
		onNode(w)
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, inPlace()))
		f = &faulting{fleet: newFleet(w, 2)}
		Expect(f.reconcile(f.ref)).To(Succeed())
		f.uses(5*time.Minute, 180*memory.MiB, 0)
	})
	const dead, alive = 235 * memory.MiB, 180 * memory.MiB
	stalled := func(status metav1.ConditionStatus, reason string, message any) gomegatypes.GomegaMatcher {
		return expect.HaveCondition(v1alpha1.ConditionMemoryStalled, status, reason, message)
	}
	limit := func(i int) *resource.Quantity {
		q := resource.MustParse(f.limitOf(i))
		return &q
	}

	It("is counted by itself, told, and answered at once with a larger limit for every pod", func() {
		Expect(w.recommendation(f.ref).Status.Conditions).To(
			stalled(metav1.ConditionFalse, v1alpha1.ReasonNoStall, Not(BeEmpty())),
		)
		f.uses(90*time.Second, dead, 150)
		rec := w.recommendation(f.ref)
		Expect(rec.Status.Stalls).To(BeEquivalentTo(1))
		Expect(rec.Status.OOMKills).To(BeZero(), "a stall is no kill")
		Expect(rec.Status.RecentOOMKills).To(BeEmpty())
		Expect(rec.Status.Conditions).To(
			expect.HaveCondition(v1alpha1.ConditionOOMObserved, metav1.ConditionFalse, v1alpha1.ReasonNoOOMKill, Not(BeEmpty())),
		)
		Expect(rec.Status.RecentStalls).To(HaveLen(1))
		Expect(rec.Status.RecentStalls[0].Pod).To(Equal("web-0"))
		Expect(rec.Status.RecentStalls[0].Ended).To(BeNil())
		Expect(rec.Status.RecentStalls[0].MajorFaultsPerSecond).To(BeEquivalentTo(150))
		Expect(rec.Status.Conditions).To(
			stalled(
				metav1.ConditionTrue, v1alpha1.ReasonStallOngoing,
				ContainSubstring("235Mi of 256Mi anonymous, 20Mi left for page cache, 150 major faults a second"),
			),
		)
		// The look that sees the stall raises, and one after that in the same minute finds the pod raised.
		Expect(rec.Status.Containers[0].Decision).To(Or(Equal("Increase"), Equal("Keep")))
		Expect(rec.Status.Containers[0].Recommended.Limit.String()).To(Equal("512Mi"))
		Expect(rec.Status.Summary).To(ContainSubstring("stalled at 256Mi at "))
		Expect(w.recorder.all()).To(
			ContainElement(HavePrefix(
				"Warning Pod/web-0 MemoryStalled: Container app has been stalled at its limit of 256Mi since ")),
		)
		Expect(w.recorder.all()).To(ContainElement(HavePrefix("Warning Deployment/web MemoryStalled: Pod web-0: ")))
		f.looks()
		for i := range f.pods {
			Expect(limit(i).Cmp(resource.MustParse("256Mi"))).To(
				BeNumerically(">", 0), "pod %d: %v", i, w.recommendation(f.ref).Status,
			)
		}
		Expect(sum(w.reconciler.Metrics.stalls)).To(BeEquivalentTo(1))
		Expect(sum(w.reconciler.Metrics.gauges, w.reconciler.Metrics.gauges.of[stalledPods])).To(BeEquivalentTo(1))

		f.uses(3*time.Minute, alive, 0)
		rec = w.recommendation(f.ref)
		Expect(rec.Status.Conditions).To(
			stalled(metav1.ConditionFalse, v1alpha1.ReasonStallEnded, ContainSubstring("ended after the limit was raised to")),
		)
		Expect(rec.Status.RecentStalls[0].Ended).NotTo(BeNil())
		Expect(w.recorder.about("StallEnded")).To(HaveLen(2))
		Expect(sum(w.reconciler.Metrics.gauges, w.reconciler.Metrics.gauges.of[stalledPods])).To(BeEquivalentTo(0))
	})

	It("is counted once when memfit restarts in the middle of it", func() {
		f.uses(90*time.Second, dead, 150)
		w.restart()
		Expect(w.reconciler.Resolver.Rebuild(w.ctx)).To(Succeed())
		f.seen(f.pods...)
		Expect(f.reconcile(f.ref)).To(Succeed())
		f.uses(5*time.Minute, dead, 150)
		Expect(w.recommendation(f.ref).Status.Stalls).To(BeEquivalentTo(1))
	})

	It("ends without effect when the faults go on, and is not raised again", func() {
		f.uses(90*time.Second, dead, 150)
		first := limit(0)
		f.uses(7*time.Minute, dead, 140) // reads a file far larger than any cache: nothing stays
		rec := w.recommendation(f.ref)
		Expect(rec.Status.RecentStalls[0].IncreaseIneffective).To(BeTrue(), "%v", rec.Status)
		Expect(rec.Status.Conditions).To(
			stalled(
				metav1.ConditionTrue, v1alpha1.ReasonIncreaseIneffective,
				MatchRegexp(`did not reduce major faults \(150 a second before, 14\d after\)`),
			),
		)
		Expect(w.recorder.about(v1alpha1.ReasonIncreaseIneffective)).To(HaveLen(2))
		Expect(rec.Status.Summary).To(
			MatchRegexp(`^Raising the limit from 256Mi to 512Mi did not end a stall \(150 major faults a second before, 14\d after\)`),
		)
		f.uses(10*time.Minute, dead, 140)
		Expect(limit(0).Cmp(*first)).To(BeNumerically("<=", 0), "a second increase would have no effect either")
		f.uses(10*time.Minute, dead, 140)
		Expect(f.limitOf(0)).To(Equal("256Mi"), "%v", w.recommendation(f.ref).Status)
	})
})

var _ = Describe("A stall under a lowered limit", func() {
	It("rolls the limit back from every pod, as a kill does", func() {
		w := newWorld()
		onNode(w)
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, inPlace()))
		f := &faulting{fleet: newFleet(w, 3)}
		f.livesFor(25 * time.Hour)
		f.looks()
		lowered := resource.MustParse(f.limitOf(0))
		Expect(lowered.Cmp(resource.MustParse("256Mi"))).To(Equal(-1), "web-0 is the canary")

		low := memory.FromQuantity(lowered)
		f.full = low.Percent(99)
		f.uses(2*time.Minute, low.Percent(92), 150)
		rec := f.looks()
		Expect([]string{f.limitOf(0), f.limitOf(1), f.limitOf(2)}).To(HaveEach("256Mi"))
		Expect(w.recorder.about("Reverted")).To(
			ContainElement(And(HavePrefix("Warning Pod/web-0"), ContainSubstring("because pod web-0 stalled at that limit"))),
		)
		Expect(rec.Status.OOMKills).To(BeZero())
	})
})
