// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/controllers/snapshots"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

// patience is for informers on a busy machine; nothing is said about how soon.
const patience = time.Minute

var _ = Describe("What agents found", func() {
	It("becomes the runtime of a container that declares none", func() {
		w := newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeAuto))
		pod := w.pod("web-1").Obj()
		w.applied(pod)

		ctx, cancel := context.WithCancel(suiteContext)
		DeferCleanup(cancel)
		options := informers.CacheOptions()
		options.Scheme = scheme
		cached, err := cache.New(config, options)
		Expect(err).NotTo(HaveOccurred())
		go func() {
			defer GinkgoRecover()
			Expect(cached.Start(ctx)).To(Succeed())
		}()
		watcher := &snapshots.Watcher{Cache: cached, Workload: w.reconciler.Inbox.Workload}
		queued := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[memory.WorkloadRef]())
		DeferCleanup(queued.ShutDown)
		w.feed.queue.Store(&queued)
		Expect(watcher.Follow(ctx, w.feed)).To(Succeed())
		w.reconciler.Sources.Snapshots = watcher

		snapshot := func(name string, of types.UID) *v1alpha1.MemorySnapshot {
			return &v1alpha1.MemorySnapshot{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: w.namespace, Name: name,
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: name, UID: of}},
				},
				Status: v1alpha1.MemorySnapshotStatus{
					CgroupVersion: "v2", NodeName: "node-1", Tier: v1alpha1.AgentSee, ObservedTime: metav1.NewTime(start),
					Containers: []v1alpha1.ContainerSnapshot{{
						Container: "app", Inspection: v1alpha1.InspectionDone, Summary: "-",
						Runtime: &v1alpha1.InspectedRuntime{Type: "NodeJS", Version: "20.18.1", Libc: "glibc 2.36"},
						LastKill: &v1alpha1.KillSnapshot{
							Evidence: "CounterRose", Kind: "MainProcess", Time: metav1.NewTime(start), LimitReached: "Yes",
							MinuteBefore: v1alpha1.MinuteBefore{
								Summary: "-",
								Series:  []v1alpha1.UsagePoint{{MillisecondsBefore: 250, Usage: resource.MustParse("250Mi")}},
							},
						},
					}},
				},
			}
		}
		expect.Applied(w.ctx, w.client, snapshot("web-1", pod.UID), snapshot("web-2", "of-an-earlier-pod"))
		Eventually(queued.Len).WithTimeout(patience).Should(Equal(1), "the workload is queued")
		Eventually(func() map[types.UID]*v1alpha1.MemorySnapshot {
			return watcher.Of(w.ctx, []*corev1.Pod{pod})
		}).WithTimeout(patience).Should(HaveLen(1))
		other := pod.DeepCopy()
		other.Name, other.UID = "web-2", "of-a-later-pod"
		Expect(watcher.Of(w.ctx, []*corev1.Pod{other})).To(BeEmpty(), "a pod of a StatefulSet has the name of the one before")
		seen := watcher.Of(w.ctx, []*corev1.Pod{pod})[pod.UID]
		kill := seen.Status.Containers[0].LastKill
		Expect(kill).NotTo(BeNil(), "the ledger takes it over")
		Expect(kill.LimitReached).To(Equal("Yes"))
		Expect(kill.Series).To(BeEmpty(), "the cache keeps what is read")

		found := w.reconciled(w.alone("web-1")).Status.Containers[0]
		Expect(found.FoundRuntime).NotTo(BeNil())
		Expect(found.FoundRuntime.Version).To(Equal("20.18.1"))
		Expect(found.Runtime).To(HavePrefix("Node.js 20.18.1 (found in running replicas"))
		Expect(found.FoundRuntime.Type).To(Equal(v1alpha1.RuntimeNodeJS))
	})
})
