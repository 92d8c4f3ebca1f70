// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/expect"
)

var _ = Describe("Events of one pod within minutes", func() {
	It("name each container that was killed, and each size change with its numbers", func() {
		w := newWorld()
		onNode(w)
		w.profiled(build.Profile(w.namespace, "web", v1alpha1.RuntimeNative, inPlace()))
		writer := NewEventWriter(w.client, "test", clock.RealClock{})
		ctx, stop := context.WithCancel(w.ctx)
		DeferCleanup(stop)
		go func() { _ = writer.Start(ctx) }()
		w.reconciler.Recorder = writer
		w.applied(w.pod("web").Container(
			"second", build.Limit("256Mi"), build.Request("128Mi"), build.Started(start.Add(-time.Hour)),
		).Obj())
		Expect(w.reconcile(w.alone("web"))).To(Succeed())

		update := func(change func(*corev1.Pod)) {
			pod := expect.Exists(w.ctx, w.client, w.namespace, "web", &corev1.Pod{})
			change(pod)
			Expect(w.client.Status().Update(w.ctx, pod)).To(Succeed())
			w.seen(pod)
		}
		killed := func(container int) { // and resized by the kubelet as memfit asks
			update(func(pod *corev1.Pod) {
				status := &pod.Status.ContainerStatuses[container]
				status.RestartCount++
				status.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					Reason: "OOMKilled", ExitCode: 137, StartedAt: metav1.NewTime(w.clock.Now().Add(-time.Minute)),
					FinishedAt: metav1.NewTime(w.clock.Now()), ContainerID: "containerd://" + pod.Name + status.ContainerID,
				}}
				status.State = corev1.ContainerState{
					Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.clock.Now())},
				}
				status.ContainerID += "x"
			})
			for range 7 {
				Expect(w.reconcile(w.alone("web"))).To(Succeed())
				update(func(pod *corev1.Pod) {
					for i := range pod.Status.ContainerStatuses {
						pod.Status.ContainerStatuses[i].Resources = &pod.Spec.Containers[i].Resources
					}
				})
				w.passes(2 * time.Second)
			}
		}
		killed(0)
		killed(1) // 14 s later
		w.passes(time.Minute)
		killed(0) // at its new limit

		notes := func(reason, path string) (all []string) {
			var events eventsv1.EventList
			Expect(w.client.List(w.ctx, &events, client.InNamespace(w.namespace))).To(Succeed())
			for _, e := range events.Items {
				if e.Reason == reason && e.Regarding.FieldPath == path && e.Regarding.UID != "" {
					all = append(all, e.Note)
				}
			}
			return all
		}
		Eventually(notes).WithArguments("OOMKilled", "spec.containers{app}").WithTimeout(5 * time.Second).Should(ConsistOf(
			HavePrefix("Container app was OOM-killed at its limit of 256Mi"),
			And(HavePrefix("Container app was OOM-killed"), ContainSubstring(" at its limit of 512Mi")),
		))
		Eventually(notes).WithArguments("OOMKilled", "spec.containers{second}").WithTimeout(5 * time.Second).Should(
			ConsistOf(HavePrefix("Container second was OOM-killed at its limit of 256Mi")),
		)
		Eventually(notes).WithArguments("Resizing", "").WithTimeout(5 * time.Second).Should(ConsistOf(
			ContainSubstring("limit of container app 256Mi to "), ContainSubstring("limit of container second 256Mi to "),
			And(ContainSubstring("limit of container app "), Not(ContainSubstring("256Mi to "))),
		))
	})
})
