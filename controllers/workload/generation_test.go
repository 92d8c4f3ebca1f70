// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/build"
)

// waited is what tools that wait for custom resources make of one (kstatus, by which Flux, Argo CD and `kubectl wait`
// judge): first whether the status is about the object as it is, then its condition Ready.
func waited(rec *v1alpha1.MemoryRecommendation) string {
	if rec.Status.ObservedGeneration != rec.Generation {
		return "InProgress: observedGeneration is not the object's generation"
	}
	ready := apimeta.FindStatusCondition(rec.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.ObservedGeneration != rec.Generation:
		return "InProgress: the condition Ready is about another generation"
	case ready.Status == metav1.ConditionTrue:
		return "Current"
	default:
		return "InProgress: " + ready.Message
	}
}

var _ = Describe("A recommendation that somebody waits for", func() {
	var w *world
	BeforeEach(func() {
		w = newWorld()
		p := build.Profile(w.namespace, "web", v1alpha1.RuntimeNative)
		w.profiled(p)
		for _, mode := range []v1alpha1.SizingMode{v1alpha1.SizingOnCreate, v1alpha1.SizingRecommend} { // generation 3
			p.Spec.Sizing.Mode = mode
			Expect(w.client.Update(w.ctx, p)).To(Succeed())
		}
		Expect(w.reconciler.Resolver.Rebuild(w.ctx)).To(Succeed())
		w.applied(w.pod("web", build.OOMKilled(start)).Obj())
	})

	It("is ready although its profile has another generation, which it names", func() {
		rec := w.reconciled(w.alone("web"))
		Expect(waited(rec)).To(Equal("Current"))
		Expect(rec.Status.ProfileGeneration).To(BeEquivalentTo(3))
	})
})
