// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

var _ = Describe("Growth", func() {
	var w *world
	var run *batchv1.Job
	BeforeEach(func() {
		w = newWorld()
		run = w.job("run")
	})
	// died is a pod of the Job run that ended for good.
	died := func(name, limit string, after time.Duration, reason string, code int32) *corev1.Pod {
		ended := build.Ended(w.clock.Now().Add(-time.Second), reason, code)
		p := w.pod(
			name, build.Limit(limit), build.Request(limit), ended,
		).RestartPolicy(corev1.RestartPolicyNever).Phase(corev1.PodFailed).OwnedBy(run, "batch/v1", "Job").Obj()
		end := p.Status.ContainerStatuses[0].State.Terminated
		end.StartedAt = metav1.NewTime(end.FinishedAt.Add(-after))
		return p
	}

	It("tells the kill it acted on, when the limit is more than twice what it died at", func() {
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative))
		pod := w.pod("web", build.Limit("64Mi"), build.Request("64Mi"), build.OOMKilled(start.Add(-10*time.Second)))
		w.applied(pod.Obj())
		Expect(w.reconciled(w.alone("web")).Status.Summary).To(HavePrefix("Increase limit 64Mi to 256Mi"))
		larger := w.pod("web-2", build.Limit("256Mi"), build.Request("64Mi")).OwnedBy(run, "batch/v1", "Job")
		first := died("web-1", "64Mi", time.Second, "OOMKilled", 137)
		w.applied(first)
		w.reconciled(w.jobRef("run"))
		w.deleted(first)
		w.passes(10 * time.Second)
		w.applied(larger.Obj())
		rec := w.reconciled(w.jobRef("run"))
		Expect(rec.Status.Containers[0].Decision).To(Equal("Keep"))
		Expect(rec.Status.Summary).To(
			Equal("Keep limit 256Mi, request 64Mi: OOM-killed at 64Mi at " + start.Add(-time.Second).UTC().Format("15:04:05Z")),
		)
	})

	// The demo's third act: the pods of before are gone, and the first look at the next one finds it restarted twice.
	It("answers the kills of a pod that is seen for the first time, right after an earlier one was deleted", func() {
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNodeJS))
		before := died("web-1", "256Mi", time.Minute, "OOMKilled", 137)
		w.applied(before)
		w.reconciled(w.jobRef("run"))
		w.deleted(before)
		w.passes(time.Minute)
		now := w.clock.Now()
		next := w.pod(
			"web-2", build.Limit("512Mi"), build.OOMKilled(now.Add(-20*time.Second)), build.OOMKilled(now.Add(-5*time.Second)),
		).OwnedBy(run, "batch/v1", "Job").Obj()
		w.applied(next)
		rec := w.reconciled(w.jobRef("run"))
		Expect(rec.Status.Containers[0].Decision).To(Equal("Increase"), rec.Status.Summary)
		Expect(rec.Status.Summary).To(
			ContainSubstring("OOM-killed at 512Mi at " + now.Add(-5*time.Second).UTC().Format("15:04:05Z")),
		)
	})

	It("stops for a leak after one step, and says so", func() {
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative))
		w.applied(died("web-1", "64Mi", 10*time.Second, "OOMKilled", 137))
		Expect(w.reconciled(w.jobRef("run")).Status.RecommendedLimit).To(Equal("256Mi"))
		w.passes(time.Minute)
		w.applied(died("web-2", "256Mi", 42*time.Second, "OOMKilled", 137))
		rec := w.reconciled(w.jobRef("run"))
		Expect(rec.Status.RecommendedLimit).To(Equal("256Mi"))
		Expect(rec.Status.Summary).To(
			And(
				ContainSubstring("leak: 2 instances in a row climbed about"),
				ContainSubstring("at 64Mi after 10s and at 256Mi after 42s"),
			),
		)
		Expect(rec.Status.Conditions).To(
			expect.HaveCondition(
				v1alpha1.ConditionDriftDetected, metav1.ConditionTrue, v1alpha1.ReasonLeak,
				ContainSubstring("Container app: leak: "),
			),
		)
		Expect(w.recorder.all()).To(ContainElement(ContainSubstring("DriftDetected: Container app: leak: ")))
	})

	It("follows a heap cap that is a share of the limit, and does not say that the kernel killed", func() {
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeJVM))
		pod := died("web-1", "256Mi", time.Minute, "Error", 3)
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: "-XX:MaxRAMPercentage=50"}}
		w.applied(pod)
		rec := w.reconciled(w.jobRef("run"))
		Expect(rec.Status.Containers[0].Decision).To(Equal("Increase"), rec.Status.Summary)
		Expect(rec.Status.Containers[0].Reasons).To(ContainElement(ContainSubstring("its heap cap follows from the limit")))
		Expect(rec.Status.Containers[0].Advice).NotTo(ContainElement(ContainSubstring("does not help")))
		Expect(w.recorder.all()).To(
			ContainElement(
				HavePrefix("Warning Pod/web-1 HeapExhausted: Container app exited because its heap reached the runtime's heap cap"),
			),
		)
		Expect(w.recorder.all()).NotTo(ContainElement(ContainSubstring("OOMKilled:")))
	})

	It("is no answer to a heap cap that the owner wrote down", func() {
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeJVM))
		pod := died("web-1", "256Mi", time.Minute, "Error", 3)
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: "-Xmx128m"}}
		w.applied(pod)
		got := w.reconciled(w.jobRef("run")).Status.Containers[0]
		Expect(got.Decision).To(Equal("Hold"))
		Expect(got.Summary).To(
			ContainSubstring("the runtime gave up at its own heap cap at " + start.Add(-time.Second).UTC().Format("15:04:05Z")),
		)
		Expect(got.Advice).To(ContainElement(ContainSubstring("a higher limit alone does not help")))
	})

	It("of a request does not wait for a size, when more is in use", func() {
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative))
		full := w.pod("web-1", build.Limit("1332Mi"), build.Request("95Mi")).OwnedBy(run, "batch/v1", "Job").Obj()
		idle := w.pod("web-2", build.Limit("1332Mi"), build.Request("95Mi")).OwnedBy(run, "batch/v1", "Job").Obj()
		w.applied(full, idle)
		w.reconciled(w.jobRef("run"))
		for range 4 {
			w.passes(15 * time.Second)
			w.sampled(full, 706*memory.MiB)
			w.sampled(idle, 40*memory.MiB)
		}
		got := w.reconciled(w.jobRef("run")).Status.Containers[0]
		Expect(got.Summary).To(HavePrefix("Increase request 95Mi to 812Mi, limit stays 1.3Gi: 706Mi was in use at "))
		Expect(got.Recommended.Request.String()).To(Equal("812Mi"))
		Expect(got.Recommended.Limit.String()).To(Equal("1332Mi"))
	})
})
