// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

// kubelet makes resizes effective as kubelets from 1.34 to 1.37.0 do: one that finds the container down changes the
// container and not the pod's cgroup. tells: it reports what the pod's cgroup has, as from 1.36 on.
type kubelet struct {
	*fleet
	tells  bool
	cgroup map[string]resource.Quantity
}

func newKubelet(f *fleet, limit string) *kubelet {
	k := &kubelet{fleet: f, tells: true, cgroup: map[string]resource.Quantity{}}
	for _, p := range f.pods {
		k.cgroup[p.Name] = resource.MustParse(limit)
	}
	return k
}

// edit changes the status of a pod and lets memfit see it.
func (k *kubelet) edit(i int, change func(*corev1.Pod, *corev1.ContainerStatus)) {
	GinkgoHelper()
	pod := expect.Exists(k.ctx, k.client, k.namespace, k.pods[i].Name, &corev1.Pod{})
	status := &pod.Status.ContainerStatuses[0]
	change(pod, status)
	k.actuate(pod, status)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	if status.State.Running != nil {
		pod.Status.Conditions[0].Status = corev1.ConditionTrue
	}
	Expect(k.client.Status().Update(k.ctx, pod)).To(Succeed())
	k.seen(k.pods[i])
}

func (k *kubelet) actuate(pod *corev1.Pod, status *corev1.ContainerStatus) {
	limit := pod.Spec.Containers[0].Resources.Limits.Memory()
	if had := status.Resources.Limits.Memory(); status.State.Running != nil && limit.Cmp(*had) != 0 {
		k.cgroup[pod.Name] = *limit
	}
	status.Resources = &pod.Spec.Containers[0].Resources
	if k.tells {
		pod.Status.Resources = &corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: k.cgroup[pod.Name]},
		}
	}
}

func (k *kubelet) syncs(i int) { k.edit(i, func(*corev1.Pod, *corev1.ContainerStatus) {}) }

// dies ends the container as the kernel does, after so long a life.
func (k *kubelet) dies(i int, life time.Duration) {
	GinkgoHelper()
	k.edit(i, func(pod *corev1.Pod, status *corev1.ContainerStatus) {
		status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "OOMKilled", ExitCode: 137, StartedAt: metav1.NewTime(k.clock.Now().Add(-life)),
			FinishedAt: metav1.NewTime(k.clock.Now()), ContainerID: "containerd://" + pod.Name + status.ContainerID,
		}}
	})
}

func (k *kubelet) starts(i int) {
	GinkgoHelper()
	k.edit(i, func(_ *corev1.Pod, status *corev1.ContainerStatus) {
		status.LastTerminationState, status.RestartCount = status.State, status.RestartCount+1
		status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(k.clock.Now())}}
		status.ContainerID += "x"
	})
}

// effective is what holds the container.
func (k *kubelet) effective(i int) memory.Bytes {
	spec, cgroup := resource.MustParse(k.limitOf(i)), k.cgroup[k.pods[i].Name]
	if spec.Cmp(cgroup) < 0 {
		return memory.FromQuantity(spec)
	}
	return memory.FromQuantity(cgroup)
}

func (k *kubelet) looks() *v1alpha1.MemoryRecommendation {
	GinkgoHelper()
	Expect(k.reconcile(k.ref)).To(Succeed())
	for i := range k.pods {
		k.syncs(i)
	}
	k.passes(time.Second)
	return k.reconciled(k.ref)
}

