// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
)

var _ = Describe("The metrics of sizes", func() {
	It("are shown by a memfit that has nothing new to write", func() {
		w := newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNodeJS))
		f := newFleet(w, 1, v1alpha1.ProfileAnnotation, "web")
		f.killed()
		Expect(f.reconcile(f.ref)).To(Succeed())
		written := w.recommendation(f.ref)
		size := written.Status.Containers[0]
		shown := func() []float64 {
			g := w.reconciler.Metrics.gauges
			return []float64{sum(g, g.of[recommendedLimit]), sum(g, g.of[currentLimit]), sum(g, g.of[inUse])}
		}
		use := 0.0
		if size.Usage != nil {
			use = float64(memory.FromQuantity(*size.Usage))
		}
		want := []float64{
			float64(memory.FromQuantity(*size.Recommended.Limit)), float64(memory.FromQuantity(*size.Current.Limit)), use,
		}
		Expect(shown()).To(Equal(want))

		w.restart()
		w.profiled()
		f.seen(f.pods...)
		Expect(f.reconcile(f.ref)).To(Succeed())
		Expect(w.recommendation(f.ref).ResourceVersion).To(Equal(written.ResourceVersion))
		Expect(shown()).To(Equal(want))

		w.reconciler.Metrics.forget(f.ref)
		Expect(shown()).To(HaveEach(0.0))
	})
})
