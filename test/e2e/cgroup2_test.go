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

// onCgroup2 skips a spec unless the cluster has a cgroup v2 node of the variant, and returns a change that places a
// workload there.
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

// plain describes a node without NODE_WITH; each spec runs on one variant only.
const plain = "no variant"

// all returns a change that applies all changes.
func all(changes ...func(*appsv1.Deployment)) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		for _, change := range changes {
			change(d)
		}
	}
}

// withState gives the container a directory /state that survives restarts.
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

// dieTogether returns a shell command that starts a child far above the limit, so that the kernel kills both, n times.
func dieTogether(n int) []string {
	return []string{"sh", "-c", fmt.Sprintf(`n=$(cat /state/n 2>/dev/null || echo 0); n=$((n+1)); echo $n > /state/n
[ $n -gt %d ] && exec sleep 86400
sleep 1; python3 -c 'x = b"x" * (300 << 20)'; exec sleep 86400`, n)}
}

// pageCache is a server that fills page cache with a file on /fill, and deletes the file, and so its cache, on /drop.
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

// aboveHigh holds slightly more than memory.high and reads a file repeatedly. For a request of 16Mi and a limit of
// 128Mi, memory.high is 116.8Mi. With less memory, reclaiming the file is enough and nothing stalls
// (test/recordings/stalls).
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

// post sends a POST request to a pod's server through the API server.
func post(ctx context.Context, pod *corev1.Pod, what string) {
	GinkgoHelper()
	Eventually(func() error { // the server may not listen yet
		return clientset.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name + ":8080").
			SubResource("proxy").Suffix(what).Do(ctx).Error()
	}).WithContext(ctx).Should(Succeed(), what)
}

