// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/build"
)

var _ = Describe("A tenant", func() {
	It("cannot speak on another's profile, nor at length on its own workload", func() {
		shop, evil := newWorld(), newWorld()
		shop.profiled(build.Profile(shop.namespace, "web", v1alpha1.RuntimeNodeJS))
		var rung []profile.Key
		evil.reconciler.Problems.OnChange = func(keys ...profile.Key) { rung = append(rung, keys...) }
		key := profile.Key{Kind: "MemoryProfile", Namespace: shop.namespace, Name: "web"}

		words := key.String() + " is broken, ask evil.example\nReady: False " + strings.Repeat("ü", 100_000)
		evil.applied(
			build.Pod(evil.namespace, "x").Annotate(v1alpha1.ProfileAnnotation, words).On("node-1").Container("app").Obj(),
		)
		Expect(evil.reconcile(evil.alone("x"))).To(Succeed())

		Expect(evil.reconciler.Problems.Claiming(key)).To(BeEmpty())
		Expect(rung).To(BeEmpty(), "no profile is concerned")
		events := evil.recorder.all()
		Expect(events).To(HaveLen(1))
		Expect(events[0]).To(And(HavePrefix("Warning Pod/x ProfileNotFound: annotation memfit.dev/profile on the pod "+
			"template names \"MemoryProfile "),
			Not(ContainSubstring("\n")), WithTransform(func(s string) int { return len(s) }, BeNumerically("<", 600))))
	})

	It("is told of two profiles that claim its workload, and so are they", func() {
		w := newWorld()
		w.profiled(build.Profile(w.namespace, "one", v1alpha1.RuntimeNodeJS, build.Selecting("app", "web")),
			build.Profile(w.namespace, "two", v1alpha1.RuntimeNodeJS, build.Selecting("app", "web")))
		var rung []profile.Key
		w.reconciler.Problems.OnChange = func(keys ...profile.Key) { rung = append(rung, keys...) }
		pod := build.Pod(w.namespace, "x").Label("app", "web").On("node-1").Container("app").Obj()
		w.applied(pod)
		Expect(
			w.reconcile(memory.WorkloadRef{APIVersion: "v1", Kind: "Pod", Namespace: w.namespace, Name: "x"}),
		).To(Succeed())
		Expect(rung).To(
			ConsistOf(
				profile.Key{Kind: "MemoryProfile", Namespace: w.namespace, Name: "one"},
				profile.Key{Kind: "MemoryProfile", Namespace: w.namespace, Name: "two"},
			),
		)
		Expect(w.reconciler.Problems.Claiming(rung[0])).To(HaveLen(1))
	})
})
