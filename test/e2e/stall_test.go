// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
)

// readsFromDisk runs a Go program with files on the node's disk. Garbage collection is off, so that only reading the
// files takes time.
func readsFromDisk(name string, args ...string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		annotated(d)
		d.Name = name
		pod := &d.Spec.Template.Spec
		pod.Volumes = []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}
		c := &pod.Containers[0]
		c.Args = append([]string{"-file-dir", "/data"}, args...)
		c.Env = []corev1.EnvVar{{Name: "GOGC", Value: "off"}}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		labels := map[string]string{"app": name}
		d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = labels, labels
	}
}

var _ = Describe("a stall", func() {
	namespace := inNamespace()
	recommended := func(ctx SpecContext, g Gomega, name string) *v1alpha1.MemoryRecommendation {
		var rec v1alpha1.MemoryRecommendation
		record := policy.RecordName(
			memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: *namespace, Name: name},
		)
		g.Expect(k8s.Get(ctx, types.NamespacedName{Namespace: *namespace, Name: record}, &rec)).To(Succeed())
		return &rec
	}
	expectEvent := func(ctx SpecContext, g Gomega, reason, kind string) {
		var events corev1.EventList
		g.Expect(k8s.List(ctx, &events, client.InNamespace(*namespace))).To(Succeed())
		g.Expect(events.Items).To(ContainElement(And(HaveField("InvolvedObject.Kind", kind), HaveField("Reason", reason))))
	}

	// One spec tests both workloads to save time: memfit ignores a process's first two minutes, and detecting the stall
	// takes another.
	It("is reported, ended by a raise in place, and a reader of big files beside it is unchanged", func(ctx SpecContext) {
		spec := sized(v1alpha1.SizingInPlace, v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNative})
		Expect(k8s.Create(ctx, profile(*namespace, spec))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		// Anonymous memory takes 88 % of the limit, and the program reads a mapped file of 20 % in random order. At 92 % the
		// kernel sometimes kills the process.
		Expect(
			k8s.Create(
				ctx,
				workload(
					*namespace, goImage, "128Mi", nil, readsFromDisk("web", "-hold", "110Mi", "-map-file", "26Mi", "-walk-random"),
				),
			),
		).To(Succeed())
		Expect(
			k8s.Create(
				ctx,
				workload(
					*namespace, goImage, "128Mi", nil,
					readsFromDisk("reader", "-hold", "100Mi", "-read-file", "200Mi", "-pause", "2s"),
				),
			),
		).To(Succeed())
		first := runningPod(ctx, *namespace)

		var rec *v1alpha1.MemoryRecommendation
		Eventually(func(g Gomega) {
			rec = recommended(ctx, g, "web")
			g.Expect(rec.Status.Stalls).To(BeEquivalentTo(1), "%d kills; %s", rec.Status.OOMKills, rec.Status.Summary)
		}).WithContext(ctx).WithTimeout(2 * later).Should(Succeed())
		Expect(rec.Status.OOMKills).To(BeZero())
		Expect(rec.Status.RecentStalls[0].Limit.String()).To(Equal("128Mi"))
		Expect(rec.Status.RecentStalls[0].Pod).To(Equal(first.Name))
		for _, kind := range []string{"Pod", "Deployment"} {
			Eventually(func(g Gomega) {
				expectEvent(ctx, g, v1alpha1.ConditionMemoryStalled, kind)
			}).WithContext(ctx).Should(Succeed())
		}

		By("raising the limit of the same process")
		Eventually(func(g Gomega) {
			limit := resource.MustParse(effective(runningPod(ctx, *namespace)))
			g.Expect(limit.Cmp(resource.MustParse("128Mi"))).To(Equal(1))
		}).WithContext(ctx).Should(Succeed())
		now := runningPod(ctx, *namespace)
		Expect(now.UID).To(Equal(first.UID))
		Expect(restarts(now)).To(BeZero())

		By("checking that the stall ends")
		Eventually(func(g Gomega) {
			rec = recommended(ctx, g, "web")
			c := condition(rec.Status.Conditions, v1alpha1.ConditionMemoryStalled)
			g.Expect([]string{string(c.Status), c.Reason}).To(Equal([]string{"False", v1alpha1.ReasonStallEnded}), c.Message)
		}).WithContext(ctx).WithTimeout(2 * later).Should(Succeed())
		Expect(rec.Status.RecentStalls[0].IncreaseIneffective).To(BeFalse())

		Consistently(func(g Gomega) { g.Expect(recommended(ctx, g, "reader").Status.Stalls).To(BeZero()) }).
			WithContext(ctx).WithTimeout(5 * time.Second).Should(Succeed())
	}, SpecTimeout(5*later))
})