// These specs cover the seven differences of cgroup v2 (docs/design/ledger.md); test/cgroup2 tests the kernel and the
// kubelet alone. `make test-e2e-cgroup2` runs them on a node of each variant.
var _ = Describe("on a node with cgroup v2", Label("cgroup2"), func() {
	namespace := inNamespace()

	It("counts group kills once, by the pod's status", func(ctx SpecContext) {
		there := onCgroup2(ctx, plain, labnode.Kubelet.Plain)
		const each, replicas = 2, 3
		Expect(k8s.Create(ctx, profile(*namespace, v1alpha1.MemoryProfileSpec{Runtime: native}))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, pythonImage, "64Mi", dieTogether(each),
			replicated(replicas, all(there, withState))))).To(Succeed())
		Eventually(func() int32 { return totalRestarts(ctx, *namespace) }).WithContext(ctx).WithTimeout(later).
			Should(BeEquivalentTo(each * replicas))
		counted := func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.OOMKills).To(BeEquivalentTo(each * replicas))
			for _, kill := range rec.Status.RecentOOMKills {
				g.Expect(kill.Kind).To(BeElementOf("MainProcess", "AtStart"), "the whole container was killed")
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
		expectChildKillsCounted(ctx, *namespace, there)
	}, SpecTimeout(later*3))

	Describe("a limit below what is in use, page cache included,", Label("evidence"), func() {
		// runs starts a workload that uses little, and waits until memfit recommends a limit below 256Mi.
		runs := func(ctx SpecContext) *corev1.Pod {
			GinkgoHelper()
			there := onCgroup2(ctx, plain, labnode.Kubelet.Plain)
			skipUnlessCompressed(ctx)
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
			}).WithContext(ctx).WithTimeout(evidenceTimeout).Should(Succeed())
			return runningPod(ctx, *namespace)
		}

		It("is not sent to the kubelet, which would refuse it", func(ctx SpecContext) {
			pod := runs(ctx)
			post(ctx, pod, "fill")
			time.Sleep(usageRead)
			switchMode(ctx, *namespace, v1alpha1.SizingInPlace)
			held := eventuallyApplied(ctx, *namespace, v1alpha1.ReasonUsageTooHigh)
			Expect(held.Message).To(ContainSubstring("is page cache: the kubelet refuses to resize to"))
			Consistently(func(g Gomega) {
				now := runningPod(ctx, *namespace)
				g.Expect(now.Generation).To(BeEquivalentTo(1), "a resize was sent")
				events, err := eventsAbout(ctx, *namespace, "Pod", pod.Name, "ResizeError")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(events).To(BeEmpty())
			}).WithContext(ctx).WithTimeout(usageRead).Should(Succeed())

			By("dropping the page cache")
			post(ctx, pod, "drop")
			lowered(ctx, *namespace, pod)
		}, SpecTimeout(evidenceTimeout+later*3))

		It("that the kubelet refuses anyway is reported with the reason", func(ctx SpecContext) {
			pod := runs(ctx)
			// The page cache must grow after memfit's last reading and before its decision. If memfit reads usage again before
			// it decides, the spec repeats.
			var c metav1.Condition
			Eventually(func(g Gomega) {
				switchMode(ctx, *namespace, v1alpha1.SizingRecommend)
				post(ctx, pod, "drop")
				time.Sleep(usageRead)
				post(ctx, pod, "fill")
				switchMode(ctx, *namespace, v1alpha1.SizingInPlace)
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
			post(ctx, pod, "drop")
			lowered(ctx, *namespace, pod)
		}, SpecTimeout(evidenceTimeout+later*4))
	})

	// With a fast disk, PSI hardly shows a stall: on the lab's node 0.4 % of the time at 200 faults a second. The next
	// spec has a stall that only PSI shows.
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
		// In mode InPlace, memfit would raise the request, and so memory.high, before anything could stall.
		Expect(k8s.Create(ctx, profile(*namespace, sized(v1alpha1.SizingRecommend, native)))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, pythonImage, "128Mi", []string{"python3", "-c", aboveHigh},
			all(there, withState, requests("16Mi"))))).To(Succeed())
		stall := eventuallyStalled(ctx, *namespace)
		Expect(stall.Summary).To(And(ContainSubstring("all tasks waited for memory"), ContainSubstring("memory.high")))
		switchMode(ctx, *namespace, v1alpha1.SizingInPlace)
		eventuallyRelieved(ctx, *namespace)
	}, SpecTimeout(later*4))

	It("counts swapped memory as demand", Label("evidence"), func(ctx SpecContext) {
		skipUnlessCompressed(ctx)
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
				BeNumerically(">", 135*memory.MiB), "the limit must cover swapped memory: %v", c.Reasons,
			)
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Expect(restarts(runningPod(ctx, *namespace))).To(Equal(restarts(pod)))
	}, SpecTimeout(later*2))

	It("distinguishes a kill at the pod's limit from one at the container's", func(ctx SpecContext) {
		there := onCgroup2(ctx, plain, labnode.Kubelet.Plain)
		Expect(k8s.Create(ctx, profile(*namespace, v1alpha1.MemoryProfileSpec{Runtime: native}))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		// Both containers and the pod have a limit of 96Mi. Without small, each container would request its limit, and the
		// pod may not request less than their sum.
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
	// usageRead exceeds memfit's interval for reading usage plus the kubelet's for measuring it.
	usageRead = 45 * time.Second
	// countersRead exceeds memfit's interval for reading the kill counters.
	countersRead = 75 * time.Second
)

// lowered waits until the effective limit is below 256Mi, without a restart.
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

// eventuallyStalled waits for a recorded stall and expects no kill.
func eventuallyStalled(ctx context.Context, namespace string) v1alpha1.StallRecord {
	GinkgoHelper()
	var stall v1alpha1.StallRecord
	Eventually(func(g Gomega) {
		rec, err := recommendation(ctx, namespace)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(rec.Status.OOMKills).To(BeZero(), "the container was killed")
		g.Expect(rec.Status.RecentStalls).To(HaveLen(1))
		stall = rec.Status.RecentStalls[0]
	}).WithContext(ctx).WithTimeout(2 * later).Should(Succeed())
	GinkgoWriter.Println(stall.Summary)
	return stall
}

// eventuallyRelieved waits until raising the limit in place has ended the stall.
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
