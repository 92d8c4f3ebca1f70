// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

// retainsOnRequest is a web server that retains another 96 MiB on each request for /retain.
const retainsOnRequest = `const held = [];
require("http").createServer((q, r) => { if (q.url === "/retain") held.push(Buffer.alloc(96 << 20, 1)); r.end(String(held.length)); }).listen(8080)`

// replicated selects the profile and sets the number of replicas, before the change.
func replicated(n int32, change func(*appsv1.Deployment)) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		annotated(d)
		d.Spec.Replicas = &n
		if change != nil {
			change(d)
		}
	}
}

// readyPods waits until the workload has n pods, all ready.
func readyPods(ctx context.Context, namespace string, n int) []corev1.Pod {
	GinkgoHelper()
	var live []corev1.Pod
	Eventually(func(g Gomega) {
		live = pods(ctx, namespace)
		g.Expect(live).To(HaveLen(n))
		for i := range live {
			g.Expect(live[i].Status.Conditions).To(
				ContainElement(And(HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))),
			)
		}
	}).WithContext(ctx).WithTimeout(later).Should(Succeed())
	return live
}

// eventsAbout returns the Events of one object with a reason.
func eventsAbout(ctx context.Context, namespace, kind, name, reason string) ([]corev1.Event, error) {
	var list corev1.EventList
	if err := k8s.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var about []corev1.Event
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name && e.Reason == reason {
			about = append(about, e)
		}
	}
	return about, nil
}

func everOOMKilled(pod *corev1.Pod) bool {
	for _, s := range pod.Status.ContainerStatuses {
		for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
			if t != nil && t.Reason == "OOMKilled" {
				return true
			}
		}
	}
	return false
}

var _ = Describe("memory that drifts", func() {
	namespace := inNamespace()

	It("in one Node.js pod among healthy replicas is reported with the pod's name", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, profile(*namespace, v1alpha1.MemoryProfileSpec{
			Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS, Version: "20"},
		}))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(
			k8s.Create(
				ctx, workload(*namespace, nodeImage, "320Mi", []string{"node", "-e", retainsOnRequest}, replicated(5, nil)),
			),
		).To(Succeed())
		all := readyPods(ctx, *namespace, 5)
		outlier := all[2].Name

		By("waiting until all five have samples, and checking that none is an outlier")
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.Containers).To(HaveLen(1))
			g.Expect(rec.Status.Containers[0].Evidence.Samples).To(BeNumerically(">=", 20))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		rec, err := recommendation(ctx, *namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(rec.Status.Containers[0].Shape).To(Or(BeNil(), HaveField("OutlierPods", BeEmpty())))

		By("making one of them retain 96 MiB")
		Eventually(
			func() (string, error) { return getFrom(ctx, &all[2], "/retain") },
		).WithContext(ctx).Should(Equal("1"))
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.Containers).To(HaveLen(1))
			g.Expect(rec.Status.Containers[0].Shape).NotTo(BeNil())
			g.Expect(rec.Status.Containers[0].Shape.OutlierPods).To(Equal([]string{outlier}))
			drift := condition(rec.Status.Conditions, v1alpha1.ConditionDriftDetected)
			g.Expect(drift.Status).To(Equal(metav1.ConditionTrue))
			g.Expect(drift.Message).To(ContainSubstring(outlier))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())

		By("reading the report on the pod")
		Eventually(eventsAbout).WithContext(ctx).WithArguments(
			*namespace, "Pod", outlier, "OutlierReplica",
		).Should(HaveLen(1))
		for i := range all {
			if all[i].Name != outlier {
				Expect(eventsAbout(ctx, *namespace, "Pod", all[i].Name, "OutlierReplica")).To(BeEmpty())
			}
		}
		Expect(pods(ctx, *namespace)).To(HaveLen(5), "the action Report must not delete pods")
	}, SpecTimeout(later*4))

	It("in a leaking Go pod leads to a restart before the kill, with drift.action Restart", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, profile(*namespace, v1alpha1.MemoryProfileSpec{
			Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo},
			// Without GOMEMLIMIT no garbage collection slows the leak down.
			Tuning: v1alpha1.TuningSpec{Mode: v1alpha1.TuningDisabled},
			Sizing: v1alpha1.SizingSpec{Disruption: &v1alpha1.DisruptionSpec{SingleReplica: "Allowed"}},
			Drift:  v1alpha1.DriftSpec{Action: v1alpha1.DriftRestart},
		}))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		// At 160 KiB/s, the kernel kills it at 96 MiB after nine and a half minutes unless memfit restarts it.
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "96Mi", nil, func(d *appsv1.Deployment) {
			annotated(d)
			d.Spec.Template.Spec.Containers[0].Args = []string{"-leak", "160Ki"}
		}))).To(Succeed())
		leaking := runningPod(ctx, *namespace)
		began := time.Now()

		Eventually(func(g Gomega) {
			events, err := eventsAbout(ctx, *namespace, "Pod", leaking.Name, "RestartedForMemory")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(events).To(HaveLen(1))
			GinkgoWriter.Println("after", time.Since(began).Round(time.Second), events[0].Message)
			var pod corev1.Pod
			if err := k8s.Get(ctx, client.ObjectKeyFromObject(leaking), &pod); err == nil {
				g.Expect(everOOMKilled(&pod)).To(BeFalse(), "the container was OOM-killed before the restart")
			} else {
				g.Expect(client.IgnoreNotFound(err)).To(Succeed())
			}
		}).WithContext(ctx).WithTimeout(12 * time.Minute).WithPolling(2 * time.Second).Should(Succeed())
		next := runningPod(ctx, *namespace)
		Expect(next.UID).NotTo(Equal(leaking.UID), "the Deployment did not replace the pod")

		rec, err := recommendation(ctx, *namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(rec.Status.OOMKills).To(BeZero())
		Eventually(eventsAbout).WithContext(ctx).WithArguments(
			*namespace, "Deployment", "web", "RestartedForMemory",
		).Should(HaveLen(1))
	}, SpecTimeout(16*time.Minute))
})
