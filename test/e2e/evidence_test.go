// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

// evidenceTimeout limits the time until memfit lowers a limit from real samples: a compressed day is 6 min
// (EVIDENCE=240), and the workloads of all specs start at the same time.
const evidenceTimeout = 12 * time.Minute

// switchAndAwait changes the profile's mode and waits until memfit has a day of evidence and the condition Applied
// has the reason.
func switchAndAwait(ctx context.Context, namespace string, mode v1alpha1.SizingMode, reason string) metav1.Condition {
	GinkgoHelper()
	switchMode(ctx, namespace, mode)
	return appliedWithin(ctx, namespace, reason, evidenceTimeout)
}

// compressed reports whether memfit runs with config/compress-evidence.
func compressed(ctx context.Context) bool {
	GinkgoHelper()
	var d appsv1.Deployment
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: managerName}, &d)).To(Succeed())
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Env, func(e corev1.EnvVar) bool {
		return e.Name == "LAB_COMPRESS_EVIDENCE"
	})
}

// skipUnlessCompressed skips a spec that needs hours of evidence unless evidence is compressed.
func skipUnlessCompressed(ctx context.Context) {
	GinkgoHelper()
	if !compressed(ctx) {
		Skip("memfit counts real hours here: make test-evidence")
	}
}

// rolloutRestart does what kubectl rollout restart does.
func rolloutRestart(ctx context.Context, namespace string) {
	GinkgoHelper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	text := `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"` +
		time.Now().Format(time.RFC3339) + `"}}}}}`
	Expect(k8s.Patch(ctx, d, client.RawPatch(types.StrategicMergePatchType, []byte(text)))).To(Succeed())
}

// podsBelow returns the pods with a lower limit.
func podsBelow(ctx context.Context, namespace, limit string) (some []corev1.Pod) {
	for _, pod := range pods(ctx, namespace) {
		if pod.Spec.Containers[0].Resources.Limits.Memory().Cmp(resource.MustParse(limit)) < 0 {
			some = append(some, pod)
		}
	}
	return some
}

