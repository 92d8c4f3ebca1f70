// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workload"
	"github.com/memfit/memfit/test/build"
)

// A workload of which there is nothing new but samples is looked at now and then only; everything else is looked at
// right away.
var _ = Describe("A look", func() {
	var w *world
	var pod *corev1.Pod
	var looked time.Time
	known := func() *workload.State {
		e, found := w.reconciler.states.get(w.alone("web"))
		Expect(found).To(BeTrue())
		return e.state
	}
	BeforeEach(func() {
		w = newWorld()
		w.reconciler.Settings.StepInterval = time.Minute
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative))
		pod = w.pod("web").Obj()
		w.applied(pod)
		for i := range memory.Bytes(6) { // what is hardly known is looked at every time
			w.passes(time.Minute)
			w.sampled(pod, (50+5*i)*memory.MiB)
			w.reconciled(w.alone("web"))
			Expect(known().SteppedAt()).To(Equal(w.clock.Now()))
		}
		looked = w.clock.Now()
	})
	interval := 15 * time.Second
	read := func(rss memory.Bytes) {
		GinkgoHelper()
		w.passes(interval)
		w.sampled(pod, rss)
		Expect(w.reconcile(w.alone("web"))).To(Succeed())
	}

	It("waits while there is nothing but samples, which are taken in", func() {
		samples := known().History("app").Samples()
		for range 3 {
			read(100 * memory.MiB)
		}
		Expect(known().SteppedAt()).To(Equal(looked))
		Expect(known().History("app").Samples()).To(Equal(samples + 3))
		read(100 * memory.MiB)
		Expect(known().SteppedAt()).To(Equal(w.clock.Now()))
		Expect(known().History("app").Samples()).To(Equal(samples + 4))
	})

	It("waits when counters of kills stand where they were, and not when one rises", func() {
		count := func(n int64) {
			GinkgoHelper()
			w.reconciler.Inbox.Counted("node-1", []memory.KillCounter{{
				Container: memory.ContainerRef{Namespace: w.namespace, Pod: pod.Name, UID: pod.UID, Container: "app"},
				Count:     n, Time: w.clock.Now(),
			}})
		}
		count(0)
		read(100 * memory.MiB)
		Expect(known().SteppedAt()).To(Equal(looked))
		w.passes(interval)
		count(0)
		Expect(w.reconcile(w.alone("web"))).To(Succeed())
		Expect(known().SteppedAt()).To(Equal(looked), "counters alone")
		count(1)
		read(100 * memory.MiB)
		Expect(known().SteppedAt()).To(Equal(w.clock.Now()))
	})

	It("counts workloads once, whose number says how long each waits", func() {
		var s states
		for _, name := range []string{"web", "api", "web"} {
			s.put(memory.WorkloadRef{Name: name}, &entry{})
		}
		Expect(s.len()).To(Equal(2))
		s.drop(memory.WorkloadRef{Name: "web"})
		s.drop(memory.WorkloadRef{Name: "web"})
		Expect(s.len()).To(Equal(1))
	})

	It("waits longer where there are more workloads than can be looked at in a minute", func() {
		for i := range 6000 {
			w.reconciler.states.put(memory.WorkloadRef{Name: strconv.Itoa(i)}, &entry{})
		}
		w.passes(time.Hour)
		w.sampled(pod, 100*memory.MiB)
		w.reconciled(w.alone("web"))
		looked = w.clock.Now()
		for range 5 {
			read(100 * memory.MiB)
		}
		Expect(known().SteppedAt()).To(Equal(looked), "after 75 s, where 6001 workloads take two minutes")
	})

	It("does not wait when the pod changes, or somebody asks for it", func() {
		read(100 * memory.MiB)
		w.reconciler.Inbox.Request(w.alone("web"))
		read(100 * memory.MiB)
		Expect(known().SteppedAt()).To(Equal(w.clock.Now()))
		build.OOMKilled(w.clock.Now())(&pod.Spec.Containers[0], &pod.Status.ContainerStatuses[0])
		Expect(w.client.Status().Update(w.ctx, pod)).To(Succeed())
		w.seen(pod)
		read(100 * memory.MiB)
		Expect(known().SteppedAt()).To(Equal(w.clock.Now()))
	})

	It("does not wait when memory comes close to the limit", func() {
		interval = 5 * time.Second
		for rss := 100 * memory.MiB; rss < 170*memory.MiB; rss += 10 * memory.MiB {
			read(rss)
		}
		Expect(known().SteppedAt()).To(Equal(looked), "well below 256Mi")
		read(200 * memory.MiB)
		Expect(known().SteppedAt()).To(Equal(w.clock.Now()))
	})
})
