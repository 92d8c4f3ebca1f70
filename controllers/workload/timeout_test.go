// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

var _ = Describe("A look that takes too long", func() {
	It("is given up, said on the workload, and tried again later and later", func() {
		w := newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNodeJS))
		pod := w.pod("web")
		w.applied(pod.Obj())
		w.reconciled(w.alone("web"))

		w.reconciler.Settings.Timeout = 100 * time.Millisecond
		writes := 0
		w.faults.before = func(obj client.Object) error {
			if _, checkpoint := obj.(*v1alpha1.MemoryCheckpoint); !checkpoint {
				return nil
			}
			writes++
			time.Sleep(3 * w.reconciler.Settings.Timeout) // an API server that does not answer
			return context.DeadlineExceeded
		}
		w.applied(pod.Container("app", build.OOMKilled(start.Add(10*time.Second))).Obj())
		for _, wait := range []time.Duration{20 * time.Second, 40 * time.Second} {
			result, err := w.reconciler.Reconcile(w.ctx, w.alone("web"))
			Expect(err).NotTo(HaveOccurred(), "an error would be tried again at once")
			Expect(result.RequeueAfter).To(Equal(wait))
			before := writes
			result, err = w.reconciler.Reconcile(w.ctx, w.alone("web"))
			Expect(err).NotTo(HaveOccurred())
			Expect(result.RequeueAfter).To(Equal(wait), "news do not wake it")
			Expect(writes).To(Equal(before))
			w.passes(wait)
		}
		Expect(w.recommendation(w.alone("web")).Status.Conditions).To(
			expect.HaveCondition(
				v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonReconcileTimedOut,
				ContainSubstring("did not end within"),
			))
		Expect(w.recorder.all()).To(ContainElement(HavePrefix("Warning Pod/web ReconcileTimedOut: ")))

		w.faults.before, w.reconciler.Settings.Timeout = nil, 0
		rec := w.reconciled(w.alone("web"))
		Expect(rec.Status.OOMKills).To(BeEquivalentTo(1), "what was seen meanwhile is not lost")
		Expect(meta.FindStatusCondition(rec.Status.Conditions, v1alpha1.ConditionStalled)).To(BeNil())
	})
})

var _ = Describe("A checkpoint that the API server refuses", func() {
	It("is said on the workload once that lasts, and what happened meanwhile is counted when it is taken", func() {
		w := newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNodeJS))
		pod := w.pod("web")
		w.applied(pod.Obj())
		w.reconciled(w.alone("web"))

		w.faults.before = func(obj client.Object) error {
			if _, checkpoint := obj.(*v1alpha1.MemoryCheckpoint); !checkpoint {
				return nil
			}
			return apierrors.NewInternalError(errors.New("etcdserver: request is too large"))
		}
		w.applied(pod.Container("app", build.OOMKilled(start.Add(10*time.Second))).Obj())
		_, err := w.reconciler.Reconcile(w.ctx, w.alone("web"))
		Expect(err).To(MatchError(ContainSubstring("request is too large")), "at first it is only tried again")
		w.passes(10 * time.Second)
		for _, wait := range []time.Duration{20 * time.Second, 40 * time.Second, time.Minute, time.Minute} {
			result, err := w.reconciler.Reconcile(w.ctx, w.alone("web"))
			Expect(err).NotTo(HaveOccurred(), "an error would be tried again at once")
			Expect(result.RequeueAfter).To(Equal(wait))
			w.passes(wait)
		}
		Expect(w.recommendation(w.alone("web")).Status.Conditions).To(
			expect.HaveCondition(
				v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonCheckpointRefused,
				ContainSubstring("request is too large"),
			))
		Expect(w.recorder.all()).To(ContainElement(HavePrefix("Warning Pod/web CheckpointRefused: ")))

		w.faults.before = nil
		rec := w.reconciled(w.alone("web"))
		Expect(rec.Status.OOMKills).To(BeEquivalentTo(1), "what was seen meanwhile is not lost")
		Expect(meta.FindStatusCondition(rec.Status.Conditions, v1alpha1.ConditionStalled)).To(BeNil())
	})
})
