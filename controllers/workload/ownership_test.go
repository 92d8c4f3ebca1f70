// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/controllers/sweeper"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/records"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

// The API server of these tests has no garbage collector: what disappears here, memfit deleted.
var _ = Describe("What is recorded of a workload", func() {
	var (
		w   *world
		ref memory.WorkloadRef
	)
	BeforeEach(func() {
		w = newWorld()
		ref = memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: w.namespace, Name: "web"}
		everything := build.Profile(
			w.namespace, "web", v1alpha1.RuntimeNodeJS,
			func(s *v1alpha1.MemoryProfileSpec) { s.Selector = &metav1.LabelSelector{} },
		)
		w.profiled(everything)
	})
	deployed := func() (*appsv1.Deployment, *appsv1.ReplicaSet) {
		GinkgoHelper()
		d := build.Deployment(w.namespace, "web")
		expect.Applied(w.ctx, w.client, d)
		set := build.ReplicaSet(d, "5d4f8c7b9")
		expect.Applied(w.ctx, w.client, set)
		return d, set
	}
	runs := func(set *appsv1.ReplicaSet, name string, options ...build.ContainerOption) *build.PodWrapper {
		return w.pod(name, options...).Label(
			"app", "web", "pod-template-hash", "5d4f8c7b9",
		).OwnedBy(set, "apps/v1", "ReplicaSet")
	}
	killed := build.OOMKilled(start.Add(-time.Minute))
	unrecorded := func(of memory.WorkloadRef) {
		GinkgoHelper()
		expect.Missing(w.ctx, w.client, of.Namespace, policy.RecordName(of), &v1alpha1.MemoryRecommendation{})
		expect.Missing(w.ctx, w.client, of.Namespace, policy.RecordName(of), &v1alpha1.MemoryCheckpoint{})
	}
	// ghost is a record without an owner, as memfit never writes it, with the kill of an earlier pod in it.
	ghost := func(of memory.WorkloadRef) {
		GinkgoHelper()
		meta := metav1.ObjectMeta{Namespace: of.Namespace, Name: policy.RecordName(of)}
		expect.Applied(w.ctx, w.client, &v1alpha1.MemoryCheckpoint{ObjectMeta: meta},
			&v1alpha1.MemoryRecommendation{ObjectMeta: meta})
	}
	sweep := func() (int, error) {
		return sweeper.Sweeper{Client: w.faulty, APIReader: w.faulty, Clock: w.clock}.Sweep(w.ctx)
	}

	It("goes with it, and does not come back when its last pods end", func() {
		d, set := deployed()
		pods := []*corev1.Pod{runs(set, "web-1").Obj(), runs(set, "web-2", killed).Obj()}
		w.applied(pods...)
		Expect(w.reconciled(ref).OwnerReferences).To(Equal(records.Owners(ref, d.UID)))
		Expect(w.checkpoint(ref).OwnerReferences).To(Equal(records.Owners(ref, d.UID)))

		expect.Deleted(w.ctx, w.client, d)
		w.feed.vanished(appsv1.SchemeGroupVersion.WithKind("Deployment"), d)
		Expect(w.reconcile(ref)).To(Succeed())
		unrecorded(ref)

		expect.Deleted(w.ctx, w.client, set)
		w.applied(runs(set, "web-1", killed).Obj())
		Expect(w.reconcile(ref)).To(Succeed())
		w.deleted(pods...)
		Expect(w.reconcile(ref)).To(Succeed())
		unrecorded(ref)
	})

	It("is not written for a Job that went with its last pod", func() {
		job := w.job("once")
		pod := w.pod(
			"once-1", build.Ended(start.Add(-time.Second), "OOMKilled", 137),
		).RestartPolicy(corev1.RestartPolicyNever).OwnedBy(job, "batch/v1", "Job").Obj()
		expect.Applied(w.ctx, w.client, pod)
		Expect(w.client.Delete(w.ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		w.deleted(pod)
		Expect(w.reconcile(w.jobRef("once"))).To(Succeed())
		unrecorded(w.jobRef("once"))
	})

	It("is not written while the workload is being deleted", func() {
		d := build.Deployment(w.namespace, "web")
		d.Finalizers = []string{"example.com/wait"}
		expect.Applied(w.ctx, w.client, d)
		set := build.ReplicaSet(d, "5d4f8c7b9")
		expect.Applied(w.ctx, w.client, set)
		Expect(w.client.Delete(w.ctx, d)).To(Succeed())
		w.applied(runs(set, "web-1", killed).Obj())
		Expect(w.reconcile(ref)).To(Succeed())
		unrecorded(ref)
	})

	It("is not an error when it goes between two reads", func() {
		d, set := deployed()
		w.applied(runs(set, "web-1").Obj())
		w.reconciled(ref)
		w.applied(runs(set, "web-1", killed).Obj())
		w.faults.before = func(obj client.Object) error { // the garbage collector was faster
			Expect(client.IgnoreNotFound(w.client.Delete(w.ctx, d))).To(Succeed())
			return apierrors.NewNotFound(
				schema.GroupResource{Group: v1alpha1.Group, Resource: "memorycheckpoints"}, obj.GetName(),
			)
		}
		Expect(w.reconcile(ref)).To(Succeed())
		unrecorded(ref)
	})

	DescribeTable("is inherited by the same program in a workload of the same name, without pods that still end",
		func(inherited int, restarted, collected bool, options ...build.ContainerOption) {
			d, set := deployed()
			old := runs(set, "web-1", killed)
			w.applied(old.Obj())
			before := w.reconciled(ref)
			Expect(before.Status.OOMKills).To(BeEquivalentTo(1))
			Expect(before.Status.Containers[0].Recommended).NotTo(BeNil())

			expect.Deleted(w.ctx, w.client, d)
			if restarted { // another leader knows what is stored
				w.restart()
			}
			if collected {
				w.feed.vanished(appsv1.SchemeGroupVersion.WithKind("Deployment"), d)
				Expect(w.reconcile(ref)).To(Succeed())
				unrecorded(ref)
			}
			again := build.Deployment(w.namespace, "web")
			expect.Applied(w.ctx, w.client, again)
			newSet := build.ReplicaSet(again, "77ff")
			expect.Applied(w.ctx, w.client, newSet)
			young := w.pod("web-77ff-1", options...).Label("pod-template-hash", "77ff").OwnedBy(
				newSet, "apps/v1", "ReplicaSet").Obj()
			w.applied(young, runs(set, "web-1", killed, build.OOMKilled(start)).Obj())
			rec := w.reconciled(ref)
			Expect(rec.OwnerReferences).To(Equal(records.Owners(ref, again.UID)))
			Expect(rec.Status.OOMKills).To(BeEquivalentTo(inherited))
			Expect(rec.Status.Containers[0].Recommended != nil).To(Equal(inherited > 0))
			Expect(rec.Status.Coverage.Governed).To(BeEquivalentTo(1))
			Expect(w.checkpoint(ref).OwnerReferences).To(Equal(records.Owners(ref, again.UID)))

			w.deleted(old.Obj())
			Expect(w.reconciled(ref).Status.OOMKills).To(BeEquivalentTo(inherited))
			w.restart()
			w.seen(young)
			Expect(w.reconciled(ref).Status.OOMKills).To(BeEquivalentTo(inherited))
		},
		Entry("from memory", 1, false, false),
		Entry("after its records were deleted", 1, false, true),
		Entry("from what is stored", 1, true, false),
		Entry("and by no other program", 0, false, false, build.Command("another")),
		Entry("nor with other numbers of its owner", 0, true, false, build.Limit("300Mi")),
	)

	It("is not inherited from a record without an owner either", func() {
		ghost(ref)
		d, set := deployed()
		before := w.checkpoint(ref).UID
		w.applied(runs(set, "web-1").Obj())
		Expect(w.reconciled(ref).OwnerReferences).To(Equal(records.Owners(ref, d.UID)))
		Expect(w.checkpoint(ref).UID).NotTo(Equal(before))
	})

	It("is swept when it has lost its owner, and only then", func() {
		_, set := deployed()
		w.applied(runs(set, "web-1").Obj(), w.pod("bare").Obj())
		w.reconciled(ref)
		w.reconciled(w.alone("bare"))
		optedOut := w.job("opted-out")
		expect.Applied(w.ctx, w.client, &v1alpha1.MemoryCheckpoint{ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: "job-opted-out",
			OwnerReferences: records.Owners(w.jobRef("opted-out"), optedOut.UID),
		}})
		gone := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: w.namespace, Name: "db"}
		ghost(gone)
		ghost(w.jobRef("long-done"))
		rollout := memory.WorkloadRef{
			APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Namespace: w.namespace, Name: "front",
		}
		ghost(rollout)

		deleted, err := sweep() // which finds those of earlier tests, too
		Expect(err).NotTo(HaveOccurred())
		Expect(deleted).To(BeNumerically(">=", 6))
		unrecorded(gone)
		unrecorded(w.jobRef("long-done"))
		unrecorded(rollout)
		w.recommendation(ref)
		w.checkpoint(ref)
		w.recommendation(w.alone("bare"))
		w.checkpoint(w.jobRef("opted-out"))
		Expect(sweep()).To(BeZero())
	})

	It("stays while nobody can tell whether the workload exists", func() {
		gone := memory.WorkloadRef{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: w.namespace, Name: "db"}
		ghost(gone)
		w.faults.reading = func(obj client.Object) error {
			if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
				return errors.New("the API server is down")
			}
			return nil
		}
		Expect(w.reconcile(gone)).NotTo(Succeed())
		w.recommendation(gone)
		w.checkpoint(gone)
		w.faults.reading = nil
		Expect(w.reconcile(gone)).To(Succeed())
		unrecorded(gone)
	})
})
