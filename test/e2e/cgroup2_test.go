// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/labnode"
)

const pythonImage = "memfit.test/python:3.11"

// onCgroup2 skips a spec unless the cluster has a node with cgroup v2 of the variant that it needs, and returns a
// change that puts a workload there.
func onCgroup2(ctx context.Context, variant string, suits func(labnode.Kubelet) bool) func(*appsv1.Deployment) {
	GinkgoHelper()
	name, kubelet, err := labnode.Find(ctx, clientset, labnode.Cgroup2)
	Expect(err).NotTo(HaveOccurred())
	switch {
	case name == "":
		Skip("the cluster has no node with cgroup v2: make test-e2e-cgroup2")
	case !suits(kubelet):
		Skip("needs a node with " + variant)
	}
	return func(d *appsv1.Deployment) {
		annotated(d)
		labnode.Place(&d.Spec.Template.Spec, labnode.Cgroup2)
	}
}

// plain is the usual node; each spec runs on one variant only.
const plain = "no variant"

// all makes one change of several.
func all(changes ...func(*appsv1.Deployment)) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		for _, change := range changes {
			change(d)
		}
	}
}

// withState gives the container a directory /state that outlives it.
func withState(d *appsv1.Deployment) {
	pod := &d.Spec.Template.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{
		Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
	})
	pod.Containers[0].VolumeMounts = append(
		pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "state", MountPath: "/state"},
	)
}

func requests(size string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceMemory: resource.MustParse(size),
		}
	}
}

// dieTogether: so many times a shell starts a child that takes far more than the limit, and both are gone.
func dieTogether(n int) []string {
	return []string{"sh", "-c", fmt.Sprintf(`n=$(cat /state/n 2>/dev/null || echo 0); n=$((n+1)); echo $n > /state/n
[ $n -gt %d ] && exec sleep 86400
sleep 1; python3 -c 'x = b"x" * (300 << 20)'; exec sleep 86400`, n)}
}

// pageCache is a server that fills page cache with a file when it is told to, and drops it with the file.
const pageCache = `import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        if self.path == '/fill':
            with open('/state/f', 'wb') as f:
                for _ in range(150): f.write(os.urandom(1 << 20))
                os.fsync(f.fileno())
        elif os.path.exists('/state/f'): os.remove('/state/f')
        self.send_response(200); self.send_header('Content-Length', '0'); self.end_headers()
http.server.HTTPServer(('', 8080), Handler).serve_forever()`

// aboveHigh holds 2 % more than memory.high is for a request of 16Mi and a limit of 128Mi, 116.8Mi, and reads a file
// over and over. With less, reclaiming the file is enough, and nothing stalls (test/recordings/stalls).
const aboveHigh = `import os, time
with open('/state/f', 'wb') as f:
    for _ in range(40): f.write(os.urandom(1 << 20))
    os.fsync(f.fileno())
x = bytearray(118 << 20)
for i in range(0, len(x), 4096): x[i] = 1
while True:
    with open('/state/f', 'rb') as f:
        while f.read(1 << 20): pass
    time.sleep(0.1)`

// tell has the server of a pod do something.
func tell(ctx context.Context, pod *corev1.Pod, what string) {
	GinkgoHelper()
	Eventually(func() error { // it may not listen yet
		return clientset.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name + ":8080").
			SubResource("proxy").Suffix(what).Do(ctx).Error()
	}).WithContext(ctx).Should(Succeed(), what)
}

