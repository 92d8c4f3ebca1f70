// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// setPaused sets or removes the pause annotation of a namespace.
func setPaused(ctx context.Context, namespace string, on bool) {
	GinkgoHelper()
	value := `null`
	if on {
		value = `"true"`
	}
	_, err := clientset.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.PauseAnnotation, value), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// takes runs a shell that sleeps for some seconds and then runs a Go program that holds the size.
func takes(size string, after int, replicas int32) func(*appsv1.Deployment) {
	return replicated(replicas, func(d *appsv1.Deployment) {
		c := &d.Spec.Template.Spec.Containers[0]
		c.Command = []string{"sh", "-c", fmt.Sprintf("sleep %d; exec /goprobe -hold %s", after, size)}
	})
}

// expectHealthy expects n running pods, whose container has run longer than uptime, and whose limit the kubelet reports
// as effective for container and pod.
func expectHealthy(g Gomega, live []corev1.Pod, n int, uptime time.Duration) {
	g.Expect(live).To(HaveLen(n))
	for i := range live {
		pod := &live[i]
		g.Expect(pod.Status.ContainerStatuses).NotTo(BeEmpty(), pod.Name)
		running := pod.Status.ContainerStatuses[0].State.Running
		g.Expect(running).NotTo(BeNil(), "%s: %+v", pod.Name, pod.Status.ContainerStatuses[0].State)
		g.Expect(time.Since(running.StartedAt.Time)).To(BeNumerically(">", uptime))
		g.Expect(effective(pod)).To(Equal(limitOf(pod)))
		if r := pod.Status.Resources; r != nil { // Kubernetes 1.36 and later
			g.Expect(r.Limits.Memory().String()).To(Equal(limitOf(pod)), "the pod's effective limit")
		}
	}
}

