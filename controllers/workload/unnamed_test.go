// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

var _ = Describe("An init container that nobody named", func() {
	var w *world
	killed := []build.ContainerOption{build.Limit("32Mi"), build.OOMKilled(start.Add(-10 * time.Second))}
	BeforeEach(func() { w = newWorld() })

	It("is said to need a name, where it is OOM-killed", func() {
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative))
		w.applied(w.pod("web").InitContainer("setup", killed...).Obj())
		rec := w.reconciled(w.alone("web"))
		Expect(rec.Status.Remedies).To(ConsistOf(And(
			MatchRegexp(`^Init container setup was OOM-killed 1 time, last at 2026-11-20T[0-9:]{8}Z with limit 32Mi`),
			ContainSubstring("add {name: setup} to spec.containers of MemoryProfile "+w.namespace+"/web"))))
		Expect(w.recorder.all()).To(
			ContainElement(And(HavePrefix("Warning Pod/web OOMKilled: Pod web: "), ContainSubstring("add {name: setup}"))),
		)
	})

	It("is not spoken of once it is named, where it is ignored, or while it lives", func() {
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, func(s *v1alpha1.MemoryProfileSpec) {
			s.Containers = []v1alpha1.ContainerPolicy{{Name: "setup", Mode: "Managed"}, {Name: "legacy", Mode: "Ignored"}}
		}))
		w.applied(
			w.pod("web").InitContainer("setup", killed...).InitContainer("legacy", killed...).InitContainer(
				"fine", build.Limit("32Mi"),
			).Obj(),
		)
		Expect(w.reconciled(w.alone("web")).Status.Remedies).To(BeEmpty())
	})
})

var _ = Describe("A CronJob between its runs", func() {
	It("is said to begin its next run with the size, not to have 0 of 0 pods", func() {
		w := newWorld()
		for name, mode := range map[string]v1alpha1.SizingMode{
			"web": v1alpha1.SizingOnCreate, "in-place": v1alpha1.SizingInPlace,
		} {
			w.profiled(build.Profile(w.namespace, name, v1alpha1.RuntimeNative, build.Sizing(mode)))
			cron := build.CronJob(w.namespace, "nightly-"+name)
			expect.Applied(w.ctx, w.client, cron)
			job := build.Job(w.namespace, cron.Name+"-1", cron)
			expect.Applied(w.ctx, w.client, job)
			w.applied(w.pod(job.Name,
				build.Ended(start.Add(-time.Second), "OOMKilled", 137)).Annotate(v1alpha1.ProfileAnnotation, name).
				RestartPolicy(corev1.RestartPolicyNever).Phase(corev1.PodFailed).OwnedBy(job, "batch/v1", "Job").Obj())
			rec := w.reconciled(
				memory.WorkloadRef{APIVersion: "batch/v1", Kind: "CronJob", Namespace: w.namespace, Name: cron.Name},
			)
			Expect(rec.Status.RecommendedLimit).NotTo(BeEmpty())
			Expect(rec.Status.Conditions).To(expect.HaveCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse,
				v1alpha1.ReasonWaitingForNewPods,
				Equal("No running pods; for the next run, the recommended limit is "+rec.Status.RecommendedLimit)))
		}
	})
})
