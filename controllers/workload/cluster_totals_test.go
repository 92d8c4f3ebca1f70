// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

var _ = Describe("The change budget of the cluster", func() {
	var w *world
	// budgeted is a memfit that knows nothing but the budget's flags, as it starts.
	budgeted := func(b rollout.ChangeBudget) *ClusterTotals {
		// checkpoints of other tests are of other times
		w.reconciler.Totals.APIReader = client.NewNamespacedClient(w.client, w.namespace)
		w.reconciler.Totals.Budget = b
		return &w.reconciler.Totals
	}
	// evicts is a node that resizes nothing, so that a kill ends in an eviction.
	evicts := func() {
		w.reconciler.Executor.Resize = func(context.Context, *corev1.Pod, map[string]memory.Size) error {
			return apierrors.NewBadRequest("Pod QOS Class may not change as a result of resizing")
		}
	}
	waits := func(words string) OmegaMatcher {
		return expect.HaveCondition(
			v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonWaitingForBudget, ContainSubstring(words),
		)
	}
	BeforeEach(func() {
		w = newWorld()
		onNode(w)
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, inPlace(orEvict)))
	})

	It("is shared by workloads, is not taken again after a restart, and is free again after an hour", func() {
		limit := rollout.ChangeBudget{Pods: 1}
		budget := budgeted(limit)
		Expect(budget.Load(w.ctx)).To(Succeed())
		evicts()
		// another workload took the only pod of the budget 58 minutes before
		budget.reserve(w.alone("other"), func(a *rollout.Allowance) []rollout.Spent {
			Expect(a.Unknown).To(BeFalse())
			return []rollout.Spent{{At: w.clock.Now().Add(-58 * time.Minute), UID: "other", Pods: 1}}
		})
		f := newFleet(w, 2)
		Expect(f.reconcile(f.ref)).To(Succeed())
		f.killed()
		rec := f.looks()
		Expect(f.left()).To(HaveLen(2))
		Expect(rec.Status.Conditions).To(waits("1 of 1 pods disrupted"))

		By("waiting until it is free")
		f.passes(3 * time.Minute)
		Expect(f.reconcile(f.ref)).To(Succeed())
		Expect(f.left()).To(HaveLen(1))
		registry := prometheus.NewRegistry()
		budget.Register(registry)
		gathered := map[string]float64{}
		families, err := registry.Gather()
		Expect(err).NotTo(HaveOccurred())
		for _, family := range families {
			gathered[family.GetName()] = family.GetMetric()[0].GetGauge().GetValue()
		}
		Expect(gathered).To(Equal(map[string]float64{
			"memfit_change_budget_bytes": 0, "memfit_change_budget_pods": 1,
			"memfit_change_budget_used_bytes": gathered["memfit_change_budget_used_bytes"], "memfit_change_budget_used_pods": 1,
		}))
		_, pods := budget.used()
		Expect(pods).To(BeEquivalentTo(1))

		By("losing everything that is not on the API server")
		w.restart()
		w.profiled()
		budget = budgeted(limit)
		unread := func() bool {
			known := false
			budget.reserve(w.alone("third"), func(a *rollout.Allowance) []rollout.Spent { known = !a.Unknown; return nil })
			return !known
		}
		Expect(unread()).To(BeTrue(), "nothing may be taken before it was read")
		Expect(budget.Load(w.ctx)).To(Succeed())
		Expect(unread()).To(BeFalse())
		_, pods = budget.used()
		Expect(pods).To(BeEquivalentTo(1))
		f.passes(time.Hour)
		_, pods = budget.used()
		Expect(pods).To(BeZero())
	})

	It("is taken once by a memfit that dies each time between writing and doing", func() {
		f := newFleet(w, 2)
		budget := budgeted(rollout.ChangeBudget{Pods: 2})
		Expect(budget.Load(w.ctx)).To(Succeed())
		Expect(f.reconcile(f.ref)).To(Succeed())
		evicts()
		w.reconciler.Executor.Evict = func(context.Context, *corev1.Pod) error { return errors.New("killed") }
		f.killed()
		Expect(f.reconcile(f.ref)).To(Succeed()) // the resize is refused
		for range 5 {
			f.passes(2 * time.Second)
			Expect(f.reconcile(f.ref)).To(MatchError(ContainSubstring("killed")))
			w.restart()
			w.profiled()
			evicts()
			w.reconciler.Executor.Evict = func(context.Context, *corev1.Pod) error { return errors.New("killed") }
			budget = budgeted(rollout.ChangeBudget{Pods: 2})
			Expect(budget.Load(w.ctx)).To(Succeed())
			_, pods := budget.used()
			Expect(pods).To(BeEquivalentTo(1))
			f.seen(f.pods...)
		}
	})

	It("does not hold up a raise in place after a kill, and counts it", func() {
		budget := budgeted(rollout.ChangeBudget{Bytes: 1 << 20})
		f := newFleet(w, 2)
		Expect(f.reconcile(f.ref)).To(Succeed())
		f.killed() // and what was taken before is not known yet
		f.looks()
		Expect([]string{f.limitOf(0), f.limitOf(1)}).NotTo(ContainElement("256Mi"))
		bytes, pods := budget.used()
		Expect(bytes).To(BeNumerically(">", 2*64<<20))
		Expect(pods).To(BeZero())
	})
})