// These are the seven things that cgroup v2 does otherwise (docs/design/ledger.md), as promises of memfit's.
// test/cgroup2 holds what they rest on. `make test-e2e-cgroup2` runs them on a node of each variant.
var _ = Describe("on a node with cgroup v2", Label("cgroup2"), func() {
	namespace := inNamespace()

	It("counts group kills once, by the pod's status", func(ctx SpecContext) {
		there := onCgroup2(ctx, plain, labnode.Kubelet.Plain)
		const each, replicas = 2, 3
		Expect(k8s.Create(ctx, profile(*namespace, v1alpha1.MemoryProfileSpec{Runtime: native}))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, pythonImage, "64Mi", dieTogether(each),
			replicated(replicas, all(there, withState))))).To(Succeed())
		Eventually(func() int32 { return died(ctx, *namespace) }).WithContext(ctx).WithTimeout(later).
			Should(BeEquivalentTo(each * replicas))
		counted := func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.OOMKills).To(BeEquivalentTo(each * replicas))
			for _, kill := range rec.Status.RecentOOMKills {
				g.Expect(kill.Kind).To(BeElementOf("MainProcess", "AtStart"), "the container died, not a child alone")
				g.Expect(kill.Limit.String()).To(Equal("64Mi"))
			}
		}
		Eventually(counted).WithContext(ctx).WithTimeout(later).Should(Succeed())
		By("reading the kubelet's counters once more")
		Consistently(counted).WithContext(ctx).WithTimeout(countersRead).Should(Succeed())
	}, SpecTimeout(later*3))

	It("counts kills of children that neither status nor Events show", func(ctx SpecContext) {
		there := onCgroup2(
			ctx, "NODE_WITH=single-process-oom-kill", func(k labnode.Kubelet) bool { return k.SingleProcessOOMKill },
		)
		childrenAreCounted(ctx, *namespace, there)
	}, SpecTimeout(later*3))

	Describe("a limit below what is in use, page cache included,", Label("evidence"), func() {
		// runs starts a workload and waits until it is to be lowered from 256Mi for what it used for a day, which is little.
		runs := func(ctx SpecContext) *corev1.Pod {
			GinkgoHelper()
			there := onCgroup2(ctx, plain, labnode.Kubelet.Plain)
			needsCompressed(ctx)
			Expect(k8s.Create(ctx, profile(*namespace, sized(v1alpha1.SizingRecommend, native)))).To(Succeed())
			waitUntilKnown(ctx, *namespace)
			Expect(k8s.Create(ctx, workload(
				*namespace, pythonImage, "256Mi", []string{"python3", "-c", pageCache}, all(there, withState),
			))).To(Succeed())
			Eventually(func(g Gomega) {
				rec, err := recommendation(ctx, *namespace)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(rec.Status.Containers).To(HaveLen(1))
				g.Expect(rec.Status.Containers[0].Recommended).NotTo(BeNil())
				limit := rec.Status.Containers[0].Recommended.Limit
				g.Expect(limit.Cmp(resource.MustParse("256Mi"))).To(Equal(-1), limit.String())
			}).WithContext(ctx).WithTimeout(learnt).Should(Succeed())
			return runningPod(ctx, *namespace)
		}

		It("is not sent to the kubelet, which would refuse it", func(ctx SpecContext) {
			pod := runs(ctx)
			tell(ctx, pod, "fill")
			time.Sleep(usageRead)
			switched(ctx, *namespace, v1alpha1.SizingInPlace)
			held := eventuallyApplied(ctx, *namespace, v1alpha1.ReasonUsageTooHigh)
			Expect(held.Message).To(ContainSubstring("is page cache: the kubelet refuses to resize to"))
			Consistently(func(g Gomega) {
				now := runningPod(ctx, *namespace)
				g.Expect(now.Generation).To(BeEquivalentTo(1), "nothing was sent")
				told, err := eventsAbout(ctx, *namespace, "Pod", pod.Name, "ResizeError")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(told).To(BeEmpty())
			}).WithContext(ctx).WithTimeout(usageRead).Should(Succeed())

			By("dropping the page cache")
			tell(ctx, pod, "drop")
			lowered(ctx, *namespace, pod)
		}, SpecTimeout(learnt+later*3))

		It("that the kubelet refuses anyway is reported with the reason", func(ctx SpecContext) {
			pod := runs(ctx)
			// The page cache comes between two readings of memfit's, and memfit decides before the second. Sometimes the
			// reading comes first.
			var c metav1.Condition
			Eventually(func(g Gomega) {
				switched(ctx, *namespace, v1alpha1.SizingRecommend)
				tell(ctx, pod, "drop")
				time.Sleep(usageRead)
				tell(ctx, pod, "fill")
				switched(ctx, *namespace, v1alpha1.SizingInPlace)
				g.Eventually(func(g Gomega) {
					rec, err := recommendation(ctx, *namespace)
					g.Expect(err).NotTo(HaveOccurred())
					c = applied(rec)
					g.Expect(c.Reason).To(BeElementOf(v1alpha1.ReasonResizeFailed, v1alpha1.ReasonUsageTooHigh), c.Message)
				}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
				g.Expect(c.Reason).To(Equal(v1alpha1.ReasonResizeFailed), c.Message)
			}).WithContext(ctx).WithTimeout(2 * later).Should(Succeed())
			GinkgoWriter.Println(c.Message)
			Expect(c.Message).To(And(ContainSubstring("256Mi to"), ContainSubstring("the kubelet reports: "),
				ContainSubstring("page cache included: the higher limit remains effective")))
			Expect(effective(runningPod(ctx, *namespace))).To(Equal("256Mi"))

			By("dropping the page cache: the kubelet retries by itself")
			tell(ctx, pod, "drop")
			lowered(ctx, *namespace, pod)
		}, SpecTimeout(learnt+later*4))
	})

	// Where a disk answers immediately, PSI says next to nothing of it: on the lab's node 0.4 % of the time at 200 faults
	// a second. A stall that PSI alone tells is the next spec's.
	It("detects a stall with little PSI by its major faults", func(ctx SpecContext) {
		there := onCgroup2(ctx, plain, labnode.Kubelet.Plain)
		Expect(k8s.Create(ctx, profile(*namespace, sized(v1alpha1.SizingInPlace, native)))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "128Mi", nil, all(
			readsFromDisk("web", "-hold", "110Mi", "-map-file", "26Mi", "-walk-random"), there,
		)))).To(Succeed())
		stall := eventuallyStalled(ctx, *namespace)
		Expect(stall.Limit.String()).To(Equal("128Mi"))
		Expect(stall.Summary).To(And(ContainSubstring("major faults a second"), Not(ContainSubstring(" 0 major faults"))))
		eventuallyRelieved(ctx, *namespace)
	}, SpecTimeout(later*4))

	It("detects a stall at memory.high, below the limit, by PSI, and raises both", func(ctx SpecContext) {
		there := onCgroup2(ctx, "NODE_WITH=memory-qos", labnode.Kubelet.Throttles)
		// In place, the request would follow use, and memory.high the request, before anything could stall.
		Expect(k8s.Create(ctx, profile(*namespace, sized(v1alpha1.SizingRecommend, native)))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, pythonImage, "128Mi", []string{"python3", "-c", aboveHigh},
			all(there, withState, requests("16Mi"))))).To(Succeed())
		stall := eventuallyStalled(ctx, *namespace)
		Expect(stall.Summary).To(And(ContainSubstring("all tasks waited for memory"), ContainSubstring("memory.high")))
		switched(ctx, *namespace, v1alpha1.SizingInPlace)
		eventuallyRelieved(ctx, *namespace)
	}, SpecTimeout(later*4))

	It("counts swapped memory as demand", Label("evidence"), func(ctx SpecContext) {
		needsCompressed(ctx)
		there := onCgroup2(ctx, "NODE_WITH=swap", labnode.Kubelet.Swaps)
		Expect(k8s.Create(ctx, profile(*namespace, v1alpha1.MemoryProfileSpec{Runtime: native}))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		hold := []string{"python3", "-c", "import time\nx = b'x' * (135 << 20)\ntime.sleep(86400)"}
		Expect(
			k8s.Create(ctx, workload(*namespace, pythonImage, "128Mi", hold, all(there, requests("64Mi")))),
		).To(Succeed())
		pod := runningPod(ctx, *namespace)
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.Containers).To(HaveLen(1))
			c := &rec.Status.Containers[0]
			g.Expect(c.Evidence.PeakSwap).NotTo(BeNil(), c.Summary)
			g.Expect(memory.FromQuantity(*c.Evidence.PeakSwap)).To(BeNumerically(">", 5*memory.MiB))
			g.Expect(c.Reasons).To(ContainElement(ContainSubstring("was swapped out, which is part of demand")))
			g.Expect(c.Recommended).NotTo(BeNil())
			g.Expect(memory.FromQuantity(*c.Recommended.Limit)).To(
				BeNumerically(">", 135*memory.MiB), "room for all of it: %v", c.Reasons,
			)
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Expect(restarts(runningPod(ctx, *namespace))).To(Equal(restarts(pod)))
	}, SpecTimeout(later*2))

	It("distinguishes a kill at the pod's limit from one at the container's", func(ctx SpecContext) {
		there := onCgroup2(ctx, plain, labnode.Kubelet.Plain)
		Expect(k8s.Create(ctx, profile(*namespace, v1alpha1.MemoryProfileSpec{Runtime: native}))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		// Both containers may have 96Mi, and the pod as a whole no more. It may not request less than they do, which is
		// their limits unless they say so.
		small := requests("16Mi")
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "96Mi", nil, all(there, small, func(d *appsv1.Deployment) {
			p := &d.Spec.Template.Spec
			side := *p.Containers[0].DeepCopy()
			side.Name, side.Args = "side", []string{"-hold", "30Mi", "-listen", ":8081"}
			p.Containers[0].Args = []string{"-hold", "30Mi", "-leak", "1Mi"}
			p.Containers = append(p.Containers, side)
			p.Resources = &corev1.ResourceRequirements{
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("96Mi")},
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("96Mi")},
			}
		})))).To(Succeed())
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.RecentOOMKills).NotTo(BeEmpty())
			for _, kill := range rec.Status.RecentOOMKills {
				g.Expect(kill.Kind).To(Equal("PodLimit"), "%+v", kill)
			}
			var advice []string
			for i := range rec.Status.Containers {
				advice = append(advice, rec.Status.Containers[i].Advice...)
			}
			g.Expect(advice).To(ContainElement(ContainSubstring("spec.resources.limits.memory")))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
	}, SpecTimeout(later*2))

	It("warns of a heap that may grow beyond memory.high", func(ctx SpecContext) {
		there := onCgroup2(ctx, "NODE_WITH=memory-qos", labnode.Kubelet.Throttles)
		if agents, err := clientset.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{
			LabelSelector: "app.kubernetes.io/component=agent",
		}); err != nil || len(agents.Items) == 0 {
			Skip("needs the agent, which reads memory.high: make agent-lab")
		}
		spec := v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo}}
		spec.Tuning.HeapPercent = new(int32(98))
		Expect(k8s.Create(ctx, profile(*namespace, spec))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		// memory.high is 243.2Mi, and GOMEMLIMIT 250.8Mi.
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "256Mi", nil, all(
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = []string{"-hold", "20Mi"} },
			there, requests("128Mi"),
		)))).To(Succeed())
		pod := runningPod(ctx, *namespace)
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.Containers).To(HaveLen(1))
			g.Expect(rec.Status.Containers[0].Advice).To(ContainElement(And(
				ContainSubstring("pod "+pod.Name+": the heap may grow to"), ContainSubstring("memory.high"),
			)))
		}).WithContext(ctx).WithTimeout(2 * later).Should(Succeed())
	}, SpecTimeout(later*3))
})

