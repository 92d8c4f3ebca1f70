// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
	"github.com/memfit/memfit/test/podplan"
)

var _ = Describe("What is alive in a heap without a cap", func() {
	var w *world
	var ref memory.WorkloadRef
	var pods []*corev1.Pod
	// replica is a pod of one Deployment, as it comes out of memfit's webhook, or as it went in.
	var replica func(name string, injected bool) *corev1.Pod
	BeforeEach(func() {
		w = newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNodeJS))
		deployment := build.Deployment(w.namespace, "web")
		expect.Applied(w.ctx, w.client, deployment)
		set := build.ReplicaSet(deployment, "5d4f8c7b9")
		expect.Applied(w.ctx, w.client, set)
		ref = memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: w.namespace, Name: "web"}
		pods = nil
		replica = func(name string, injected bool) *corev1.Pod {
			pod := w.pod(name, build.Limit("512Mi")).OwnedBy(set, "apps/v1", "ReplicaSet").Obj()
			if injected {
				w.injected(ref, pod)
			}
			w.applied(pod)
			pods = append(pods, pod)
			return pod
		}
	})

	// runs is a time of use: a sample a minute of each pod, looked at every ten.
	runs := func(hours int, use func(pod *corev1.Pod, minute int) memory.Bytes) *v1alpha1.MemoryRecommendation {
		GinkgoHelper()
		for minute := range hours * 60 {
			w.passes(time.Minute)
			for _, pod := range pods {
				w.sampled(pod, use(pod, minute))
			}
			if minute%10 == 9 {
				Expect(w.reconcile(ref)).To(Succeed())
			}
		}
		return w.recommendation(ref)
	}
	// collected rises and falls with collections, by half of what is alive.
	collected := func(alive memory.Bytes) func(*corev1.Pod, int) memory.Bytes {
		return func(_ *corev1.Pod, minute int) memory.Bytes { return alive + alive/2*memory.Bytes(minute%30)/30 }
	}
	evidence := func(rec *v1alpha1.MemoryRecommendation) v1alpha1.Evidence {
		GinkgoHelper()
		Expect(rec.Status.Containers).To(HaveLen(1))
		return rec.Status.Containers[0].Evidence
	}
	// aNewPod is what the webhook, which reads the recommendation in its cache, would set on one more replica.
	aNewPod := func() map[string]string {
		GinkgoHelper()
		pod := w.pod("another", build.Limit("512Mi")).Obj()
		w.injected(ref, pod)
		env := map[string]string{}
		for _, v := range pod.Spec.Containers[0].Env {
			env[v.Name] = v.Value
		}
		return env
	}

	It("keeps a cap away that would stop it, and everybody says so", func() {
		replica("web-1", false)
		rec := runs(7, collected(320*memory.MiB))
		Expect(memory.FromQuantity(*evidence(rec).LiveSet)).To(
			And(BeNumerically(">=", 320*memory.MiB), BeNumerically("<", 340*memory.MiB)),
		)
		Expect(evidence(rec).LiveSetSeen).NotTo(BeNil())
		Expect(evidence(rec).HeapCap).To(BeNil(), "it runs without")
		Expect(aNewPod()).NotTo(HaveKey("NODE_OPTIONS"))
		Expect(rec.Status.Coverage).To(HaveField("Skipped", BeEquivalentTo(1)))
		Expect(rec.Status.Coverage).To(HaveField("Missed", BeEquivalentTo(0)), "a new pod gets nothing else")
		Expect(rec.Status.Containers[0].Advice).To(
			ContainElement(And(HavePrefix("--max-old-space-size skipped: "), ContainSubstring("raise the limit to"))),
		)
	})

	It("leaves room for a cap, and everybody says so", func() {
		replica("web-1", false)
		rec := runs(7, collected(200*memory.MiB))
		Expect(evidence(rec).LiveSet).NotTo(BeNil())
		Expect(aNewPod()).To(HaveKeyWithValue("NODE_OPTIONS", "--max-old-space-size=381"))
		Expect(rec.Status.Coverage).To(HaveField("Missed", BeEquivalentTo(1)))
		Expect(rec.Status.Containers[0].Advice).NotTo(ContainElement(ContainSubstring("skipped: ")))
	})

	It("counts from the first hour on, and better after six", func() {
		replica("web-1", false)
		garbage := func(_ *corev1.Pod, minute int) memory.Bytes {
			return 450*memory.MiB - memory.Bytes(minute)*memory.MiB/2
		}
		Expect(evidence(runs(1, garbage)).LiveSet).To(BeNil())
		early := memory.FromQuantity(*evidence(runs(1, garbage)).LiveSet)
		later := memory.FromQuantity(*evidence(runs(7, garbage)).LiveSet)
		Expect(later).To(BeNumerically("<", early), "no collection had come in the first hour")
	})

	It("does not make pods stale that live with their cap, nor move with every sample", func() {
		replica("web-1", false)
		runs(7, collected(200*memory.MiB))
		capped := replica("web-2", true)
		Expect(capped.Spec.Containers[0].Env).NotTo(BeEmpty())

		var writes int
		w.faults.before = func(obj client.Object) error {
			if _, ok := obj.(*v1alpha1.MemoryRecommendation); ok {
				writes++
			}
			return nil
		}
		var states []v1alpha1.Coverage
		busy := func(_ *corev1.Pod, minute int) memory.Bytes { // 330Mi are alive and some, more in one hour than in the next
			return (330+memory.Bytes(minute/60%5)*5)*memory.MiB + memory.Bytes(minute%30)*3*memory.MiB
		}
		for range 12 {
			states = append(states, *runs(6, busy).Status.Coverage)
		}
		for _, s := range states[2:] { // the first two are when it becomes known
			Expect(s.SkippedReason).NotTo(BeEmpty())
			s.SkippedReason = ""
			Expect(s).To(Equal(v1alpha1.Coverage{Governed: 2, Injected: 1, Skipped: 1}))
		}
		Expect(writes).To(BeNumerically("<=", 40), "in three days of which most of the first is news")
	})

	It("is what it was after a restart of memfit", func() {
		pod := replica("web-1", false)
		before := runs(7, collected(320*memory.MiB))
		w.restart()
		w.seen(pod)
		after := w.reconciled(ref)
		Expect(after.Status.Containers[0].Evidence.LiveSet).To(Equal(before.Status.Containers[0].Evidence.LiveSet))
		Expect(after.Status.Coverage).To(Equal(before.Status.Coverage))
	})

	It("stands when all replicas have a cap, whose least is named", func() {
		replica("web-1", false)
		before := evidence(runs(7, collected(200*memory.MiB)))
		w.deleted(pods...)
		pods = nil
		replica("web-2", true)
		after := evidence(runs(9, collected(300*memory.MiB))) // what it holds now includes what it need not collect
		Expect(after.LiveSet).To(Equal(before.LiveSet))
		Expect(after.HeapCap).To(HaveValue(Equal(resource.MustParse("381Mi"))))
		Expect(aNewPod()).To(HaveKey("NODE_OPTIONS"))
	})
})

// injected does to a pod what the webhook does, by the recommendation as its cache holds it.
func (w *world) injected(ref memory.WorkloadRef, pod *corev1.Pod) {
	GinkgoHelper()
	slim, err := informers.SlimRecommendation(w.recommendation(ref))
	Expect(err).NotTo(HaveOccurred())
	rec, ok := slim.(*v1alpha1.MemoryRecommendation)
	Expect(ok).To(BeTrue())
	resolved, err := w.reconciler.Resolver.Resolve(w.ctx, pod)
	Expect(err).NotTo(HaveOccurred())
	Expect(resolved.Profile).NotTo(BeNil())
	Expect(policy.RecordName(ref)).To(Equal(rec.Name))
	observed := inject.ObservedIn(rec.Status.Containers)
	podplan.Apply(pod, inject.MakePlan(inject.Input{Pod: pod, Profile: resolved.Profile, Observed: observed}))
}
