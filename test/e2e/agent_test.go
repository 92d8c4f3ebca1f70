// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && agent

package e2e

import (
	"context"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
)

// Specs of the agent: make test-agent.

const (
	agentNamespace = "memfit-agent"
	rubyImage      = "memfit.test/ruby:3.1"
	// idleJava is a shell command; the program java compiles the source.
	idleJava = `echo 'class Idle { public static void main(String[] a) throws Exception { Thread.sleep(86400000L); } }' \
> /tmp/Idle.java && exec java /tmp/Idle.java`
)

// killAgents deletes the agents without a grace period.
func killAgents(ctx context.Context) {
	GinkgoHelper()
	var list corev1.PodList
	Expect(k8s.List(ctx, &list, client.InNamespace(agentNamespace))).To(Succeed())
	Expect(list.Items).NotTo(BeEmpty())
	for i := range list.Items {
		Expect(k8s.Delete(ctx, &list.Items[i], client.GracePeriodSeconds(0))).To(Succeed())
	}
}

// podEventMessages returns the messages of the Events about the namespace's pods with the reason.
func podEventMessages(ctx context.Context, namespace, reason string) (all []string) {
	var events corev1.EventList
	Expect(k8s.List(ctx, &events, client.InNamespace(namespace))).To(Succeed())
	for i := range events.Items {
		if e := &events.Items[i]; e.Reason == reason && e.InvolvedObject.Kind == "Pod" {
			all = append(all, e.Message)
		}
	}
	return all
}

// snapshotOf returns the agent's snapshot of the pod's first container, or nil if none exists yet.
func snapshotOf(ctx context.Context, pod *corev1.Pod) *v1alpha1.ContainerSnapshot {
	var s v1alpha1.MemorySnapshot
	if err := k8s.Get(ctx, client.ObjectKeyFromObject(pod), &s); err != nil || len(s.Status.Containers) == 0 {
		return nil
	}
	return &s.Status.Containers[0]
}

