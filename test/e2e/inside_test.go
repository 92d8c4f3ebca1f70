// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && agent

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// freesAndTrims is a program that allocates 96 MiB with malloc and frees most of it. On /trim it trims, and answers
// with its resident memory before and after, in bytes.
const freesAndTrims = `import ctypes, json
from http.server import BaseHTTPRequestHandler, HTTPServer
held = [bytearray(b"x" * 65536) for _ in range(1536)]
held = [held[i] for i in range(0, 1536, 48)]
libc = ctypes.CDLL(None)
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        before = resident()
        libc.malloc_trim(0)
        body = json.dumps({"before": before, "after": resident()}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)
HTTPServer(("", 8080), Handler).serve_forever()`

// inspected waits until the agent has inspected the pod's first container and suits accepts the snapshot.
func inspected(ctx context.Context, pod *corev1.Pod, suits func(Gomega, *v1alpha1.ContainerSnapshot)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		s := snapshotOf(ctx, pod)
		g.Expect(s).NotTo(BeNil())
		g.Expect(s.Memory).NotTo(BeNil(), s.InspectionMessage)
		suits(g, s)
	}).WithContext(ctx).WithTimeout(later).Should(Succeed())
}

// trim is the name of the action that returns glibc's free memory.
const trim = "malloc_trim"

// trimGain returns the predicted saving of a trim, or -1 if none is predicted.
func trimGain(of []v1alpha1.PredictedSaving) memory.Bytes {
	for i := range of {
		if of[i].Action == trim {
			return memory.FromQuantity(of[i].Amount)
		}
	}
	return -1
}

// compilesIdle adds an init container that compiles the program Idle into /built.
func compilesIdle(d *appsv1.Deployment) {
	p := &d.Spec.Template.Spec
	built := corev1.VolumeMount{Name: "built", MountPath: "/built"}
	p.Volumes = append(p.Volumes, corev1.Volume{
		Name: built.Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
	})
	p.InitContainers = append(p.InitContainers, corev1.Container{
		Name: "compile", Image: jdkImage, VolumeMounts: []corev1.VolumeMount{built}, Command: []string{"sh", "-c",
			`echo 'class Idle { public static void main(String[] a) throws Exception { Thread.sleep(86400000L); } }' \
> /built/Idle.java && javac /built/Idle.java`},
	})
	p.Containers[0].VolumeMounts = append(p.Containers[0].VolumeMounts, built)
}

