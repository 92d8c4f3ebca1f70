// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

var _ = Describe("A number that was found", func() {
	It("stands when its evidence is lost, because new pods must not fall back to what killed the old ones", func() {
		w := newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative))
		pod := w.pod("web").Obj()
		w.applied(pod)
		w.reconciled(w.alone("web"))
		for range 26 * 6 {
			w.passes(10 * time.Minute)
			w.sampled(pod, 100*memory.MiB)
		}
		found := w.reconciled(w.alone("web")).Status.Containers[0]
		Expect(found.Recommended).NotTo(BeNil(), found.Summary)

		expect.Deleted(w.ctx, w.client, w.checkpoint(w.alone("web")))
		w.restart()
		w.seen(pod)
		left := w.reconciled(w.alone("web")).Status.Containers[0]
		Expect(left.Decision).To(Equal("Hold"))
		Expect(left.Recommended).NotTo(BeNil())
		Expect(near(*left.Recommended, *found.Recommended)).To(BeTrue(), "was %v, is %v", found.Recommended, left.Recommended)
		Expect(left.Reasons).To(ContainElement(ContainSubstring("the last recommendation stands")))
	})
})
