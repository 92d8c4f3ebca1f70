// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

var _ = Describe("What young containers show", func() {
	var w *world
	BeforeEach(func() {
		w = newWorld()
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative))
	})

	// learning is a process of memfit that has read what was learned.
	learning := func() {
		GinkgoHelper()
		w.restart()
		w.reconciler.Priors = &Priors{
			Client: w.faulty, APIReader: w.faulty, Namespace: w.namespace, Every: time.Minute, Clock: w.clock,
		}
		Expect(w.reconciler.Priors.Sync(w.ctx)).To(Succeed())
	}
	run := func(name, image string, args ...string) *corev1.Pod {
		pod := w.pod(name).Obj()
		pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Args = image, args
		w.applied(pod)
		w.reconciled(w.alone(name))
		return pod
	}
	uses := func(pod *corev1.Pod, hours int, use memory.Bytes) *v1alpha1.MemoryRecommendation {
		for minute := range hours * 60 {
			w.passes(time.Minute)
			w.sampled(pod, use)
			if minute%10 == 9 {
				Expect(w.reconcile(w.alone(pod.Name))).To(Succeed())
			}
		}
		return w.reconciled(w.alone(pod.Name))
	}
	// teach has young containers of an image show what they use. There are three, because what is learned has 64 bits for
	// containers, and one alone may have that of the container that is to learn from it.
	teach := func(image string, args ...string) {
		for _, name := range []string{"first", "second", "third"} {
			pod := run(name, image, args...)
			uses(pod, 2, 40*memory.MiB)
			uses(pod, 1, 200*memory.MiB)
		}
	}
	limitOf := func(rec *v1alpha1.MemoryRecommendation) memory.Bytes {
		GinkgoHelper()
		Expect(rec.Status.Containers[0].Recommended).NotTo(BeNil(), rec.Status.Containers[0].Summary)
		return memory.FromQuantity(*rec.Status.Containers[0].Recommended.Limit)
	}
	kept := func() *v1alpha1.MemoryCheckpoint {
		GinkgoHelper()
		return expect.Exists(w.ctx, w.client, w.namespace, v1alpha1.PriorsName, &v1alpha1.MemoryCheckpoint{})
	}

	It("is known to other workloads of the image, also after a restart of memfit, and to no other image", func() {
		learning()
		teach("example.test/app:1")
		Expect(w.reconciler.Priors.Sync(w.ctx)).To(Succeed())
		Expect(string(kept().Status.Observed)).To(ContainSubstring("example.test/app"))

		learning()
		same := uses(run("same", "example.test/app:2@sha256:"+strings.Repeat("0", 64)), 2, 40*memory.MiB)
		other := uses(run("other", "example.test/application:1"), 2, 40*memory.MiB)
		Expect(limitOf(same)).To(BeNumerically(">", 190*memory.MiB))
		Expect(limitOf(other)).To(BeNumerically("<", 190*memory.MiB))
		Expect(strings.Join(same.Status.Containers[0].Reasons, "\n")).To(
			MatchRegexp("learned from bursts of [1-3] young containers? of example.test/app"),
		)
	})

	It("is known to no other program of the image", func() {
		learning()
		teach("busybox", "sh", "/first.sh")
		same := uses(run("same", "busybox", "sh", "/first.sh"), 2, 40*memory.MiB)
		other := uses(run("other", "busybox", "sh", "/other.sh"), 2, 40*memory.MiB)
		none := uses(run("none", "busybox"), 2, 40*memory.MiB)
		Expect(limitOf(same)).To(BeNumerically(">", 190*memory.MiB))
		Expect(limitOf(other)).To(BeNumerically("<", 190*memory.MiB))
		Expect(limitOf(none)).To(Equal(limitOf(other)))
	})

	It("is not stored while nothing was learned, and not written again while nothing is new", func() {
		learning()
		stored := &v1alpha1.MemoryCheckpoint{}
		key := client.ObjectKey{Namespace: w.namespace, Name: v1alpha1.PriorsName}
		Expect(apierrors.IsNotFound(w.client.Get(w.ctx, key, stored))).To(BeTrue())
		first := run("first", "example.test/app:1")
		uses(first, 2, 40*memory.MiB)
		uses(first, 1, 200*memory.MiB)
		Expect(w.reconciler.Priors.Sync(w.ctx)).To(Succeed())
		version := kept().ResourceVersion
		Expect(w.reconciler.Priors.Sync(w.ctx)).To(Succeed())
		Expect(kept().ResourceVersion).To(Equal(version))
	})

	It("can be applied by users, is added to what was learned, and left out where it cannot be read", func() {
		learning()
		c := &v1alpha1.MemoryCheckpoint{ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: v1alpha1.PriorsName,
			Annotations: map[string]string{
				v1alpha1.PriorsAnnotation: `{"example.test/app": {"hours": 1e9, "containers": 3, "day": 99999}}`,
			},
		}}
		expect.Applied(w.ctx, w.client, c)
		Expect(w.reconciler.Priors.Sync(w.ctx)).To(Succeed())
		Expect(string(kept().Status.Observed)).To(MatchRegexp(`"example.test/app":{"hours":31\d\d\.\d+,"containers":3,`))

		c = kept()
		c.Annotations[v1alpha1.PriorsAnnotation] = "{"
		Expect(w.client.Update(w.ctx, c)).To(Succeed())
		learning()
		rec := uses(run("web", "example.test/app:1"), 2, 40*memory.MiB)
		Expect(limitOf(rec)).To(BeNumerically(">", 200*memory.MiB))
		Expect(limitOf(rec)).To(BeNumerically("<", 512*memory.MiB), "whatever is claimed")
	})

	It("holds no workload up where it cannot be read, but until that was tried", func() {
		w.restart()
		w.reconciler.Priors = &Priors{Client: w.faulty, APIReader: w.faulty, Namespace: w.namespace, Clock: w.clock}
		pod := w.pod("web").Obj()
		w.applied(pod)
		Expect(w.reconcile(w.alone("web"))).To(Succeed())
		Expect(apierrors.IsNotFound(w.client.Get(w.ctx, client.ObjectKey{
			Namespace: w.namespace, Name: policy.RecordName(w.alone("web")),
		}, &v1alpha1.MemoryRecommendation{}))).To(BeTrue(), "nothing is decided yet")
		w.reconciler.Priors.APIReader = refusing{w.faulty}
		w.reconciler.Priors.syncOnce(w.ctx)
		Expect(w.reconciled(w.alone("web")).Status.Containers).To(HaveLen(1))
	})
})

// refusing reads nothing.
type refusing struct{ client.Reader }

func (refusing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return apierrors.NewServiceUnavailable("refused")
}
