// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
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

		damaged := w.checkpoint(w.alone("web"))
		damaged.Status.Containers[0].History = []byte("damaged")
		Expect(w.client.Status().Update(w.ctx, damaged)).To(Succeed())
		w.restart()
		w.seen(pod)
		left := w.reconciled(w.alone("web")).Status.Containers[0]
		Expect(left.Decision).To(Equal("Hold"))
		Expect(left.Recommended).NotTo(BeNil())
		expectNear(left.Recommended.Limit, found.Recommended.Limit)
		Expect(left.Reasons).To(ContainElement(ContainSubstring("the recommendation is unchanged")))
	})

	It("is bounded by the profile as it is now, and says so", func() {
		w := newWorld()
		spec := build.Profile(w.namespace, "web", v1alpha1.RuntimeNative)
		w.profiled(spec)
		pod := w.pod("web").Obj()
		w.applied(pod)
		w.reconciled(w.alone("web"))
		stored := w.checkpoint(w.alone("web"))
		stored.Status.Published = fmt.Appendf(
			nil, `{"sizes":{"app":{"s":{"Limit":%d,"Request":%d}}}}`, 512*memory.MiB, 300*memory.MiB,
		)
		Expect(w.client.Status().Update(w.ctx, stored)).To(Succeed())

		bounded := func(edit func(*v1alpha1.SizingSpec)) v1alpha1.ContainerRecommendation {
			GinkgoHelper()
			spec.Spec.Sizing = v1alpha1.SizingSpec{}
			edit(&spec.Spec.Sizing)
			w.profiled(spec)
			w.restart()
			w.seen(pod)
			return w.reconciled(w.alone("web")).Status.Containers[0]
		}
		below := bounded(func(s *v1alpha1.SizingSpec) {
			s.Limit = &v1alpha1.Bounds{Max: v1alpha1.NewMemoryQuantity(resource.MustParse("100Mi"))}
		})
		Expect(below.Decision).To(Equal("Hold"), "nothing was measured yet")
		Expect(
			[]string{below.Recommended.Limit.String(), below.Recommended.Request.String()},
		).To(Equal([]string{"100Mi", "100Mi"}))
		Expect(below.Reasons).To(ContainElement("clamped from 512Mi to limit.max 100Mi"))

		never := bounded(func(s *v1alpha1.SizingSpec) { s.Decrease = v1alpha1.DecreaseNever })
		Expect(never.Recommended.Limit.String()).To(Equal("256Mi"), "what the container has")
		Expect(never.Reasons).To(ContainElement("limit stays at 256Mi although 100Mi is enough: decrease is Never"))
	})

	It("is no more than the limit of the whole pod, with the advice to raise it there", func() {
		w := newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative))
		pod := w.pod("web", build.Limit("64Mi"), build.Request("32Mi"), build.OOMKilled(start)).
			Whole(corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")}})
		w.applied(pod.Obj())
		killed := w.reconciled(w.alone("web")).Status.Containers[0]
		Expect(killed.Recommended).NotTo(BeNil(), killed.Summary)
		Expect(killed.Recommended.Limit.String()).To(Equal("100Mi"))
		Expect(killed.Reasons).To(
			ContainElement(ContainSubstring("to the limit of the whole pod, 100Mi (spec.resources.limits.memory)")),
		)
		Expect(killed.Advice).To(
			ContainElement(ContainSubstring("raise the limit of the whole pod (spec.resources.limits.memory)")),
		)
	})

	It("is what a container needs where new pods get a size as a whole that goes with it, and says so", func() {
		w := newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingOnCreate)))
		pod := w.pod("web", build.Limit("64Mi"), build.Request("32Mi"), build.OOMKilled(start)).
			Whole(corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")}})
		w.applied(pod.Obj())
		killed := w.reconciled(w.alone("web")).Status.Containers[0]
		Expect(killed.Recommended).NotTo(BeNil(), killed.Summary)
		Expect(killed.Recommended.Limit.Cmp(resource.MustParse("100Mi"))).To(Equal(1), killed.Recommended.Limit.String())
		Expect(killed.Reasons).To(
			ContainElement(HavePrefix("new pods as a whole (spec.resources) get limit ")),
		)
	})
})
