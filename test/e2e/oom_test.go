// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

// diesTimes is a container that is OOM-killed so many times and then lives: it counts its starts in a volume.
func diesTimes(n int) func(*appsv1.Deployment) {
	script := fmt.Sprintf(`const fs = require("fs"), f = "/state/starts";
const starts = fs.existsSync(f) ? Number(fs.readFileSync(f)) + 1 : 1;
fs.writeFileSync(f, String(starts));
const held = [];
setInterval(() => { if (starts <= %d) held.push(Buffer.alloc(16 << 20, 1)); }, 100);`, n)
	return func(d *appsv1.Deployment) {
		annotated(d)
		pod := &d.Spec.Template.Spec
		pod.Volumes = []corev1.Volume{{Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		pod.Containers[0].Command = []string{"node", "-e", script}
		pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "state", MountPath: "/state"}}
	}
}

func restarts(pod *corev1.Pod) int32 {
	if len(pod.Status.ContainerStatuses) == 0 {
		return 0
	}
	return pod.Status.ContainerStatuses[0].RestartCount
}

var _ = Describe("an OOM kill", func() {
	namespace := inNamespace()
	node := func(mode v1alpha1.SizingMode) v1alpha1.MemoryProfileSpec {
		return v1alpha1.MemoryProfileSpec{
			Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS, Version: "20"}, Sizing: v1alpha1.SizingSpec{Mode: mode},
		}
	}

	It("is counted, told on pod and workload, answered with a number, and new pods get it", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, profile(*namespace, "p", node(v1alpha1.SizingOnCreate)))).To(Succeed())
		waitUntilKnown(ctx, *namespace, "p")
		Expect(k8s.Create(ctx, workload(*namespace, nodeImage, "96Mi", nil, diesTimes(1)))).To(Succeed())
		first := runningPod(ctx, *namespace)

		var rec *v1alpha1.MemoryRecommendation
		Eventually(func(g Gomega) {
			var err error
			rec, err = recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.OOMKills).To(BeEquivalentTo(1))
			g.Expect(rec.Status.RecentOOMKills).To(HaveLen(1))
			g.Expect(rec.Status.Containers).To(HaveLen(1))
			g.Expect(rec.Status.Containers[0].Recommended).NotTo(BeNil())
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		kill := rec.Status.RecentOOMKills[0]
		Expect(kill.Pod).To(Equal(first.Name))
		Expect(kill.Limit.String()).To(Equal("96Mi"), "the limit it died at")
		recommended := rec.Status.Containers[0].Recommended.Limit
		Expect(recommended.Cmp(resource.MustParse("96Mi"))).To(Equal(1), "a kill is answered with more than it died at")
		Expect(condition(rec.Status.Conditions, v1alpha1.ConditionOOMObserved).Status).To(BeEquivalentTo("True"))

		for _, about := range []string{"Pod", "Deployment"} {
			Eventually(func(g Gomega) {
				var events corev1.EventList
				g.Expect(k8s.List(ctx, &events, client.InNamespace(*namespace))).To(Succeed())
				g.Expect(events.Items).To(ContainElement(And(
					HaveField("InvolvedObject.Kind", about), HaveField("Reason", ContainSubstring("OOM")), HaveField("Message", ContainSubstring("96Mi")))))
			}).WithContext(ctx).Should(Succeed(), "an event on the %s", about)
		}

		next := replacePod(ctx, runningPod(ctx, *namespace))
		Expect(limitOf(next)).To(Equal(recommended.String()))
	}, SpecTimeout(later*2))

	It("is never lost and never counted twice while memfit is killed again and again", func(ctx SpecContext) {
		const kills = 6
		Expect(k8s.Create(ctx, profile(*namespace, "p", node(v1alpha1.SizingRecommend)))).To(Succeed())
		waitUntilKnown(ctx, *namespace, "p")
		Expect(k8s.Create(ctx, workload(*namespace, nodeImage, "96Mi", nil, diesTimes(kills)))).To(Succeed())
		pod := runningPod(ctx, *namespace)
		for seen := int32(0); seen < kills; {
			Eventually(func(g Gomega) {
				g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
				g.Expect(restarts(pod)).To(BeNumerically(">", seen))
			}).WithContext(ctx).WithTimeout(later).Should(Succeed())
			seen = restarts(pod)
			if seen%2 == 1 {
				killManagers(ctx)
			}
		}
		Eventually(managersReady).WithContext(ctx).WithTimeout(later).Should(Equal(2))
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.OOMKills).To(BeEquivalentTo(kills))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		killManagers(ctx)
		Eventually(managersReady).WithContext(ctx).WithTimeout(later).Should(Equal(2))
		Consistently(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.OOMKills).To(BeEquivalentTo(kills))
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
			g.Expect(restarts(pod)).To(BeEquivalentTo(kills), "the workload itself died exactly so often")
		}).WithContext(ctx).WithTimeout(soon / 4).Should(Succeed())
	}, SpecTimeout(later*4))
})
