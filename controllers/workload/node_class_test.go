// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/controllers/sweeper"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

const sizeLabel = "example.com/size"

var _ = Describe("Pods of a DaemonSet on nodes of two classes", func() {
	var w *world
	var daemons *appsv1.DaemonSet

	// class is the DaemonSet on nodes of a class.
	class := func(name string) memory.WorkloadRef {
		return memory.WorkloadRef{
			APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: w.namespace, Name: "log", NodeClass: name,
		}
	}
	// on is a pod of the DaemonSet on a node.
	on := func(node string, options ...build.ContainerOption) *corev1.Pod {
		return build.Pod(w.namespace, "log-"+node).OwnedBy(daemons, "apps/v1", "DaemonSet").
			Annotate(v1alpha1.ProfileAnnotation, "web").On(w.namespace+"-"+node).Container("app", append(
			[]build.ContainerOption{build.Limit("64Mi"), build.Request("64Mi"), build.Started(start.Add(-time.Hour))},
			options...,
		)...).Obj()
	}
	recommendations := func() (names []string) {
		var recs v1alpha1.MemoryRecommendationList
		Expect(w.client.List(w.ctx, &recs, client.InNamespace(w.namespace))).To(Succeed())
		for i := range recs.Items {
			if is := recs.Items[i].Status.Identity; is != nil {
				names = append(names, identity.Title(is.Platform, is.Values))
			} else {
				names = append(names, recs.Items[i].Name)
			}
		}
		return names
	}

	BeforeEach(func() {
		w = newWorld()
		daemons = build.DaemonSet(w.namespace, "log")
		expect.Applied(w.ctx, w.client, daemons)
		for name, size := range map[string]string{"n1": "small", "n2": "large", "n3": "small", "n4": ""} {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + name}}
			if size != "" {
				node.Labels = map[string]string{sizeLabel: size}
			}
			expect.Applied(w.ctx, w.client, node)
		}
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingOnCreate),
			func(s *v1alpha1.MemoryProfileSpec) { s.Identity = &v1alpha1.IdentitySpec{NodeClass: sizeLabel} }))
	})

	It("are raised by class, and the records of a class are those of the DaemonSet's owner", func() {
		w.applied(on("n1", build.OOMKilled(w.clock.Now())), on("n2"), on("n3"), on("n4"))
		small := w.reconciled(class("small"))
		Expect(small.Status.OOMKills).To(BeEquivalentTo(1))
		Expect(small.Status.Containers[0].NewPods.Limit.Value()).To(BeNumerically(">=", 100<<20))
		Expect(small.Status.Identity.Platform).To(Equal(identity.ByNode))
		Expect(small.Status.Identity.Values).To(Equal([]string{"log", "small"}))
		Expect(small.Status.Identity.Labels).To(Equal([]string{sizeLabel}))
		Expect(small.Status.Workload).To(Equal(v1alpha1.WorkloadReference{
			APIVersion: "apps/v1", Kind: "DaemonSet", Name: "log",
		}))
		Expect(small.Labels).To(HaveKeyWithValue(v1alpha1.IdentityLabel, identity.ByNode))
		Expect(small.OwnerReferences).To(HaveLen(1))
		Expect(small.OwnerReferences[0].UID).To(Equal(daemons.UID))
		Expect(workloadOf(small)).To(Equal(class("small")))

		large := w.reconciled(class("large"))
		Expect(large.Status.OOMKills).To(BeZero())
		if size := large.Status.Containers[0].NewPods; size != nil {
			Expect(size.Limit.String()).To(Equal("64Mi"))
		}
		Expect(w.reconciled(class("")).Status.OOMKills).To(BeZero())
		Expect(w.reconciled(class("")).Status.Identity).To(BeNil(), "node n4 has no such label")

		By("restarting memfit: the class has its history and its kill")
		w.restart()
		w.seen(on("n1"), on("n2"), on("n3"))
		Expect(w.reconciled(class("small")).Status.OOMKills).To(BeEquivalentTo(1))
		Expect(w.reconciled(class("large")).Status.OOMKills).To(BeZero())
	})

	It("move when the profile begins to keep them apart, and the record of all nodes goes", func() {
		profile := expect.Exists(w.ctx, w.client, w.namespace, "web", &v1alpha1.MemoryProfile{})
		profile.Spec.Identity = nil
		Expect(w.client.Update(w.ctx, profile)).To(Succeed())
		Expect(w.reconciler.Resolver.Rebuild(w.ctx)).To(Succeed())
		w.applied(on("n1"), on("n2"))
		Expect(w.reconciled(class("")).Status.Identity).To(BeNil())
		Expect(recommendations()).To(ConsistOf("daemonset-log"))

		profile.Spec.Identity = &v1alpha1.IdentitySpec{NodeClass: sizeLabel}
		Expect(w.client.Update(w.ctx, profile)).To(Succeed())
		Expect(w.reconciler.Resolver.Rebuild(w.ctx)).To(Succeed())
		Expect(w.reconcile(class(""))).To(Succeed())
		Expect(w.reconcile(class("small"))).To(Succeed())
		Expect(w.reconcile(class("large"))).To(Succeed())
		Expect(recommendations()).To(ConsistOf("daemonset/log [small]", "daemonset/log [large]"))
	})

	It("are known by their class before they are scheduled, and after their node is gone", func() {
		pod := on("n2")
		pod.Spec.Affinity, pod.Spec.NodeName = identity.PinnedTo(pod.Spec.NodeName), ""
		pod.Status.Phase = corev1.PodPending
		w.applied(pod)
		Expect(w.reconciler.Inbox.Workloads()).To(ConsistOf(class("large")))

		w.deleted(pod)
		w.applied(on("n2"))
		w.reconciled(class("large"))
		expect.Deleted(w.ctx, w.client, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-n2"}})
		w.applied(on("n2", build.OOMKilled(w.clock.Now())))
		Expect(w.reconciled(class("large")).Status.OOMKills).To(BeEquivalentTo(1))
		Expect(recommendations()).To(ConsistOf("daemonset/log [large]"))
	})

	It("are bounded in number of classes, and their records end with the last pod", func() {
		w.reconciler.Settings.MaxIdentities = 1
		w.applied(on("n1"), on("n2"))
		Expect(w.reconcile(class("small"))).To(Succeed())
		Expect(w.reconcile(class("large"))).To(Succeed())
		Expect(recommendations()).To(ConsistOf("daemonset/log [small]"))

		w.deleted(on("n1"))
		Expect(w.reconcile(class("small"))).To(Succeed())
		w.passes(identity.TimeToLive + 48*time.Hour)
		deleted, err := sweeper.Sweeper{Client: w.client, APIReader: w.client, Clock: w.clock}.Sweep(w.ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(deleted).To(BeNumerically(">=", 1))
		Expect(recommendations()).To(BeEmpty())
	})

	It("are queued with their DaemonSet, of which only their nodes count", func() {
		daemons.Status.DesiredNumberScheduled = 5
		Expect(w.client.Status().Update(w.ctx, daemons)).To(Succeed())
		w.applied(on("n1"), on("n2"), on("n3"))
		for _, name := range []string{"small", "large"} {
			w.reconciled(class(name))
		}
		Expect(w.reconciler.Inbox.NodeClasses(class(""))).To(ConsistOf(class("small"), class("large")))
		Expect(w.reconciler.Inbox.NodeClasses(class("small"))).To(BeEmpty())
		Expect(w.reconciler.podCount(w.ctx, class("small"))).To(Equal(4), "5 in all, of which one runs on a large node")
		Expect(w.reconciler.podCount(w.ctx, class("large"))).To(Equal(3), "5 in all, of which two run on small nodes")
	})

	It("of a Deployment have none", func() {
		deployment := build.Deployment(w.namespace, "web", v1alpha1.ProfileAnnotation, "web")
		expect.Applied(w.ctx, w.client, deployment)
		set := build.ReplicaSet(deployment, "5d4f8c7b9")
		expect.Applied(w.ctx, w.client, set)
		pod := build.Pod(w.namespace, "web-1").OwnedBy(set, "apps/v1", "ReplicaSet").On(w.namespace+"-n1").Container(
			"app", build.Limit("64Mi"), build.Started(start),
		).Obj()
		pod.UID = types.UID("web-1")
		w.applied(pod)
		Expect(w.reconciler.Inbox.Workloads()).To(ConsistOf(memory.WorkloadRef{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: w.namespace, Name: "web",
		}))
	})
})
