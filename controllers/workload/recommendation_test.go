// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

// sampled delivers one look at the pod's container, as the collector would.
func (w *world) sampled(pod *corev1.Pod, rss memory.Bytes) {
	w.sampledSince(pod, rss, start.Add(-time.Hour))
}

// sampledSince is a look at a container that started then.
func (w *world) sampledSince(pod *corev1.Pod, rss memory.Bytes, started time.Time) {
	w.reconciler.Inbox.Sampled("node-1", []memory.Sample{{
		Container: memory.ContainerRef{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Container: "app"},
		Time:      w.clock.Now(), Started: started, RSS: rss, HasRSS: true, Exact: true, WorkingSet: rss + 8*memory.MiB,
	}}, "kubelet")
}

var _ = Describe("A recommendation", func() {
	var w *world
	var pod *corev1.Pod
	BeforeEach(func() {
		w = newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative))
		pod = w.pod("web").Obj()
		w.applied(pod)
		w.reconciled(w.alone("web"))
	})

	// watched is a time of steady use: a sample a minute, looked at every ten.
	watched := func(hours int) *v1alpha1.MemoryRecommendation {
		for minute := range hours * 60 {
			w.passes(time.Minute)
			w.sampled(pod, 100*memory.MiB)
			if minute%10 == 9 {
				Expect(w.reconcile(w.alone("web"))).To(Succeed())
			}
		}
		return w.recommendation(w.alone("web"))
	}

	It("holds while evidence is short, and says what is missing", func() {
		rec := w.recommendation(w.alone("web"))
		Expect(rec.Status.Containers).To(HaveLen(1))
		Expect(rec.Status.Containers[0].Decision).To(Equal("Hold"))
		Expect(rec.Status.Containers[0].Recommended).To(BeNil())
		Expect(rec.Status.Containers[0].Current.Limit.String()).To(Equal("256Mi"))
		Expect(rec.Status.Conditions).To(
			expect.HaveCondition(
				v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNotEnoughEvidence, Not(BeEmpty()),
			),
		)
		Expect(rec.Status.Conditions).To(
			expect.HaveCondition(
				v1alpha1.ConditionOOMObserved, metav1.ConditionFalse, v1alpha1.ReasonNoOOMKill, "No OOM kill in the last 24h",
			),
		)
	})

	It("is written once in ten minutes for what goes up and down with every restart", func() {
		w.passes(time.Minute)
		w.sampled(pod, 130*memory.MiB) // no later reading is a new peak
		version, writes := watched(26).ResourceVersion, 0
		for minute := range 40 {
			w.passes(time.Minute)
			w.sampledSince(pod, []memory.Bytes{60 * memory.MiB, 90 * memory.MiB}[minute%2], w.clock.Now().Add(-time.Second))
			Expect(w.reconcile(w.alone("web"))).To(Succeed())
			if now := w.recommendation(w.alone("web")).ResourceVersion; now != version {
				version, writes = now, writes+1
			}
		}
		Expect(writes).To(BeNumerically(">=", 3), "use is not forgotten")
		Expect(writes).To(BeNumerically("<=", 5), "40 restarts in 40 minutes")
	})

	It("rests on samples, which it names", func() {
		rec := watched(26)
		c := rec.Status.Containers[0]
		Expect(c.Recommended).NotTo(BeNil(), c.Summary)
		limit := memory.FromQuantity(*c.Recommended.Limit)
		Expect(limit).To(BeNumerically(">=", 100*memory.MiB))
		Expect(limit).To(BeNumerically("<", 256*memory.MiB), "100Mi of use needs no 256Mi")
		Expect(c.Evidence.PeakRSS.String()).To(Equal("100Mi"))
		Expect(c.Usage.String()).To(Equal("100Mi"))
		Expect(c.UsageTime.Time).To(BeTemporally("~", w.clock.Now(), 24*time.Hour), "of the last time that it was written")
		Expect(c.Evidence.Source).To(Equal("kubelet"))
		Expect(rec.Status.RecommendedLimit).To(Equal(limit.String()))
		Expect(rec.Status.Conditions).To(
			expect.HaveCondition(
				v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonModeRecommend, ContainSubstring("OnCreate"),
			),
		)
	})

	It("is written when it says something new, not with every sample", func() {
		watched(26)
		writes := map[string]int{}
		w.faults.before = func(obj client.Object) error {
			switch obj.(type) {
			case *v1alpha1.MemoryRecommendation:
				writes["recommendation"]++
			case *v1alpha1.MemoryCheckpoint:
				writes["checkpoint"]++
			}
			return nil
		}
		watched(10)
		Expect(writes["recommendation"]).To(BeNumerically("<=", 3), "in sixty looks at a steady workload")
		Expect(writes["checkpoint"]).To(Equal(60), "the history, every ten minutes")
	})

	It("survives a restart of memfit with its evidence", func() {
		before := watched(26)
		w.restart()
		w.seen(pod)
		after := w.reconciled(w.alone("web"))
		Expect(after.Status.Containers[0].Recommended).To(Equal(before.Status.Containers[0].Recommended))
		Expect(after.ResourceVersion).To(Equal(before.ResourceVersion), "a restart is no news")
	})

	It("comes back when somebody deletes it", func() {
		rec := watched(26)
		expect.Deleted(w.ctx, w.client, rec)
		back := w.reconciled(w.alone("web")).Status.Containers[0].Recommended
		expectNear(back.Limit, rec.Status.Containers[0].Recommended.Limit)
	})

	It("is withdrawn when the workload opts out, and remembers when it opts in again", func() {
		rec := watched(26)
		pod.Annotations[v1alpha1.InjectAnnotation] = "false"
		Expect(w.client.Update(w.ctx, pod)).To(Succeed())
		w.seen(pod)
		Expect(w.reconcile(w.alone("web"))).To(Succeed())
		expect.Missing(w.ctx, w.client, w.namespace, rec.Name, &v1alpha1.MemoryRecommendation{})

		delete(pod.Annotations, v1alpha1.InjectAnnotation)
		Expect(w.client.Update(w.ctx, pod)).To(Succeed())
		w.seen(pod)
		Expect(w.reconciled(w.alone("web")).Status.Containers[0].Evidence.PeakRSS.String()).To(Equal("100Mi"))
	})

	It("says when pods run without what the profile would set", func() {
		web := build.Pod(w.namespace, "early").Annotate(
			v1alpha1.ProfileAnnotation, "node",
		).On("node-1").Container("app", build.Limit("256Mi")).Obj()
		w.profiled(build.Profile(w.namespace, "node", v1alpha1.RuntimeNodeJS))
		w.applied(web) // no webhook here: the pod is as its owner wrote it
		rec := w.reconciled(w.alone("early"))
		Expect(*rec.Status.Coverage).To(HaveField("Missed", BeEquivalentTo(1)))
		Expect(w.recorder.all()).To(
			ContainElement(
				And(HavePrefix("Warning Pod/early InjectionOutOfDate: 1 of 1 pods"), ContainSubstring("create it again")),
			),
		)
	})

	It("is not made for pods that nobody governs", func() {
		free := build.Pod(w.namespace, "free").Container("app", build.OOMKilled(start)).Obj()
		w.applied(free)
		Expect(w.reconcile(w.alone("free"))).To(Succeed())
		expect.Missing(w.ctx, w.client, w.namespace, policy.RecordName(w.alone("free")), &v1alpha1.MemoryRecommendation{})
		expect.Missing(w.ctx, w.client, w.namespace, policy.RecordName(w.alone("free")), &v1alpha1.MemoryCheckpoint{})
	})

	It("is refused by a checkpoint of a newer memfit, which is left alone", func() {
		checkpoint := w.checkpoint(w.alone("web"))
		checkpoint.Status.Version = v1alpha1.CheckpointVersion + 1
		Expect(w.client.Status().Update(w.ctx, checkpoint)).To(Succeed())
		w.restart()
		w.seen(pod)
		Expect(w.reconcile(w.alone("web"))).To(Succeed())
		Expect(w.recommendation(w.alone("web")).Status.Conditions).To(
			expect.HaveCondition(
				v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonCheckpointTooNew,
				ContainSubstring("Upgrade memfit"),
			))
		Expect(w.recorder.all()).To(ContainElement(HavePrefix("Warning Pod/web CheckpointTooNew: ")))
		Expect(w.checkpoint(w.alone("web")).ResourceVersion).To(Equal(checkpoint.ResourceVersion))
	})

	It("rests between two looks at a large workload, but not when something was killed", func() {
		deployment := build.Deployment(w.namespace, "big", v1alpha1.ProfileAnnotation, "web")
		expect.Applied(w.ctx, w.client, deployment)
		set := build.ReplicaSet(deployment, "5d4f8c7b9")
		expect.Applied(w.ctx, w.client, set)
		big := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: w.namespace, Name: "big"}
		var last *build.PodWrapper
		for i := range 60 {
			last = w.pod(fmt.Sprintf("big-%d", i)).OwnedBy(set, "apps/v1", "ReplicaSet")
			w.applied(last.Obj())
		}
		rec := w.reconciled(big)
		Expect(*rec.Status.Coverage).To(HaveField("Governed", BeEquivalentTo(60)))

		w.seen(last.Obj())
		result, err := w.reconciler.Reconcile(w.ctx, big)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(Equal(120 * time.Millisecond))

		w.applied(last.Container("app", build.OOMKilled(start)).Obj())
		Expect(w.reconciled(big).Status.OOMKills).To(BeEquivalentTo(1), "without any time having passed")
	})
})
