// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

var _ = Describe("An OOM kill", func() {
	var w *world
	BeforeEach(func() {
		w = newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNodeJS))
	})
	kill := func(at time.Duration) build.ContainerOption { return build.OOMKilled(start.Add(at)) }
	second := time.Second

	It("is in the checkpoint, in the recommendation and in events", func() {
		pod := w.pod("web", kill(-10*second))
		w.applied(pod.Obj())
		rec := w.reconciled(w.alone("web"))

		Expect(rec.Status.OOMKills).To(BeEquivalentTo(1))
		Expect(rec.Status.RecentOOMKills).To(HaveLen(1))
		Expect(rec.Status.RecentOOMKills[0].Container).To(Equal("app"))
		Expect(rec.Status.RecentOOMKills[0].Limit.String()).To(Equal("256Mi"))
		Expect(rec.Status.Conditions).To(
			expect.HaveCondition(
				v1alpha1.ConditionOOMObserved, metav1.ConditionTrue, v1alpha1.ReasonOOMKilled, ContainSubstring("256Mi"),
			),
		)
		Expect(rec.OwnerReferences).To(HaveLen(1), "the garbage collector removes it with its workload")
		Expect(w.checkpoint(w.alone("web")).Status.Ledger).NotTo(BeEmpty())
		Expect(w.recorder.all()).To(
			ContainElement(
				And(HavePrefix("Warning Pod/web OOMKilled: Container app was OOM-killed"), ContainSubstring("256Mi")),
			),
		)
	})

	It("is answered at once with a larger limit", func() {
		w.applied(w.pod("web", kill(-10*second)).Obj())
		rec := w.reconciled(w.alone("web"))
		Expect(rec.Status.Containers).To(HaveLen(1))
		Expect(rec.Status.Containers[0].Decision).To(Equal("Increase"))
		Expect(rec.Status.Containers[0].Recommended.Limit.Cmp(*rec.Status.RecentOOMKills[0].Limit)).To(Equal(1))
		Expect(rec.Status.Conditions).To(
			expect.HaveCondition(
				v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonRecommendationReady, Not(BeEmpty()),
			),
		)
		Expect(w.recorder.all()).To(ContainElement(HavePrefix("Normal Pod/web RecommendationChanged: Container app: ")))
	})

	It("is found when the workload is governed later, though its pods have not changed since", func() {
		w.applied(w.pod("web", kill(-10*second)).Annotate(v1alpha1.ProfileAnnotation, "later").Obj())
		Expect(w.reconcile(w.alone("web"))).To(Succeed())
		w.passes(time.Second)
		w.profiled(build.Profile(w.namespace, "later", v1alpha1.RuntimeNodeJS))
		w.feed.Enqueue(w.alone("web")) // as the change of a profile or of an owner's annotation does
		rec := w.reconciled(w.alone("web"))
		Expect(rec.Status.OOMKills).To(BeEquivalentTo(1))
		Expect(rec.Status.Containers[0].Decision).To(Equal("Increase"))
	})

	It("is counted once however often it is seen", func() {
		pod := w.pod("web", kill(-10*second)).Obj()
		w.applied(pod)
		w.reconciled(w.alone("web"))
		for range 3 {
			w.seen(pod)
			w.passes(time.Minute)
			Expect(w.reconciled(w.alone("web")).Status.OOMKills).To(BeEquivalentTo(1))
		}
	})

	It("is told apart from the one before, also when both happened between two looks", func() {
		pod := w.pod("web")
		w.applied(pod.Obj())
		w.reconciled(w.alone("web"))
		w.applied(pod.Container("app", kill(10*second), kill(20*second)).Obj())
		Expect(w.reconciled(w.alone("web")).Status.OOMKills).To(BeEquivalentTo(2))
	})

	It("is counted when the pod is deleted right after it", func() {
		job := w.job("run")
		pod := w.pod("run-1").OwnedBy(job, "batch/v1", "Job")
		w.applied(pod.Obj())
		w.reconciled(w.jobRef("run"))
		killed := pod.Container("app", kill(10*second)).Obj()
		w.applied(killed)
		w.deleted(killed)
		rec := w.reconciled(w.jobRef("run"))
		Expect(rec.Status.OOMKills).To(BeEquivalentTo(1))
		Expect(rec.Status.Containers).To(HaveLen(1), "what was found about the container stays")
	})

	It("is counted when the deletion itself was missed, and the relist tells of it", func() {
		pod := w.pod("run-1", kill(-10*second)).OwnedBy(w.job("run"), "batch/v1", "Job").Obj()
		expect.Applied(w.ctx, w.client, pod)
		last := expect.Exists(w.ctx, w.client, w.namespace, "run-1", &corev1.Pod{})
		expect.Deleted(w.ctx, w.client, pod)
		w.feed.handler(w.ctx).OnDelete(toolscache.DeletedFinalStateUnknown{Key: w.namespace + "/run-1", Obj: last})
		Expect(w.reconciled(w.jobRef("run")).Status.OOMKills).To(BeEquivalentTo(1))
	})

	It("is counted when memfit learns of the pod only by its deletion", func() {
		killed := w.pod(
			"run-1", build.Ended(start.Add(-second), "OOMKilled", 137),
		).RestartPolicy(corev1.RestartPolicyNever).Phase(corev1.PodFailed).
			OwnedBy(w.job("run"), "batch/v1", "Job").Obj()
		expect.Applied(w.ctx, w.client, killed)
		w.deleted(killed)
		rec := w.reconciled(w.jobRef("run"))
		Expect(rec.Status.OOMKills).To(BeEquivalentTo(1))
		Expect(rec.OwnerReferences).To(HaveLen(1), "also when no pod is left that says whose it was")
	})

	Context("when memfit restarts", func() {
		It("is not counted again", func() {
			pod := w.pod("web", kill(-10*second)).Obj()
			w.applied(pod)
			w.reconciled(w.alone("web"))
			for range 3 {
				w.restart()
				w.seen(pod)
				Expect(w.reconciled(w.alone("web")).Status.OOMKills).To(BeEquivalentTo(1))
			}
		})

		It("is counted although memfit was away, two of them as two", func() {
			pod := w.pod("web", kill(-10*second))
			w.applied(pod.Obj())
			w.reconciled(w.alone("web"))
			expect.Applied(w.ctx, w.client, pod.Container("app", kill(10*second), kill(20*second)).Obj())
			w.restart()
			w.seen(pod.Obj())
			Expect(w.reconciled(w.alone("web")).Status.OOMKills).To(BeEquivalentTo(3))
		})

		It("is counted once when the process died between the checkpoint and the recommendation", func() {
			w.faults.before = once[*v1alpha1.MemoryRecommendation](errors.New("killed by the test"))
			w.applied(w.pod("web", kill(-10*second)).Obj())
			Expect(w.reconcile(w.alone("web"))).To(MatchError(ContainSubstring("killed by the test")))
			Expect(w.checkpoint(w.alone("web")).Status.Ledger).NotTo(BeEmpty())
			w.restart()
			w.seen(w.pod("web").Obj())
			Expect(w.reconciled(w.alone("web")).Status.OOMKills).To(BeEquivalentTo(1))
		})
	})

	Context("when a write fails", func() {
		It("is counted once if the checkpoint was not written", func() {
			w.faults.before = once[*v1alpha1.MemoryCheckpoint](errors.New("the API server is down"))
			w.applied(w.pod("web", kill(-10*second)).Obj())
			Expect(w.reconcile(w.alone("web"))).To(MatchError(ContainSubstring("the API server is down")))
			Expect(w.recorder.all()).To(BeEmpty(), "nothing is told before it is safe")
			Expect(w.reconciled(w.alone("web")).Status.OOMKills).To(BeEquivalentTo(1))
			Expect(w.recorder.all()).To(ContainElement(HavePrefix("Warning Pod/web OOMKilled")))
		})

		It("is counted once if the checkpoint was written and the answer was lost", func() {
			w.faults.after = once[*v1alpha1.MemoryCheckpoint](errors.New("connection reset"))
			w.applied(w.pod("web", kill(-10*second)).Obj())
			Expect(w.reconcile(w.alone("web"))).To(MatchError(ContainSubstring("reset")))
			Expect(w.reconciled(w.alone("web")).Status.OOMKills).To(BeEquivalentTo(1))
		})

		It("is counted once if the recommendation was not written", func() {
			w.faults.before = once[*v1alpha1.MemoryRecommendation](errors.New("the API server is down"))
			w.applied(w.pod("web", kill(-10*second)).Obj())
			Expect(w.reconcile(w.alone("web"))).NotTo(Succeed())
			Expect(w.reconciled(w.alone("web")).Status.OOMKills).To(BeEquivalentTo(1))
		})

		It("is not lost when the pod goes while the API server is down", func() {
			pod := w.pod("run-1").OwnedBy(w.job("run"), "batch/v1", "Job")
			w.applied(pod.Obj())
			w.reconciled(w.jobRef("run"))
			w.faults.before = func(client.Object) error { return errors.New("away") }
			killed := pod.Container("app", kill(10*second)).Obj()
			w.applied(killed)
			Expect(w.reconcile(w.jobRef("run"))).NotTo(Succeed())
			w.deleted(killed)
			Expect(w.reconcile(w.jobRef("run"))).NotTo(Succeed())
			w.faults.before = nil
			Expect(w.reconciled(w.jobRef("run")).Status.OOMKills).To(BeEquivalentTo(1))
		})
	})

	It("is told apart from a heap that ran out, where a larger share of the limit may help", func() {
		w.applied(w.pod("web", build.Died(start.Add(-second), "Error", 134)).Obj())
		rec := w.reconciled(w.alone("web"))
		Expect(rec.Status.RecentOOMKills).To(HaveLen(1))
		Expect(rec.Status.RecentOOMKills[0].Kind).To(Equal("HeapAbort"), "the profile says NodeJS")
		Expect(rec.Status.Containers[0].Advice).To(ContainElement(ContainSubstring("heapPercent")))
	})

	It("is a heap abort where the command says what runs, declared or not", func() {
		w.profiled(build.Profile(w.namespace, "auto", v1alpha1.RuntimeAuto))
		for name, command := range map[string][]string{
			"plain": {"node", "server.js"}, "own-cap": {"node", "--max-old-space-size=99", "server.js"},
			"script": {"/bin/sh", "-c", "node server.js"},
		} {
			w.applied(
				w.pod(
					name, build.Command(command...), build.Died(start.Add(-second), "Error", 134),
				).Annotate(v1alpha1.ProfileAnnotation, "auto").Obj(),
			)
		}
		Expect(w.reconciled(w.alone("plain")).Status.RecentOOMKills[0].Kind).To(Equal("HeapAbort"))
		Expect(w.reconciled(w.alone("own-cap")).Status.Containers[0].Advice).To(
			ContainElement(ContainSubstring("the command line has --max-old-space-size=99: raise the heap cap there")),
		)
		Expect(w.reconciled(w.alone("script")).Status.RecentOOMKills[0].Kind).To(
			Equal("Suspected"), "what a script starts in the end is not certain",
		)
	})

	It("is one at start only where memfit would have measured it", func() {
		pod := w.pod("web", build.Started(start.Add(-14*second)), kill(-10*second))
		w.applied(pod.Obj())
		Expect(w.reconciled(w.alone("web")).Status.RecentOOMKills[0].Kind).To(Equal("MainProcess"), "memfit came later")

		w.applied(pod.Container("app", kill(10*second), kill(15*second)).Obj())
		w.passes(20 * second)
		kills := w.reconciled(w.alone("web")).Status.RecentOOMKills
		Expect(kills[0].Kind).To(Equal("AtStart"), "%+v", kills)
	})

	It("is let go when its namespace goes", func() {
		pod := w.pod("web", kill(-10*second)).Obj()
		w.applied(pod)
		expect.Deleted(w.ctx, w.client, build.Namespace(w.namespace))
		Expect(w.reconcile(w.alone("web"))).To(Succeed(), "there is nowhere to write it, and nobody to read it")
	})

	It("is counted once by two leaders that overlap", func() {
		pod := w.pod("web")
		w.applied(pod.Obj())
		w.reconciled(w.alone("web"))
		old := w.memfit
		w.restart() // a second leader, while the first still runs
		killed := pod.Container("app", kill(10*second)).Obj()
		w.applied(killed)
		Expect(w.reconciled(w.alone("web")).Status.OOMKills).To(BeEquivalentTo(1))

		w.memfit = old
		w.seen(killed)
		Expect(w.reconcile(w.alone("web"))).NotTo(Succeed(), "the checkpoint moved on under the old leader")
		Expect(w.reconciled(w.alone("web")).Status.OOMKills).To(BeEquivalentTo(1))
	})
})