const (
	// usageRead is more than the time between two readings of usage, and the kubelet's own between two measurements.
	usageRead = 45 * time.Second
	// countersRead is more than the time between two readings of the kill counters.
	countersRead = 75 * time.Second
)

// lowered waits until the limit of the same process is lower, and effective.
func lowered(ctx context.Context, namespace string, pod *corev1.Pod) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		now := runningPod(ctx, namespace)
		g.Expect(now.UID).To(Equal(pod.UID))
		limit := resource.MustParse(effective(now))
		g.Expect(limit.Cmp(resource.MustParse("256Mi"))).To(Equal(-1), effective(now))
		g.Expect(restarts(now)).To(BeZero())
	}).WithContext(ctx).WithTimeout(later).Should(Succeed())
}

// eventuallyStalled waits for a stall without a kill.
func eventuallyStalled(ctx context.Context, namespace string) v1alpha1.StallRecord {
	GinkgoHelper()
	var stall v1alpha1.StallRecord
	Eventually(func(g Gomega) {
		rec, err := recommendation(ctx, namespace)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(rec.Status.OOMKills).To(BeZero(), "nothing is killed")
		g.Expect(rec.Status.RecentStalls).To(HaveLen(1))
		stall = rec.Status.RecentStalls[0]
	}).WithContext(ctx).WithTimeout(2 * later).Should(Succeed())
	GinkgoWriter.Println(stall.Summary)
	return stall
}

// eventuallyRelieved waits until a raise in place has ended it.
func eventuallyRelieved(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		rec, err := recommendation(ctx, namespace)
		g.Expect(err).NotTo(HaveOccurred())
		c := condition(rec.Status.Conditions, v1alpha1.ConditionMemoryStalled)
		g.Expect(c.Reason).To(Equal(v1alpha1.ReasonStallEnded), c.Message)
		g.Expect(rec.Status.RecentStalls[0].IncreasedTo).NotTo(BeNil())
		g.Expect(rec.Status.RecentStalls[0].IncreaseIneffective).To(BeFalse())
	}).WithContext(ctx).WithTimeout(2 * later).Should(Succeed())
	Expect(restarts(runningPod(ctx, namespace))).To(BeZero())
}