func conditionOf(rec *v1alpha1.MemoryRecommendation, kind string) metav1.Condition {
	for _, c := range rec.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// fleetOf makes ready pods with a limit of their own.
func fleetOf(w *world, n int, limit string) *fleet {
	f := newFleet(w, 0)
	deployment := build.Deployment(w.namespace, "web")
	set := build.ReplicaSet(expect.Exists(w.ctx, w.client, w.namespace, deployment.GetName(), deployment), "5d4f8c7b9")
	set = expect.Exists(w.ctx, w.client, w.namespace, set.GetName(), set)
	for i := range n {
		f.addWith(set, []string{"web-0", "web-1", "web-2", "web-3"}[i], build.Limit(limit), build.Request(limit))
	}
	return f
}

var _ = Describe("A limit that is not effective", func() {
	var w *world
	BeforeEach(func() {
		w = newWorld()
		onNode(w)
	})
	profiled := func(edits ...func(*v1alpha1.SizingSpec)) {
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, inPlace(edits...)))
	}

	// crashLoop dies at whatever holds it, until that is 305 MiB.
	crashLoop := func(k *kubelet, life time.Duration, rounds int) (
		highest memory.Bytes, rec *v1alpha1.MemoryRecommendation,
	) {
		GinkgoHelper()
		for range rounds {
			if k.effective(0) < 305*memory.MiB {
				k.dies(0, life)
				k.passes(2 * time.Second)
				k.looks()
				k.passes(10 * time.Second)
				k.starts(0)
			}
			k.looks()
			k.passes(10 * time.Second)
			rec = k.looks()
			highest = max(highest, memory.FromQuantity(resource.MustParse(k.limitOf(0))))
		}
		return highest, rec
	}

	for name, tells := range map[string]bool{
		"of a kubelet that reports the pod's cgroup": true, "of one that does not": false,
	} {
		It("never makes a crash loop a runaway: "+name, func() {
			profiled()
			k := newKubelet(fleetOf(w, 1, "32Mi"), "32Mi")
			k.tells = tells
			Expect(k.reconcile(k.ref)).To(Succeed())
			highest, rec := crashLoop(k, 20*time.Second, 20)
			Expect(highest).To(BeNumerically("<=", 3*305*memory.MiB), highest.String())
			Expect(k.effective(0)).To(BeNumerically(">=", 305*memory.MiB), "%s: %v", k.effective(0), rec.Status.Conditions)
			Expect(rec.Status.Conditions).To(
				expect.HaveCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, "UpToDate", Not(BeEmpty())),
			)
		})
	}

	It("of a container that lives too short to be resized is said, with what to do, and not asked for hot", func() {
		profiled()
		k := newKubelet(fleetOf(w, 1, "32Mi"), "32Mi")
		Expect(k.reconcile(k.ref)).To(Succeed())
		resize, asked := w.reconciler.Executor.Resize, 0
		w.reconciler.Executor.Resize = func(ctx context.Context, pod *corev1.Pod, sizes map[string]memory.Size) error {
			asked++
			return resize(ctx, pod, sizes)
		}
		var rec *v1alpha1.MemoryRecommendation
		highest := memory.Bytes(0)
		for range 20 {
			k.edit(0, func(_ *corev1.Pod, status *corev1.ContainerStatus) { status.RestartCount++ })
			k.dies(0, 0)
			rec = k.looks()
			k.passes(30 * time.Second)
			highest = max(highest, memory.FromQuantity(resource.MustParse(k.limitOf(0))))
		}
		Expect(highest).To(BeNumerically("<=", 3*305*memory.MiB), highest.String())
		Expect(rec.Status.Conditions).To(expect.HaveCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse,
			"NotEffective",
			And(ContainSubstring("but 32Mi is effective"), ContainSubstring("kubectl -n "+w.namespace+" delete pod web-0"))))
		Expect(asked).To(BeNumerically("<=", 4), "once, and three quick tries")
	})

	It("is got by replacing the pod, where that is allowed", func() {
		profiled(orEvict)
		k := newKubelet(fleetOf(w, 1, "32Mi"), "32Mi")
		Expect(k.reconcile(k.ref)).To(Succeed())
		for range 20 {
			k.edit(0, func(_ *corev1.Pod, status *corev1.ContainerStatus) { status.RestartCount++ })
			k.dies(0, 0)
			k.looks()
			k.passes(30 * time.Second)
			if len(k.left()) == 0 {
				break
			}
		}
		Expect(k.left()).To(BeEmpty(), "evicted, so that the next pod has it from its creation")
		Expect(w.recorder.about("EvictedForResize")).NotTo(BeEmpty())
	})

	It("does not end a raise that others still wait for: three replicas that all die, of which one was raised first",
		func() {
			profiled()
			k := newKubelet(fleetOf(w, 3, "64Mi"), "64Mi")
			Expect(k.reconcile(k.ref)).To(Succeed())
			for range 6 {
				for i := range k.pods {
					if k.effective(i) < 80*memory.MiB {
						k.dies(i, 20*time.Second)
						k.looks()
						k.passes(10 * time.Second)
						k.starts(i)
					}
					k.looks()
					k.passes(20 * time.Second)
				}
			}
			rec := k.looks()
			for i := range k.pods {
				Expect(k.effective(i)).To(BeNumerically(">=", 80*memory.MiB), "pod %d: %v", i, rec.Status.Conditions)
			}
			// The API server dates the pods days after this clock: those of a later second count as created with less.
			applied := conditionOf(rec, v1alpha1.ConditionApplied)
			Expect(applied.Status).To(Equal(metav1.ConditionTrue), "%v", rec.Status.Conditions)
		})
})

