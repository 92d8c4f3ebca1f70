// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/controllers/sweeper"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

// step is the pod of a TaskRun as Tekton labels it: each run has an owner of its own.
func (w *world) step(task string, run int, options ...build.ContainerOption) *corev1.Pod {
	taskRun := fmt.Sprintf("ci-%d-%s", run, task)
	pod := build.Pod(w.namespace, taskRun+"-pod").Annotate(v1alpha1.ProfileAnnotation, "web").On("node-1").Container(
		"step-main", append([]build.ContainerOption{
			build.Limit("64Mi"), build.Request("64Mi"), build.Started(w.clock.Now()),
		}, options...)...,
	).Obj()
	pod.Labels = map[string]string{
		"tekton.dev/pipeline": "build", "tekton.dev/pipelineRun": fmt.Sprintf("ci-%d", run),
		"tekton.dev/pipelineTask": task, "tekton.dev/taskRun": taskRun,
	}
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "tekton.dev/v1", Kind: "TaskRun", Name: taskRun, UID: types.UID(taskRun), Controller: new(true),
	}}
	if s := pod.Status.ContainerStatuses[0].State.Terminated; s != nil {
		pod.Status.Phase = corev1.PodFailed
	}
	return pod
}

// killedForGood says that the kernel killed the container, which is not started again.
func killedForGood(at time.Time) build.ContainerOption {
	return func(_ *corev1.Container, s *corev1.ContainerStatus) {
		s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "OOMKilled", ExitCode: 137, StartedAt: metav1.NewTime(at.Add(-5 * time.Second)),
			FinishedAt: metav1.NewTime(at), ContainerID: "containerd://0",
		}}
	}
}

// cached is a cache of pods.
type cached map[client.ObjectKey]*corev1.Pod

func (c cached) Pod(_ context.Context, key client.ObjectKey) (*corev1.Pod, error) { return c[key], nil }

// knownNamespace reads a namespace once, as an informer does.
type knownNamespace struct {
	client.Reader
	known *metav1.PartialObjectMetadata
}

// Get implements client.Reader.
func (k *knownNamespace) Get(
	ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption,
) error {
	namespace, is := into.(*metav1.PartialObjectMetadata)
	if !is || namespace.Kind != "Namespace" {
		return k.Reader.Get(ctx, key, into, options...)
	}
	if k.known == nil || k.known.Name != key.Name {
		if err := k.Reader.Get(ctx, key, into, options...); err != nil {
			return err
		}
		k.known = namespace.DeepCopy()
	}
	k.known.DeepCopyInto(namespace)
	return nil
}

func (w *world) stepRef(task string) memory.WorkloadRef {
	id, found := identity.Find(w.step(task, 1), memory.WorkloadRef{
		APIVersion: "tekton.dev/v1", Kind: "TaskRun", Namespace: w.namespace, Name: "ci-1-" + task,
	}, nil)
	Expect(found).To(BeTrue())
	return id.Ref(w.namespace)
}

