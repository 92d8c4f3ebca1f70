// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

var _ = Describe("A Job", func() {
	job := func(name string, of *batchv1.CronJob, suspend bool) *batchv1.Job {
		j := build.Job(of.Namespace, name, of)
		j.Spec.Suspend = &suspend
		c := &j.Spec.Template.Spec.Containers[0]
		c.Command = []string{"node", "report.js"}
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}
		return j
	}
	limit := func(spec corev1.PodSpec) string { return spec.Containers[0].Resources.Limits.Memory().String() }
	// cronJob is a CronJob for whose pods 768Mi are recommended.
	cronJob := func(mode v1alpha1.SizingMode) *batchv1.CronJob {
		ns := namespace()
		profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS, build.Sizing(mode)))
		cron := build.CronJob(ns, "report", v1alpha1.ProfileAnnotation, "web")
		expect.Applied(ctx, api, cron)
		ref := memory.WorkloadRef{APIVersion: "batch/v1", Kind: "CronJob", Namespace: ns, Name: "report"}
		rec := &v1alpha1.MemoryRecommendation{}
		rec.Namespace, rec.Name = ns, policy.RecordName(ref)
		rec.OwnerReferences = []metav1.OwnerReference{build.ControllerRef(cron, "batch/v1", "CronJob")}
		rec.Status.Workload = v1alpha1.WorkloadReference{APIVersion: "batch/v1", Kind: "CronJob", Name: "report"}
		rec.Status.Profile = v1alpha1.ProfileReference{Kind: "MemoryProfile", Name: "web"}
		expect.Applied(ctx, api, rec)
		q := resource.MustParse("768Mi")
		rec.Status.Containers = []v1alpha1.ContainerRecommendation{
			{Container: "app", Decision: "Increase", Summary: "test", NewPods: &v1alpha1.Size{Limit: &q, Request: &q}},
		}
		Expect(api.Status().Update(ctx, rec)).To(Succeed())
		return cron
	}

	It("that is suspended has the memory of its pods before they exist, and nothing else", func() {
		cron := cronJob(v1alpha1.SizingOnCreate)
		var suspended *batchv1.Job
		Eventually(func(g Gomega) {
			suspended = job("report-1", cron, true)
			g.Expect(api.Create(ctx, suspended, client.DryRunAll)).To(Succeed())
			g.Expect(limit(suspended.Spec.Template.Spec)).To(Equal("768Mi"))
		}).MustPassRepeatedly(len(replicas)).WithTimeout(5 * time.Second).Should(Succeed())
		suspended = job("report-1", cron, true)
		Expect(api.Create(ctx, suspended)).To(Succeed())
		template := &suspended.Spec.Template
		Expect(limit(template.Spec)).To(Equal("768Mi"))
		Expect(template.Spec.Containers[0].Resources.Requests.Memory().String()).To(Equal("768Mi"))
		Expect(template.Spec.Containers[0].Env).To(BeEmpty())
		Expect(template.Annotations).To(And(HaveLen(1), HaveKey(v1alpha1.InjectedAnnotation)))

		By("its pods are as if it had not been changed")
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Namespace, pod.Name = cron.Namespace, "report-1-x7k2p"
		pod.OwnerReferences = []metav1.OwnerReference{build.ControllerRef(suspended, "batch/v1", "Job")}
		Expect(envOf(created(pod))).To(HaveKeyWithValue("NODE_OPTIONS", ContainSubstring(heapFlag)))
		Expect(limit(pod.Spec)).To(Equal("768Mi"))
		Expect(inject.ProgramOf(pod, "app", false).Owner.Limit).To(BeEquivalentTo(512 << 20))

		By("it starts")
		suspended.Spec.Suspend = new(false)
		Expect(api.Update(ctx, suspended)).To(Succeed())

		By("a Job that starts immediately is left to the webhook for pods")
		running := job("report-2", cron, false)
		Expect(api.Create(ctx, running)).To(Succeed())
		Expect(limit(running.Spec.Template.Spec)).To(Equal("512Mi"))
	})

	It("is unchanged where the profile only recommends", func() {
		suspended := job("report-1", cronJob(v1alpha1.SizingRecommend), true)
		Consistently(func(g Gomega) {
			g.Expect(api.Create(ctx, suspended.DeepCopy(), client.DryRunAll)).To(Succeed())
			g.Expect(limit(suspended.Spec.Template.Spec)).To(Equal("512Mi"))
		}).WithTimeout(time.Second).Should(Succeed())
	})

	It("without a controller is sized by its identity, unless it may be applied again", func() {
		ns := namespace()
		profiled(build.Profile(ns, "web", v1alpha1.RuntimeNodeJS, build.Sizing(v1alpha1.SizingOnCreate),
			func(s *v1alpha1.MemoryProfileSpec) {
				s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "ml"}}
				s.Identity = &v1alpha1.IdentitySpec{Labels: []v1alpha1.LabelKey{"step"}}
			}))
		train := func(name, generateName string) *batchv1.Job {
			j := job(name, &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: ns}}, true)
			j.GenerateName, j.OwnerReferences = generateName, nil
			j.Spec.Template.Labels = map[string]string{"team": "ml", "step": "train"}
			return j
		}
		first := train("", "train-")
		Expect(api.Create(ctx, first)).To(Succeed())
		Expect(limit(first.Spec.Template.Spec)).To(Equal("512Mi"), "nothing is known")

		pod := &corev1.Pod{ObjectMeta: first.Spec.Template.ObjectMeta, Spec: first.Spec.Template.Spec}
		pod.Namespace, pod.Name = ns, first.Name+"-x7k2p"
		pod.OwnerReferences = []metav1.OwnerReference{build.ControllerRef(first, "batch/v1", "Job")}
		failed(created(pod))

		second := train("", "train-")
		Expect(api.Create(ctx, second)).To(Succeed())
		Expect(second.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value()).To(
			BeNumerically(">", 600<<20), "its predecessor was OOM-killed at 512Mi",
		)
		warnings.taken()
		named := train("train", "")
		Expect(api.Create(ctx, named)).To(Succeed())
		Expect(limit(named.Spec.Template.Spec)).To(Equal("512Mi"))
		Expect(warnings.taken()).To(ContainElement(ContainSubstring("metadata.generateName")))
	})
})