// A day of evidence is compressed to a few minutes (make test-evidence), and consists of the kubelet's samples.
var _ = Describe("limits lowered from real samples", Ordered, ContinueOnFailure, Label("evidence"), func() {
	// idles runs a JVM that uses little of its heap.
	idles := func(replicas int32) func(*appsv1.Deployment) {
		return replicated(replicas, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Command = []string{"sh", "-c",
				`echo 'class Idle { public static void main(String[] a) throws Exception { Thread.sleep(86400000); } }' > /tmp/Idle.java; exec java -XX:+UseSerialGC /tmp/Idle.java`}
		})
	}
	// jvm sets the heap to 75 % of the limit, and no restart when the limit changes. The minimum limit exceeds the page
	// cache, because the kubelet does not lower a limit below usage.
	jvm := func() v1alpha1.MemoryProfileSpec {
		spec := sized(v1alpha1.SizingRecommend, v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM, Version: "17"})
		percent, least := int32(75), resource.MustParse("200Mi")
		spec.Sizing.Limit = &v1alpha1.Bounds{Min: v1alpha1.NewMemoryQuantity(least)}
		spec.Tuning = v1alpha1.TuningSpec{HeapPercent: &percent, ResizePolicy: v1alpha1.ResizeNotRequired}
		return spec
	}
	// opens is the start of the only window of the year.
	opens := time.Date(time.Now().UTC().Year(), time.Now().UTC().Month()+6, 1, 0, 0, 0, 0, time.UTC)
	window := func(schedule string, open time.Duration) v1alpha1.MemoryProfileSpec {
		spec := sized(v1alpha1.SizingRecommend, native)
		spec.Sizing.Disruption.Windows = []v1alpha1.MaintenanceWindow{
			{Schedule: schedule, Duration: metav1.Duration{Duration: open}},
		}
		return spec
	}
	// refuses runs a program that is not ready with a limit of less than 200 MB, and keeps running.
	refuses := replicated(2, func(d *appsv1.Deployment) {
		c := &d.Spec.Template.Spec.Containers[0]
		c.Args = []string{"-hold", "30Mi"}
		c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 2, TimeoutSeconds: 10, ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"sh", "-c",
				`[ "$(cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null)" -gt 200000000 ]`}}}}
	})
	var inPlace, canary, created, frozen, evicted, windowed, unready, small string
	begins := func(ctx context.Context, spec v1alpha1.MemoryProfileSpec, image, limit string,
		change func(*appsv1.Deployment),
	) string {
		GinkgoHelper()
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
		Expect(k8s.Create(ctx, ns)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			Expect(client.IgnoreNotFound(k8s.Delete(ctx, ns))).To(Succeed())
		})
		Expect(k8s.Create(ctx, profile(ns.Name, spec))).To(Succeed())
		waitUntilKnown(ctx, ns.Name)
		Expect(k8s.Create(ctx, workload(ns.Name, image, limit, nil, change))).To(Succeed())
		return ns.Name
	}
	BeforeAll(func(ctx SpecContext) {
		skipUnlessCompressed(ctx)
		watched := sized(v1alpha1.SizingRecommend, native)
		watched.Sizing.Disruption.Watch.Duration = 75 * time.Second
		inPlace = begins(ctx, sized(v1alpha1.SizingRecommend, native), goImage, "256Mi", holds("30Mi", 2))
		canary = begins(ctx, watched, goImage, "256Mi", holds("30Mi", 3))
		created = begins(ctx, watched, goImage, "256Mi", holds("30Mi", 3))
		windowed = begins(
			ctx, window(fmt.Sprintf("0 0 1 %d *", opens.Month()), time.Hour), goImage, "256Mi", holds("30Mi", 1),
		)
		small = begins(ctx, sized(v1alpha1.SizingInPlace, native), goImage, "32Mi", holds("60Mi", 2))
		unready = begins(ctx, window("0 0 * * *", 24*time.Hour), goImage, "256Mi", refuses)
		frozen = begins(ctx, jvm(), jdkImage, "512Mi", idles(1))
		evicted = begins(ctx, jvm(), jdkImage, "512Mi", idles(2))
	}, NodeTimeout(later))
	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			for _, namespace := range []string{inPlace, canary, created, frozen, evicted, windowed, unready, small} {
				dump(ctx, namespace)
			}
		}
	})

	It("are not needed after a kill at a small limit: less than three times the need answers it", func(ctx SpecContext) {
		bounded := func(g Gomega) {
			for _, pod := range pods(ctx, small) {
				limit := pod.Spec.Containers[0].Resources.Limits.Memory()
				g.Expect(limit.Cmp(resource.MustParse("180Mi"))).To(Equal(-1), limit.String())
				g.Expect(limit.Cmp(resource.MustParse("60Mi"))).To(Equal(1), limit.String())
			}
		}
		allEffective := func(g Gomega) {
			for _, pod := range pods(ctx, small) {
				g.Expect(effective(&pod)).To(Equal(limitOf(&pod)))
			}
		}
		readyPods(ctx, small, 2)
		Eventually(bounded).WithContext(ctx).WithTimeout(later).Should(Succeed(), "both limits raised after the kills")
		Eventually(allEffective).WithContext(ctx).WithTimeout(later).Should(Succeed())
		By("letting four hours of evidence pass")
		Consistently(bounded).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
		Eventually(allEffective).WithContext(ctx).WithTimeout(later).Should(Succeed())
	}, SpecTimeout(later*3))

	It("reach one pod first and then the others, and none restarts", func(ctx SpecContext) {
		before := readyPods(ctx, inPlace, 2)
		watching := switchAndAwait(ctx, inPlace, v1alpha1.SizingInPlace, v1alpha1.ReasonWatching)
		Expect(watching.Message).To(ContainSubstring("256Mi to"))
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, inPlace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(applied(rec).Reason).To(Equal("UpToDate"), applied(rec).Message)
			for _, pod := range pods(ctx, inPlace) {
				g.Expect(effective(&pod)).To(Equal(limitOf(&pod)))
				g.Expect(pod.Spec.Containers[0].Resources.Limits.Memory().Cmp(resource.MustParse("256Mi"))).To(Equal(-1))
			}
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		for i, pod := range readyPods(ctx, inPlace, 2) {
			Expect(pod.UID).To(Equal(before[i].UID))
			Expect(restarts(&pod)).To(BeZero())
		}
	}, SpecTimeout(evidenceTimeout+later*2))

	It("reach one of the pods that a rollout restart creates, and the others keep what is proven", func(ctx SpecContext) {
		before := readyPods(ctx, created, 3)
		switchAndAwait(ctx, created, v1alpha1.SizingInPlace, v1alpha1.ReasonWatching)
		rolloutRestart(ctx, created)
		Eventually(func(g Gomega) {
			live := pods(ctx, created)
			g.Expect(live).To(HaveLen(3))
			for _, pod := range live {
				for _, old := range before {
					g.Expect(pod.UID).NotTo(Equal(old.UID))
				}
			}
		}).WithContext(ctx).WithTimeout(soon).WithPolling(200 * time.Millisecond).Should(Succeed())
		Expect(len(podsBelow(ctx, created, "256Mi"))).To(BeNumerically("<=", 1), "before the watch is over, of three pods")
		Eventually(func(g Gomega) {
			g.Expect(podsBelow(ctx, created, "256Mi")).To(HaveLen(3), "all three pods, after the watch")
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
	}, SpecTimeout(evidenceTimeout+later*2))

	It("are rolled back when the first pod is killed by it, also across a restart of memfit, and no other pod gets it",
		func(ctx SpecContext) {
			readyPods(ctx, canary, 3)
			watching := switchAndAwait(ctx, canary, v1alpha1.SizingInPlace, v1alpha1.ReasonWatching)
			Expect(watching.Message).To(ContainSubstring("the first of 3"))
			some := podsBelow(ctx, canary, "256Mi")
			Expect(some).To(HaveLen(1), "one pod is changed first")
			first := &some[0]

			By("killing memfit while it watches")
			killedAndReplaced(ctx)

			By("exceeding the lower limit")
			exceedMemory(ctx, first, "230Mi")
			Eventually(func(g Gomega) {
				events, err := eventsAbout(ctx, canary, "Deployment", "web", "Reverted")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(events).To(HaveLen(1))
				g.Expect(events[0].Message).To(
					And(ContainSubstring("is rolled back from every pod that has it, to 256Mi"),
						ContainSubstring(first.Name+" was OOM-killed")),
				)
				for _, pod := range pods(ctx, canary) {
					g.Expect(effective(&pod)).To(Equal("256Mi"))
					if pod.UID != first.UID {
						g.Expect(pod.Generation).To(BeEquivalentTo(1), "only the first pod may change")
					}
				}
			}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		}, SpecTimeout(evidenceTimeout+later*3))

	It("wait for a maintenance window, as the condition reports, while a kill raises immediately", func(ctx SpecContext) {
		pod := readyPods(ctx, windowed, 1)[0]
		Expect(switchAndAwait(ctx, windowed, v1alpha1.SizingInPlace, v1alpha1.ReasonWaitingForWindow).Message).To(
			ContainSubstring("opens at " + opens.Format(time.RFC3339)),
		)
		rec, err := recommendation(ctx, windowed)
		Expect(err).NotTo(HaveOccurred())
		lower := rec.Status.Containers[0].Recommended.Limit
		Expect(lower.Cmp(resource.MustParse("256Mi"))).To(Equal(-1), "lower, but not yet applied")
		Expect(limitOf(&pods(ctx, windowed)[0])).To(Equal("256Mi"))

		By("exceeding its limit")
		exceedMemory(ctx, &pod, "300Mi")
		Eventually(func(g Gomega) {
			live := pods(ctx, windowed)
			g.Expect(live).To(HaveLen(1))
			g.Expect(live[0].UID).To(Equal(pod.UID))
			limit := live[0].Spec.Containers[0].Resources.Limits.Memory()
			g.Expect(limit.Cmp(resource.MustParse("256Mi"))).To(Equal(1), limit.String())
			g.Expect(effective(&live[0])).To(Equal(limit.String()))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		eventuallyApplied(ctx, windowed, v1alpha1.ReasonUpToDate)
		Expect(plugin(ctx, "history", "deploy/web", "-n", windowed)).To(And(
			ContainSubstring("Resized, pod "+pod.Name+": limit of container app 256Mi to"),
			ContainSubstring("OOM-killed at 256Mi"), ContainSubstring("OOM kill ("),
		))
	}, SpecTimeout(evidenceTimeout+later*3))

	It("are rolled back, in an open window, for a pod that is not ready with them", func(ctx SpecContext) {
		readyPods(ctx, unready, 2)
		watching := switchAndAwait(ctx, unready, v1alpha1.SizingInPlace, v1alpha1.ReasonWatching)
		Expect(watching.Message).To(ContainSubstring("the first of 2"))
		var events []corev1.Event
		Eventually(func(g Gomega) {
			var err error
			events, err = eventsAbout(ctx, unready, "Deployment", "web", v1alpha1.EventReverted)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(events).To(HaveLen(1))
			rec, err := recommendation(ctx, unready)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(applied(rec).Reason).To(Equal(v1alpha1.ReasonUpToDate), applied(rec).Message)
			live, unchanged := pods(ctx, unready), 0
			for i := range live {
				g.Expect(effective(&live[i])).To(Equal("256Mi"))
				if live[i].Generation == 1 {
					unchanged++
				}
			}
			g.Expect(unchanged).To(Equal(1), "only the first pod may change")
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Expect(events[0].Message).To(
			And(ContainSubstring("to 256Mi"), MatchRegexp("has not been ready since .*, and was ready before that limit")),
		)
		for _, pod := range readyPods(ctx, unready, 2) {
			Expect(restarts(&pod)).To(BeZero())
		}
		Expect(plugin(ctx, "history", "deploy/web", "-n", unready)).To(And(
			ContainSubstring("Reverted, pod "), ContainSubstring("has not been ready since"),
			ContainSubstring("limit of container app 256Mi to"),
		))
	}, SpecTimeout(evidenceTimeout+later*3))

	It("do not fall below the heap that a JVM was started with, as the condition reports", func(ctx SpecContext) {
		pod := runningPod(ctx, frozen)
		held := switchAndAwait(ctx, frozen, v1alpha1.SizingInPlace, v1alpha1.ReasonHeapCapFixed)
		Expect(held.Message).To(And(ContainSubstring("heap cap of 384Mi"), ContainSubstring(pod.Name)))
		Expect(limitOf(runningPod(ctx, frozen))).To(Equal("512Mi"))
	}, SpecTimeout(evidenceTimeout+later*2))

	It("evict such a pod where that is allowed, but not against its PodDisruptionBudget", func(ctx SpecContext) {
		two := intstr.FromInt32(2)
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: evicted, Name: "web"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: &two, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			},
		}
		Expect(k8s.Create(ctx, budget)).To(Succeed())
		before := readyPods(ctx, evicted, 2)
		held := switchAndAwait(ctx, evicted, v1alpha1.SizingInPlaceOrEvict, v1alpha1.ReasonDisruptionBudget)
		Expect(held.Message).To(ContainSubstring("PodDisruptionBudget"))
		for i, pod := range readyPods(ctx, evicted, 2) {
			Expect(pod.UID).To(Equal(before[i].UID), "no pod may be evicted")
		}

		By("deleting the budget")
		Expect(k8s.Delete(ctx, budget)).To(Succeed())
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, evicted)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(applied(rec).Reason).To(Equal("UpToDate"), applied(rec).Message)
			live := pods(ctx, evicted)
			g.Expect(live).To(HaveLen(2))
			for _, pod := range live {
				g.Expect([]types.UID{before[0].UID, before[1].UID}).NotTo(ContainElement(pod.UID))
			}
			g.Expect(podsBelow(ctx, evicted, "512Mi")).To(HaveLen(2))
		}).WithContext(ctx).WithTimeout(2 * later).Should(Succeed())
		Eventually(eventsAbout).WithContext(ctx).WithArguments(
			evicted, "Deployment", "web", "Replaced",
		).WithTimeout(later).Should(HaveLen(2))
	}, SpecTimeout(evidenceTimeout+later*4))
})