var _ = Describe("Two leaders that overlap a resize", func() {
	It("do not undo each other: the one that was held up comes too late", func() {
		w := newWorld()
		onNode(w)
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, inPlace()))
		k := newKubelet(fleetOf(w, 1, "64Mi"), "64Mi")
		Expect(k.reconcile(k.ref)).To(Succeed())
		k.dies(0, 20*time.Second)
		k.passes(10 * time.Second)
		k.starts(0)

		old, resize := w.memfit, w.reconciler.Executor.Resize
		var late error
		old.reconciler.Executor.Resize = func(ctx context.Context, pod *corev1.Pod, sizes map[string]memory.Size) error {
			w.restart() // its lease runs out here, and another memfit goes on: it raises, and raises again
			w.profiled()
			w.seen(k.pods[0])
			for range 2 {
				k.looks()
				k.passes(20 * time.Second)
				k.dies(0, 20*time.Second)
				k.looks()
				k.passes(10 * time.Second)
				k.starts(0)
			}
			k.looks()
			late = resize(ctx, pod, sizes)
			return late
		}
		_, err := old.reconciler.Reconcile(w.ctx, k.ref)
		Expect(err).NotTo(HaveOccurred())
		Expect(late).To(MatchError(ErrPodChanged))
		last := memory.FromQuantity(resource.MustParse(k.limitOf(0)))
		Expect(last).To(BeNumerically(">", 256*memory.MiB), "what the second leader gave it in the end")
	})
})

var _ = Describe("Two reasons to evict", func() {
	It("share one budget in one pass", func() {
		w := newWorld()
		onNode(w)
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative))
		w.reconciler.Executor.Resize = func(context.Context, *corev1.Pod, map[string]memory.Size) error {
			return apierrors.NewBadRequest("Pod QOS Class may not change as a result of resizing")
		}
		f := newFleet(w, 4)
		f.leaks() // the first is in danger now, and only reported
		least := resource.MustParse("400Mi")
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, restarting,
			inPlace(orEvict, func(s *v1alpha1.SizingSpec) {
				s.Limit = &v1alpha1.Bounds{Min: v1alpha1.NewMemoryQuantity(least)} // and all of them are to have more
			})))
		for range 4 {
			f.passes(15 * time.Second)
			for i, p := range f.pods {
				f.sampledSince(p, []memory.Bytes{238, 40, 40, 40}[i]*memory.MiB, f.born)
			}
			Expect(f.reconcile(f.ref)).To(Succeed())
			Expect(len(f.left())).To(BeNumerically(">=", 3), "maxUnavailable is 1")
		}
		Expect(f.left()).To(HaveLen(3))
	})
})

var _ = Describe("A stale resize", func() {
	It("does not override what somebody else has written since", func() {
		w := newWorld()
		onNode(w)
		expect.Applied(w.ctx, w.client, w.pod("web").Obj())
		stale := expect.Exists(w.ctx, w.client, w.namespace, "web", &corev1.Pod{})
		resize := Resizer(clientset.CoreV1().RESTClient())
		Expect(
			resize(w.ctx, stale, map[string]memory.Size{"app": {Limit: 600 * memory.MiB}}),
		).To(Succeed(), "another leader")
		Expect(resize(w.ctx, stale, map[string]memory.Size{"app": {Limit: 512 * memory.MiB}})).To(MatchError(ErrPodChanged))
		now := expect.Exists(w.ctx, w.client, w.namespace, "web", &corev1.Pod{})
		Expect(now.Spec.Containers[0].Resources.Limits.Memory().String()).To(Equal("600Mi"))

		By("a status that changes all the time is no reason to refuse")
		now.Status.Message = "a new status"
		Expect(w.client.Status().Update(w.ctx, now.DeepCopy())).To(Succeed())
		Expect(resize(w.ctx, now, map[string]memory.Size{"app": {Limit: 700 * memory.MiB}})).To(Succeed())

		By("what is wrong with the size itself is still the API server's answer")
		now = expect.Exists(w.ctx, w.client, w.namespace, "web", &corev1.Pod{})
		err := resize(w.ctx, now, map[string]memory.Size{"app": {Limit: memory.MiB, Request: memory.GiB}})
		Expect(apierrors.IsInvalid(err)).To(BeTrue())
		Expect(err).NotTo(MatchError(ErrPodChanged))
	})
})