var _ = Describe("Pods without a lasting owner", func() {
	var w *world
	BeforeEach(func() {
		w = newWorld()
		profile := build.Profile(w.namespace, "web", v1alpha1.RuntimeAuto)
		profile.Spec.Sizing.Mode = v1alpha1.SizingOnCreate
		w.profiled(profile)
	})

	It("have one recommendation for all runs of a step, which outlives them", func() {
		first := w.step("unit", 1, killedForGood(w.clock.Now()))
		w.applied(first)
		rec := w.reconciled(w.stepRef("unit"))
		Expect(rec.OwnerReferences).To(BeEmpty())
		Expect(rec.Labels).To(HaveKeyWithValue(v1alpha1.IdentityLabel, "tekton"))
		Expect(rec.Name).To(HavePrefix("tekton-build-unit-"))
		Expect(rec.Status.Identity.Platform).To(Equal("tekton"))
		Expect(rec.Status.Identity.Values).To(Equal([]string{"build", "unit"}))
		Expect(rec.Status.OOMKills).To(Equal(int64(1)))
		Expect(rec.Status.Containers[0].NewPods.Limit.Value()).To(BeNumerically(">=", 100<<20))

		By("a second run, after the first is gone and memfit has restarted")
		w.deleted(first)
		w.reconciled(w.stepRef("unit"))
		w.restart()
		w.applied(w.step("unit", 2))
		rec = w.reconciled(w.stepRef("unit"))
		Expect(rec.Status.OOMKills).To(Equal(int64(1)))
		Expect(rec.Status.Containers[0].NewPods.Limit.Value()).To(BeNumerically(">=", 100<<20))
	})

	It("do not mix the steps of a pipeline", func() {
		w.applied(w.step("unit", 1, killedForGood(w.clock.Now())), w.step("lint", 1))
		Expect(w.reconciled(w.stepRef("unit")).Status.OOMKills).To(Equal(int64(1)))
		Expect(w.reconciled(w.stepRef("lint")).Status.OOMKills).To(BeZero())
	})

	It("are identified by the labels of the profile", func() {
		profile := expect.Exists(w.ctx, w.client, w.namespace, "web", &v1alpha1.MemoryProfile{})
		profile.Spec.Identity = &v1alpha1.IdentitySpec{Labels: []v1alpha1.LabelKey{"tekton.dev/pipeline"}}
		Expect(w.client.Update(w.ctx, profile)).To(Succeed())
		Expect(w.reconciler.Resolver.Rebuild(w.ctx)).To(Succeed())
		w.applied(w.step("unit", 1), w.step("lint", 1))
		resolved, err := w.reconciler.Resolver.Resolve(w.ctx, w.step("unit", 1))
		Expect(err).NotTo(HaveOccurred())
		Expect(w.reconciled(resolved.Ref).Status.Identity.Values).To(Equal([]string{"build"}))
	})

	It("take few writes however many there are", func() {
		ref := w.stepRef("unit")
		writes, all := 0, cached{}
		w.reconciler.Sources.Pods = all
		resolver := policy.New(&knownNamespace{Reader: w.client}, w.client)
		Expect(resolver.Rebuild(w.ctx)).To(Succeed())
		w.reconciler.Resolver, w.feed.Resolver = resolver, resolver
		w.faults.before = func(client.Object) error { writes++; return nil }
		for run := range 1000 {
			pod := w.step("unit", run)
			pod.UID, pod.CreationTimestamp = types.UID(pod.Name), metav1.NewTime(w.clock.Now())
			all[client.ObjectKeyFromObject(pod)] = pod
			w.feed.seen(w.ctx, pod)
			ended := w.step("unit", run, killedForGood(w.clock.Now()))
			ended.UID, ended.CreationTimestamp = pod.UID, pod.CreationTimestamp
			all[client.ObjectKeyFromObject(pod)] = ended
			w.feed.seen(w.ctx, ended)
			if run%50 == 0 { // 20 steps in a minute
				Expect(w.reconcile(ref)).To(Succeed())
				w.passes(3 * time.Second)
			}
		}
		Expect(w.reconcile(ref)).To(Succeed())
		Expect(writes).To(
			And(BeNumerically(">", 0), BeNumerically("<=", 26)), "writes for 1,000 pods of one identity within a minute",
		)
		GinkgoWriter.Printf("%d writes\n", writes)
	})

	It("are bounded in number for each profile", func() {
		w.reconciler.Settings.MaxIdentities = 2
		for _, task := range []string{"a", "b", "c"} {
			w.applied(w.step(task, 1))
			Expect(w.reconcile(w.stepRef(task))).To(Succeed())
		}
		var recs v1alpha1.MemoryRecommendationList
		Expect(w.client.List(w.ctx, &recs, client.InNamespace(w.namespace))).To(Succeed())
		Expect(recs.Items).To(HaveLen(2))

		By("one of them expiring")
		Expect(w.client.Delete(w.ctx, w.recommendation(w.stepRef("a")))).To(Succeed())
		w.passes(2 * countAgain)
		w.seen(w.step("c", 1))
		Expect(w.reconciled(w.stepRef("c")).Status.Identity.Values).To(Equal([]string{"build", "c"}))
	})

	It("are forgotten 35 days after the last of them", func() {
		pod := w.step("unit", 1)
		w.applied(pod)
		w.reconciled(w.stepRef("unit"))
		w.deleted(pod)
		sweep := sweeper.Sweeper{Client: w.client, APIReader: w.client, Clock: w.clock}.Sweep
		w.passes(34 * 24 * time.Hour)
		_, err := sweep(w.ctx)
		Expect(err).NotTo(HaveOccurred())
		w.checkpoint(w.stepRef("unit"))
		w.passes(2 * 24 * time.Hour)
		_, err = sweep(w.ctx)
		Expect(err).NotTo(HaveOccurred())
		key := client.ObjectKey{Namespace: w.namespace, Name: w.stepRef("unit").Name}
		Expect(client.IgnoreNotFound(w.client.Get(w.ctx, key, &v1alpha1.MemoryRecommendation{}))).To(Succeed())
		Expect(w.client.Get(w.ctx, key, &v1alpha1.MemoryRecommendation{})).NotTo(Succeed())
	})
})