var _ = Describe("sizing running pods that die", func() {
	namespace := inNamespace()
	// most is three times the need of the process, which is slightly more than 300 MiB.
	most := resource.MustParse("915Mi")

	crashLoop := func(ctx context.Context, mode v1alpha1.SizingMode) {
		GinkgoHelper()
		setPaused(ctx, *namespace, true)
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "32Mi", nil, holds("300Mi", 1)))).To(Succeed())
		Eventually(totalRestarts).WithContext(ctx).WithArguments(*namespace).WithTimeout(later).Should(BeNumerically(">=", 3))
		Expect(k8s.Create(ctx, profile(*namespace, sized(mode, native)))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		eventuallyApplied(ctx, *namespace, "Paused")
		setPaused(ctx, *namespace, false)
	}
	bounded := func(live []corev1.Pod) {
		for i := range live {
			limit := resource.MustParse(limitOf(&live[i]))
			if limit.Cmp(most) > 0 {
				StopTrying(fmt.Sprintf("the limit of %s is %s, more than three times the need", live[i].Name, limit.String())).Now()
			}
		}
	}

	It("never grows from a limit that was not effective: an earlier crash loop, in place", func(ctx SpecContext) {
		crashLoop(ctx, v1alpha1.SizingInPlace)
		var advised string // the pod that memfit advises to delete
		var since time.Time
		Eventually(func(g Gomega) {
			live := pods(ctx, *namespace)
			bounded(live)
			g.Expect(live).NotTo(BeEmpty())
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			// Follows the advice after a minute, in which memfit may still succeed by itself.
			remedy := fmt.Sprintf("kubectl -n %s delete pod %s", *namespace, live[0].Name)
			switch c := applied(rec); {
			case c.Reason == v1alpha1.ReasonNotEffective:
				g.Expect(c.Message).To(ContainSubstring(remedy))
				g.Expect(k8s.Delete(ctx, &live[0])).To(Succeed())
			case !strings.Contains(c.Message, remedy):
			case advised != live[0].Name:
				advised, since = live[0].Name, time.Now()
			case time.Since(since) > time.Minute:
				g.Expect(k8s.Delete(ctx, &live[0])).To(Succeed())
			}
			expectHealthy(g, live, 1, 15*time.Second)
			g.Expect(applied(rec).Reason).To(Equal("UpToDate"), applied(rec).Message)
		}).WithContext(ctx).WithTimeout(4 * later).WithPolling(time.Second).Should(Succeed())
	}, SpecTimeout(later*5))

	It("replaces a pod that no resize reaches, where evictions are allowed", func(ctx SpecContext) {
		crashLoop(ctx, v1alpha1.SizingInPlaceOrEvict)
		Eventually(func(g Gomega) {
			live := pods(ctx, *namespace)
			bounded(live)
			expectHealthy(g, live, 1, 15*time.Second)
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(applied(rec).Reason).To(Equal("UpToDate"), applied(rec).Message)
		}).WithContext(ctx).WithTimeout(4 * later).WithPolling(time.Second).Should(Succeed())
	}, SpecTimeout(later*5))

	It("raises a killed container, and the cgroup of its pod", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, profile(*namespace, sized(v1alpha1.SizingInPlace, native)))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "64Mi", nil, takes("100Mi", 8, 1)))).To(Succeed())
		first := runningPod(ctx, *namespace)
		Eventually(func(g Gomega) {
			live := pods(ctx, *namespace)
			expectHealthy(g, live, 1, 20*time.Second)
			g.Expect(live[0].UID).To(Equal(first.UID))
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			// memfit repeats a resize that a restart prevented, each time with 1Mi more.
			sent := memory.FromQuantity(*live[0].Spec.Containers[0].Resources.Limits.Memory())
			wanted := memory.FromQuantity(*rec.Status.Containers[0].Recommended.Limit)
			g.Expect(sent).To(And(BeNumerically(">=", wanted), BeNumerically("<=", wanted+3*memory.MiB)))
			g.Expect(applied(rec).Reason).To(Equal("UpToDate"), applied(rec).Message)
		}).WithContext(ctx).WithTimeout(2 * later).Should(Succeed())
	}, SpecTimeout(later*3))

	It("raises all of three killed replicas, not only the first", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, profile(*namespace, sized(v1alpha1.SizingInPlace, native)))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "64Mi", nil, takes("80Mi", 8, 3)))).To(Succeed())
		Eventually(func(g Gomega) {
			live := pods(ctx, *namespace)
			expectHealthy(g, live, 3, 20*time.Second)
			for i := range live {
				g.Expect(limitOf(&live[i])).NotTo(Equal("64Mi"))
			}
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(applied(rec).Reason).To(Equal("UpToDate"), applied(rec).Message)
		}).WithContext(ctx).WithTimeout(3 * later).Should(Succeed())
	}, SpecTimeout(later*4))

	It("never disturbs more pods than maxUnavailable", Label("evidence"), func(ctx SpecContext) {
		skipUnlessCompressed(ctx)
		one, least := intstr.FromInt32(1), v1alpha1.NewMemoryQuantity(resource.MustParse("192Mi"))
		spec := sized(v1alpha1.SizingRecommend, native)
		spec.Drift.Action = v1alpha1.DriftRestart
		spec.Tuning.ResizePolicy = v1alpha1.ResizeRestartContainer
		spec.Sizing.Disruption.MaxUnavailable = &one
		Expect(k8s.Create(ctx, profile(*namespace, spec))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "128Mi", nil, replicated(4, func(d *appsv1.Deployment) {
			c := &d.Spec.Template.Spec.Containers[0]
			c.Args = []string{"-hold", "20Mi"}
			c.ResizePolicy = []corev1.ContainerResizePolicy{
				{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
			}
			c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, InitialDelaySeconds: 5, ProbeHandler: corev1.ProbeHandler{
				Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "true"}}}}
		})))).To(Succeed())
		readyPods(ctx, *namespace, 4)

		By("raising the minimum, which restarts every pod")
		spec.Sizing.Mode, spec.Sizing.Limit = v1alpha1.SizingInPlaceOrEvict, &v1alpha1.Bounds{Min: least}
		p := profile(*namespace, spec)
		edit(ctx, p, func() { p.Spec = spec })
		Eventually(func(g Gomega) {
			live, ready, raised := pods(ctx, *namespace), 0, 0
			for i := range live {
				for _, c := range live[i].Status.Conditions {
					if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
						ready++
					}
				}
				// For a kubelet before 1.37.1, memfit may add 1Mi to make the limit effective.
				if limit := limitOf(&live[i]); limit == "192Mi" || limit == "193Mi" {
					raised++
				}
			}
			if ready < 3 {
				StopTrying(fmt.Sprintf("%d of 4 pods are ready, maxUnavailable is 1", ready)).Now()
			}
			g.Expect(raised).To(Equal(4))
		}).WithContext(ctx).WithTimeout(3 * later).WithPolling(200 * time.Millisecond).Should(Succeed())
	}, SpecTimeout(later*4))
})