var _ = Describe("what the agent sees inside", Label("agent"), func() {
	namespace := inNamespace()
	recommend := v1alpha1.MemoryProfileSpec{Sizing: v1alpha1.SizingSpec{Mode: v1alpha1.SizingRecommend}}

	It("predicts what a real trim returns, in snapshot, recommendation, why, top and map", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, profile(*namespace, recommend))).To(Succeed())
		command := []string{"python3", "-c", freesAndTrims}
		Expect(k8s.Create(ctx, workload(*namespace, pythonImage, "256Mi", command, annotated))).To(Succeed())
		pod := runningPod(ctx, *namespace)
		// Requests inspections, because after one that took seconds the agent waits a quarter of an hour without a request.
		Eventually(func() memory.Bytes { return trimGain(inspectNow(ctx, pod).Memory.Savings) }).
			WithContext(ctx).WithTimeout(later).Should(BeNumerically(">", 64*memory.MiB))
		inspected(ctx, pod, func(g Gomega, s *v1alpha1.ContainerSnapshot) {
			g.Expect(trimGain(s.Memory.Savings)).To(BeNumerically(">", 64*memory.MiB))
			g.Expect(s.Memory.Summary).To(HavePrefix(trim + " would give back "))
			g.Expect(sumOfParts(s.Memory).Cmp(s.Memory.Resident)).To(BeZero(), "parts add up")
		})

		By("drawing a map of its pages")
		marked := pod.DeepCopy()
		marked.Annotations = map[string]string{v1alpha1.MapAnnotation: "true"}
		Expect(k8s.Patch(ctx, marked, client.MergeFrom(pod))).To(Succeed())
		inspected(ctx, pod, func(g Gomega, s *v1alpha1.ContainerSnapshot) { g.Expect(s.Map).NotTo(BeNil()) })
		name := []string{"pod/" + pod.Name, "-n", *namespace}
		verb := func(v string, flags ...string) string {
			GinkgoHelper()
			return plugin(ctx, slices.Concat([]string{v}, name, flags)...)
		}
		Expect(verb("map", "--pages")).To(And(ContainSubstring("Pages:"), ContainSubstring("glibc")))
		Expect(verb("map", "-o", "svg")).To(And(ContainSubstring("<svg"), ContainSubstring("glibc")))

		By("checking the commands and the recommendation")
		Expect(verb("why")).To(And(
			ContainSubstring("Runtime    Python 3.11"), ContainSubstring(trim+": "), ContainSubstring("malloc_trim(0)"),
		))
		Expect(plugin(ctx, "top", "-n", *namespace)).To(MatchRegexp(pod.Name + ` +app +Python 3\.11`))
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.Containers).To(HaveLen(1))
			g.Expect(rec.Status.Containers[0].Breakdown).NotTo(BeEmpty())
			g.Expect(rec.Status.Containers[0].Suggestions).To(ContainElement(HavePrefix(trim + " would give back ")))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())

		By("trimming")
		predicted := trimGain(snapshotOf(ctx, pod).Memory.Savings)
		answer, err := getFrom(ctx, pod, "/trim")
		Expect(err).NotTo(HaveOccurred())
		var resident struct{ Before, After memory.Bytes }
		Expect(json.Unmarshal([]byte(answer), &resident)).To(Succeed())
		freed := resident.Before - resident.After
		GinkgoWriter.Printf("predicted %s, freed %s\n", predicted, freed)
		Expect(freed).To(BeNumerically("~", predicted, predicted/50))
	}, NodeTimeout(3*later))

	// The kernel of the lab's second node is built without CONFIG_MEMCG_V1, like those of some distributions. A JVM
	// without the fix for JDK-8349988 does not detect its limit there; Debian's JDK 17 has the fix.
	It("detects a JVM that does not see its limit, and new pods get -XX:MaxRAM", func(ctx SpecContext) {
		if os.Getenv("E2E_NODE") == "" {
			Skip("needs a node without CONFIG_MEMCG_V1: make test-agent NODE=cgroup2")
		}
		const limit = 320 * memory.MiB
		spec := recommend
		spec.Runtime = v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM}
		Expect(k8s.Create(ctx, profile(*namespace, spec))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(
			*namespace, oldJREImage, limit.String(), []string{"java", "-cp", "/built", "Idle"}, all(annotated, compilesIdle),
		))).To(Succeed())
		first := runningPod(ctx, *namespace)
		heap := func(g Gomega, c *v1alpha1.ContainerSnapshot) memory.Bytes {
			g.Expect(c.Runtime).NotTo(BeNil())
			g.Expect(c.Runtime.MaxHeap).NotTo(BeNil(), "%+v", c.Runtime)
			return memory.FromQuantity(*c.Runtime.MaxHeap)
		}
		inspected(ctx, first, func(g Gomega, c *v1alpha1.ContainerSnapshot) {
			g.Expect(heap(g, c)).To(BeNumerically(">", limit), "the heap is sized by the node")
		})
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.Advisories).To(ContainElement(ContainSubstring("does not detect the limit (JDK-8349988")))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())

		By("setting the heap to half of the limit, and replacing the pod")
		half := &v1alpha1.MemoryProfile{ObjectMeta: metav1.ObjectMeta{Namespace: *namespace, Name: profileName}}
		Expect(k8s.Patch(ctx, half, client.RawPatch(
			types.MergePatchType, []byte(`{"spec":{"tuning":{"heapPercent":50}}}`),
		))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		next := replacePod(ctx, first)
		Expect(env(next)["JAVA_TOOL_OPTIONS"]).To(And(
			ContainSubstring("-XX:MaxRAM=335544320"), ContainSubstring("-XX:MaxRAMPercentage=50"),
		))
		inspected(ctx, next, func(g Gomega, c *v1alpha1.ContainerSnapshot) {
			g.Expect(heap(g, c)).To(BeNumerically("~", limit/2, limit/16))
		})
	}, NodeTimeout(4*later))

	It("is compared with the declared runtime", func(ctx SpecContext) {
		spec := recommend
		spec.Runtime = v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM}
		Expect(k8s.Create(ctx, profile(*namespace, spec))).To(Succeed())
		script := []string{"sh", "-c", "exec node -e 'setInterval(() => {}, 1000)'"}
		Expect(k8s.Create(ctx, workload(*namespace, nodeImage, "128Mi", script, annotated))).To(Succeed())
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.Containers).To(HaveLen(1))
			c := &rec.Status.Containers[0]
			g.Expect(c.FoundRuntime).NotTo(BeNil())
			g.Expect(c.FoundRuntime.Type).To(Equal(v1alpha1.RuntimeNodeJS))
			g.Expect(c.FoundRuntime.Declared).To(ContainSubstring("declares JVM, but replicas run NodeJS 20."))
			g.Expect(c.Advice).To(ContainElement(c.FoundRuntime.Declared))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Expect(plugin(ctx, "explain", "deploy/web", "-n", *namespace)).To(ContainSubstring("but replicas run NodeJS 20."))
	}, NodeTimeout(2*later))

	It("becomes profiles that a scan writes, which new pods start with once they are applied", func(ctx SpecContext) {
		d := workload(*namespace, jdkImage, "256Mi", []string{"sh", "-c", idleJava}, nil)
		Expect(k8s.Create(ctx, d)).To(Succeed())
		pod := runningPod(ctx, *namespace)
		inspected(ctx, pod, func(g Gomega, s *v1alpha1.ContainerSnapshot) {
			g.Expect(s.Runtime).NotTo(BeNil())
			g.Expect(s.Runtime.Type).To(Equal(string(v1alpha1.RuntimeJVM)))
		})
		dir := GinkgoT().TempDir()
		plugin(ctx, "scan", "-n", *namespace, "--write", dir)
		files, err := filepath.Glob(filepath.Join(dir, "*", "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(1))
		text, err := os.ReadFile(files[0])
		Expect(err).NotTo(HaveOccurred())
		var written v1alpha1.MemoryProfile
		Expect(yaml.UnmarshalStrict(text, &written)).To(Succeed(), string(text))
		Expect(written.Spec.Runtime.Type).To(Equal(v1alpha1.RuntimeJVM))
		annotate := "annotate deployment web " + v1alpha1.ProfileAnnotation + "=" + written.Name
		Expect(string(text)).To(ContainSubstring(annotate))
		Expect(written.Spec.Tuning.Mode).To(Equal(v1alpha1.TuningDryRun), "a generated profile must not change pods")
		written.Spec.Tuning.Mode = v1alpha1.TuningInject
		Expect(k8s.Create(ctx, &written)).To(Succeed())

		with := d.DeepCopy()
		with.Annotations = map[string]string{v1alpha1.ProfileAnnotation: written.Name}
		Expect(k8s.Patch(ctx, with, client.MergeFrom(d))).To(Succeed())
		Eventually(func(g Gomega) { // the webhook may not know the profile yet
			g.Expect(env(replacePod(ctx, runningPod(ctx, *namespace)))).To(HaveKey("JAVA_TOOL_OPTIONS"))
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(3*later))

	It("outlives a kubelet, a containerd and itself, while pods come and go by the hundred", func(ctx SpecContext) {
		if os.Getenv("LAB_MODE") != "lab" || os.Getenv("E2E_NODE") != "" {
			Skip("kills daemons of the node, which only the lab of this machine can start again, on its own node")
		}
		const comeAndGo, atOnce = 200, 16
		Expect(k8s.Create(ctx, profile(*namespace, recommend))).To(Succeed())
		Expect(k8s.Create(ctx, workload(*namespace, nodeImage, "160Mi", nil, diesTimes(2)))).To(Succeed())
		many, tries, grace := int32(comeAndGo), int32(comeAndGo), int64(0)
		side := int32(atOnce)
		churn := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: *namespace, Name: "churn"},
			Spec: batchv1.JobSpec{
				// for pods that fail when a daemon is restarted
				Completions: &many, Parallelism: &side, BackoffLimit: &tries,
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
					Containers: []corev1.Container{{
						Name: "app", Image: pythonImage, ImagePullPolicy: corev1.PullIfNotPresent,
						Command: []string{"sh", "-c", "sleep 2"},
					}},
				}},
			},
		}
		Expect(k8s.Create(ctx, churn)).To(Succeed())
		done := func(n int32) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(churn), churn)).To(Succeed())
				g.Expect(churn.Status.Succeeded).To(BeNumerically(">=", n))
			}).WithContext(ctx).WithTimeout(2 * later).Should(Succeed())
		}
		for i, daemon := range []string{"kubelet", "containerd"} {
			done(int32(comeAndGo * (i + 1) / 4))
			By("restarting " + daemon)
			out, err := exec.CommandContext(ctx, "go", "-C", "../../hack/lab", "run", ".", "restart", daemon).CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(out))
		}
		done(comeAndGo * 3 / 4)
		By("killing the agent")
		killAgents(ctx)
		done(comeAndGo)

		By("checking records and snapshots")
		Eventually(func(g Gomega) { // each kill once, although daemons and agent were down in between
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.OOMKills).To(Equal(int64(2)))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		pod := runningPod(ctx, *namespace)
		since := metav1.NewTime(time.Now().Truncate(time.Second))
		Expect(k8s.Delete(ctx, churn, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		Eventually(func(g Gomega) { // a pod's snapshot is deleted with the pod
			var snapshots v1alpha1.MemorySnapshotList
			g.Expect(k8s.List(ctx, &snapshots, client.InNamespace(*namespace))).To(Succeed())
			g.Expect(snapshots.Items).To(HaveLen(1))
			g.Expect(snapshots.Items[0].Name).To(Equal(pod.Name))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		fresh := replacePod(ctx, pod) // a pod that only the restarted daemons know
		inspected(ctx, fresh, func(g Gomega, s *v1alpha1.ContainerSnapshot) {
			g.Expect(s.Memory.Time.Before(&since)).To(BeFalse())
			g.Expect(s.Runtime).NotTo(BeNil())
			g.Expect(s.Runtime.Type).To(Equal(string(v1alpha1.RuntimeNodeJS)))
		})
		var agents corev1.PodList
		Expect(k8s.List(ctx, &agents, client.InNamespace(agentNamespace))).To(Succeed())
		Expect(agents.Items).NotTo(BeEmpty())
		for i := range agents.Items {
			for _, status := range agents.Items[i].Status.ContainerStatuses {
				Expect(status.RestartCount).To(BeZero(), "it ended by itself: %+v", status.LastTerminationState)
			}
		}
	}, NodeTimeout(6*later))
})