var _ = Describe("the agent", Label("agent"), func() {
	namespace := inNamespace()
	recommend := v1alpha1.MemoryProfileSpec{Sizing: v1alpha1.SizingSpec{Mode: v1alpha1.SizingRecommend}}

	It("reports why a container was killed, in record and Event, and survives its own kill", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, profile(*namespace, recommend))).To(Succeed())
		Expect(k8s.Create(ctx, workload(*namespace, nodeImage, "160Mi", nil, diesTimes(1)))).To(Succeed())
		var summary string
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.RecentOOMKills).NotTo(BeEmpty())
			kill := rec.Status.RecentOOMKills[0]
			g.Expect(kill.Summary).To(And(ContainSubstring("were in use"), ContainSubstring(`"node"`)))
			g.Expect(kill.Limit.String()).To(Equal("160Mi"))
			summary = kill.Summary
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		_, account, _ := strings.Cut(summary, `"node"`) // the part that only the agent adds
		Eventually(func() []string {
			return slices.Concat(
				podEventMessages(ctx, *namespace, v1alpha1.EventOOMKilled),
				podEventMessages(ctx, *namespace, v1alpha1.EventOOMKillExplained),
			)
		}).WithContext(ctx).Should(ContainElement(ContainSubstring(account)))

		pod := runningPod(ctx, *namespace)
		before := snapshotOf(ctx, pod)
		Expect(before).NotTo(BeNil())
		Expect(before.LastKill).NotTo(BeNil())
		page := strings.Join(strings.Fields(plugin(ctx, "why", "pod/"+pod.Name, "-n", *namespace)), " ")
		Expect(page).To(And(
			ContainSubstring("OOM kill "+format.Time(before.LastKill.Time.Time)+": OOM kill of the main process (node, "),
			ContainSubstring(" at the limit of 160Mi of the container"),
			ContainSubstring("Before "), ContainSubstring("What memfit did"),
		))
		killAgents(ctx)
		Eventually(func(g Gomega) { // the new agent keeps the previous agent's records
			var s v1alpha1.MemorySnapshot
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(pod), &s)).To(Succeed())
			g.Expect(s.Status.Containers[0].OOMKills).To(BeZero())
			g.Expect(s.Status.Containers[0].LastKill).NotTo(BeNil())
			g.Expect(s.Status.Containers[0].LastKill.Summary).To(Equal(before.LastKill.Summary))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		rec, err := recommendation(ctx, *namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(rec.Status.OOMKills).To(Equal(int64(1)), "the kill was counted twice")
	}, NodeTimeout(2*later))

	It("reports the kill of a child process", func(ctx SpecContext) {
		if os.Getenv("E2E_NODE") != "" {
			Skip("with cgroup v2 the kernel kills the container with its child (memory.oom.group), by the kubelet's default")
		}
		Expect(k8s.Create(ctx, profile(*namespace, recommend))).To(Succeed())
		Expect(k8s.Create(ctx, workload(*namespace, nodeImage, "96Mi", nil, losesChildren(1)))).To(Succeed())
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.RecentOOMKills).NotTo(BeEmpty())
			g.Expect(rec.Status.RecentOOMKills[0].Kind).To(Equal("ChildProcess"))
			g.Expect(rec.Status.RecentOOMKills[0].Summary).To(ContainSubstring("in use"))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Consistently(func(g Gomega) { // the kubelet's counter rises later, because of the same kill
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.OOMKills).To(Equal(int64(1)))
		}).WithContext(ctx).WithTimeout(soon / 2).Should(Succeed())
	}, NodeTimeout(2*later))

	It("detects five undeclared runtimes for one profile with runtime Auto", func(ctx SpecContext) {
		labels := map[string]string{"e2e-agent": *namespace}
		auto := &v1alpha1.ClusterMemoryProfile{
			ObjectMeta: metav1.ObjectMeta{Name: *namespace},
			Spec: v1alpha1.ClusterMemoryProfileSpec{MemoryProfileSpec: v1alpha1.MemoryProfileSpec{
				Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeAuto}, Sizing: recommend.Sizing,
				Selector: &metav1.LabelSelector{MatchLabels: labels},
			}},
		}
		Expect(k8s.Create(ctx, auto)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, auto)).To(Succeed()) })
		mixed := []struct {
			name, image, script string // the pod's spec does not show what the script runs
			runs                v1alpha1.RuntimeType
			env, value          string // as docs/guide/runtimes.md documents for 256Mi
		}{
			{
				"node", nodeImage, "exec node -e 'setInterval(() => {}, 1000)'", v1alpha1.RuntimeNodeJS, "NODE_OPTIONS",
				"--max-old-space-size=189",
			},
			{
				"java", jdkImage, idleJava, v1alpha1.RuntimeJVM, "JAVA_TOOL_OPTIONS", "-XX:+IgnoreUnrecognizedVMOptions " +
					"-XX:+UnlockExperimentalVMOptions -XX:TrimNativeHeapInterval=60000",
			},
			{"python", pythonImage, "exec python3 -c 'import time; time.sleep(86400)'", v1alpha1.RuntimePython, "", ""},
			{"ruby", rubyImage, "exec ruby -e sleep", v1alpha1.RuntimeRuby, "MALLOC_ARENA_MAX", "2"},
			{"go", goImage, "", v1alpha1.RuntimeGo, "GOMEMLIMIT", "241591910"}, // 90 % in bytes
		}
		for _, m := range mixed {
			var command []string
			if m.script != "" {
				command = []string{"sh", "-c", m.script}
			}
			d := workload(*namespace, m.image, "256Mi", command, func(d *appsv1.Deployment) {
				d.Name, d.Labels = m.name, map[string]string{"app": m.name}
				d.Spec.Selector.MatchLabels = map[string]string{"app": m.name}
				d.Spec.Template.Labels = map[string]string{"app": m.name, "e2e-agent": *namespace}
			})
			Expect(k8s.Create(ctx, d)).To(Succeed())
		}
		for _, m := range mixed {
			By(m.name)
			Eventually(func(g Gomega) {
				var rec v1alpha1.MemoryRecommendation
				key := client.ObjectKey{Namespace: *namespace, Name: "deployment-" + m.name}
				g.Expect(k8s.Get(ctx, key, &rec)).To(Succeed())
				g.Expect(rec.Status.Containers).To(HaveLen(1))
				g.Expect(rec.Status.Containers[0].FoundRuntime).NotTo(BeNil())
				g.Expect(rec.Status.Containers[0].FoundRuntime.Type).To(Equal(m.runs))
			}).WithContext(ctx).WithTimeout(later).Should(Succeed())
			var list corev1.PodList
			of := client.MatchingLabels{"app": m.name}
			Expect(k8s.List(ctx, &list, client.InNamespace(*namespace), of)).To(Succeed())
			Expect(list.Items).To(HaveLen(1))
			old := list.Items[0]
			Expect(old.Annotations[v1alpha1.InjectedAnnotation]).To(ContainSubstring("the command does not show it"))
			Expect(k8s.Delete(ctx, &old)).To(Succeed())
			Eventually(func(g Gomega) {
				g.Expect(k8s.List(ctx, &list, client.InNamespace(*namespace), of)).To(Succeed())
				g.Expect(list.Items).NotTo(BeEmpty())
				next := &list.Items[0]
				g.Expect(next.UID).NotTo(Equal(old.UID))
				g.Expect(next.Annotations[v1alpha1.InjectedAnnotation]).To(ContainSubstring("found in running replicas"))
				if m.env != "" { // for Python, memfit sets nothing without arenaMax
					g.Expect(env(next)).To(HaveKeyWithValue(m.env, m.value))
				}
			}).WithContext(ctx).Should(Succeed())
		}
	}, NodeTimeout(3*later))
})
