// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/signals"
	"github.com/memfit/memfit/test/build"
)

// A workload of which there is nothing new but samples is looked at now and then only; everything else is looked at right away.
var _ = Describe("A look", func() {
	var w *world
	var pod *corev1.Pod
	var looked time.Time
	known := func() *state {
		e, found := w.reconciler.states.get(w.alone("web"))
		Expect(found).To(BeTrue())
		return e.state
	}
	BeforeEach(func() {
		w = newWorld()
		w.reconciler.LookEvery = time.Minute
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative))
		pod = w.pod("web").Obj()
		w.applied(pod)
		for i := range memory.Bytes(6) { // what is hardly known is looked at every time
			w.passes(time.Minute)
			w.sampled(pod, (50+5*i)*memory.MiB)
			w.reconciled(w.alone("web"))
			Expect(known().steppedAt).To(Equal(w.clock.Now()))
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
		samples := known().history("app").Samples()
		for range 3 {
			read(100 * memory.MiB)
		}
		Expect(known().steppedAt).To(Equal(looked))
		Expect(known().history("app").Samples()).To(Equal(samples + 3))
		read(100 * memory.MiB)
		Expect(known().steppedAt).To(Equal(w.clock.Now()))
		Expect(known().history("app").Samples()).To(Equal(samples + 4))
	})

	It("does not wait when the pod changes, or somebody asks for it", func() {
		read(100 * memory.MiB)
		w.reconciler.Inbox.Ask(w.alone("web"))
		read(100 * memory.MiB)
		Expect(known().steppedAt).To(Equal(w.clock.Now()))
		build.OOMKilled(w.clock.Now())(&pod.Spec.Containers[0], &pod.Status.ContainerStatuses[0])
		Expect(w.client.Status().Update(w.ctx, pod)).To(Succeed())
		w.seen(pod)
		read(100 * memory.MiB)
		Expect(known().steppedAt).To(Equal(w.clock.Now()))
	})

	It("does not wait when memory comes close to the limit", func() {
		interval = 5 * time.Second
		for rss := 100 * memory.MiB; rss < 170*memory.MiB; rss += 10 * memory.MiB {
			read(rss)
		}
		Expect(known().steppedAt).To(Equal(looked), "well below 256Mi")
		read(200 * memory.MiB)
		Expect(known().steppedAt).To(Equal(w.clock.Now()))
	})
})

// TestJudge: a shape stands while little of what it rests on is new, and no longer than the limit and the kills it was found with.
func TestJudge(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	h := history.New()
	for at := now.Add(-2 * time.Hour); at.Before(now); at = at.Add(time.Minute) {
		h.Add(memory.Sample{Container: memory.ContainerRef{Pod: "web", Container: "app"}, Time: at, RSS: 100 * memory.MiB, HasRSS: true}, 256*memory.MiB)
	}
	before := shapeCache{shape: signals.Shape{Kind: signals.Burst}, until: now.Add(time.Minute), limit: 256 * memory.MiB, kills: 1}
	ask := func(edit func(*containerInput)) shapeCache {
		q := containerInput{history: h, kills: make([]memory.OOMKill, 1), before: before, now: now}
		q.container.current.Limit = 256 * memory.MiB
		edit(&q)
		return q.judge()
	}
	for name, tc := range map[string]struct {
		edit   func(*containerInput)
		stands bool
	}{
		"nothing is new":      {edit: func(*containerInput) {}, stands: true},
		"its time is over":    {edit: func(q *containerInput) { q.now = now.Add(time.Minute) }},
		"another limit":       {edit: func(q *containerInput) { q.container.current.Limit = 512 * memory.MiB }},
		"a kill":              {edit: func(q *containerInput) { q.kills = make([]memory.OOMKill, 2) }},
		"a replica":           {edit: func(q *containerInput) { q.replicas = make([]signals.Replica, 1) }},
		"close to the limit":  {edit: func(q *containerInput) { q.urgent = make([]signals.Instance, 1) }},
		"never looked before": {edit: func(q *containerInput) { q.before = shapeCache{} }},
	} {
		t.Run(name, func(t *testing.T) {
			got := ask(tc.edit)
			if stands := got.shape.Kind == signals.Burst; stands != tc.stands {
				t.Errorf("the shape is %s, found again: %t", got.shape.Kind, !stands)
			}
		})
	}
	if got, want := ask(func(q *containerInput) { q.before = shapeCache{} }).until, now.Add(119*time.Minute/24); !got.Equal(want) {
		t.Errorf("found after two hours, it stands until %s, want %s", got, want)
	}
}
