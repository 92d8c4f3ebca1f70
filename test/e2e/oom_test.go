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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

// diesTimes runs a container that is OOM-killed n times and then keeps running: it counts its starts in a volume.
func diesTimes(n int) func(*appsv1.Deployment) {
	script := fmt.Sprintf(`const fs = require("fs"), f = "/state/starts";
const starts = fs.existsSync(f) ? Number(fs.readFileSync(f)) + 1 : 1;
fs.writeFileSync(f, String(starts));
const held = [];
setInterval(() => { if (starts <= %d) held.push(Buffer.alloc(16 << 20, 1)); }, 100);`, n)
	return func(d *appsv1.Deployment) {
		annotated(d)
		pod := &d.Spec.Template.Spec
		pod.Volumes = []corev1.Volume{
			{Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}
		pod.Containers[0].Command = []string{"node", "-e", script}
		pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "state", MountPath: "/state"}}
	}
}

// diesFast runs a container that is OOM-killed within seconds n times and then sleeps.
func diesFast(n int) func(*appsv1.Deployment) {
	script := fmt.Sprintf(`n=$(cat /state/n 2>/dev/null || echo 0); n=$((n+1)); echo $n > /state/n
if [ $n -le %d ]; then sleep 1; exec dd if=/dev/zero of=/dev/null bs=128M; fi; exec sleep 86400`, n)
	return func(d *appsv1.Deployment) {
		pod := &d.Spec.Template.Spec
		pod.Volumes = []corev1.Volume{
			{Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}
		pod.Containers[0].Command = []string{"sh", "-c", script}
		pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "state", MountPath: "/state"}}
	}
}

// losesChildren runs a shell of which the kernel kills n children, one after the other. Some minutes later the shell
// exits once by itself, which containerd labels OOMKilled anyway.
func losesChildren(n int) func(*appsv1.Deployment) {
	script := fmt.Sprintf(`[ -e /state/done ] && exec sleep 86400
i=0; while [ $i -lt %d ]; do sleep 3; dd if=/dev/zero of=/dev/null bs=256M count=1; i=$((i+1)); done
sleep 150; touch /state/done; exit 3`, n)
	return func(d *appsv1.Deployment) {
		annotated(d)
		pod := &d.Spec.Template.Spec
		pod.Volumes = []corev1.Volume{
			{Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}
		pod.Containers[0].Command = []string{"sh", "-c", script}
		pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "state", MountPath: "/state"}}
	}
}

// expectChildKillsCounted checks that memfit counts killed children while their container runs, and does not count the
// container's later exit, although containerd labels it OOMKilled.
func expectChildKillsCounted(ctx context.Context, namespace string, there func(*appsv1.Deployment)) {
	GinkgoHelper()
	const children = 2
	Expect(k8s.Create(ctx, profile(namespace, v1alpha1.MemoryProfileSpec{}))).To(Succeed())
	waitUntilKnown(ctx, namespace)
	Expect(k8s.Create(ctx, workload(namespace, goImage, "64Mi", nil, all(losesChildren(children), there)))).To(Succeed())

	counted := func(g Gomega) {
		rec, err := recommendation(ctx, namespace)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(rec.Status.OOMKills).To(BeEquivalentTo(children))
		g.Expect(rec.Status.RecentOOMKills).To(HaveLen(children))
		for _, kill := range rec.Status.RecentOOMKills {
			g.Expect(kill.Kind).To(Equal("ChildProcess"))
			g.Expect(kill.Limit.String()).To(Equal("64Mi"))
			g.Expect(kill.Summary).To(ContainSubstring("lost a child process"))
		}
	}
	Eventually(counted).WithContext(ctx).WithTimeout(later).Should(Succeed())
	Expect(totalRestarts(ctx, namespace)).To(BeZero(), "the container itself was killed")

	Eventually(
		func() int32 { return totalRestarts(ctx, namespace) },
	).WithContext(ctx).WithTimeout(later).Should(BeEquivalentTo(1))
	ended := pods(ctx, namespace)[0].Status.ContainerStatuses[0].LastTerminationState.Terminated
	Expect(ended.ExitCode).To(BeEquivalentTo(3))
	Expect(ended.Reason).To(Equal("OOMKilled"), "containerd keeps the label from a child's kill")
	Consistently(counted).WithContext(ctx).WithTimeout(soon / 4).Should(Succeed())
}

// totalRestarts returns the sum of the restart counts of the workload's pods.
func totalRestarts(ctx context.Context, namespace string) int32 {
	var all int32
	for _, pod := range pods(ctx, namespace) {
		all += restarts(&pod)
	}
	return all
}

func restarts(pod *corev1.Pod) int32 {
	if len(pod.Status.ContainerStatuses) == 0 {
		return 0
	}
	return pod.Status.ContainerStatuses[0].RestartCount
}

// ledgerWritten reports whether memfit's checkpoint has the workload's kill counters.
func ledgerWritten(ctx context.Context, namespace string) (bool, error) {
	var c v1alpha1.MemoryCheckpoint
	err := k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "deployment-web"}, &c)
	return err == nil && len(c.Status.Ledger) > 0, client.IgnoreNotFound(err)
}

// reportedKills returns the kills that memfit recorded and the kubelet's restart counts, for a failure message.
func reportedKills(ctx context.Context, namespace string, rec *v1alpha1.MemoryRecommendation) string {
	var text strings.Builder
	for _, pod := range pods(ctx, namespace) {
		fmt.Fprintf(&text, "\nkubelet: %s restarted %d times", pod.Name, restarts(&pod))
	}
	for _, kill := range rec.Status.RecentOOMKills {
		fmt.Fprintf(&text, "\nmemfit: %s %s %s %s", kill.Time.UTC().Format(time.TimeOnly), kill.Pod, kill.Kind, kill.Summary)
	}
	return text.String()
}

var _ = Describe("an OOM kill", func() {
	namespace := inNamespace()
	node := func(mode v1alpha1.SizingMode) v1alpha1.MemoryProfileSpec {
		return v1alpha1.MemoryProfileSpec{
			Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS, Version: "20"}, Sizing: v1alpha1.SizingSpec{Mode: mode},
		}
	}

	It("is counted, reported on pod and workload, answered with a size, and new pods get it", func(ctx SpecContext) {
		Expect(k8s.Create(ctx, profile(*namespace, node(v1alpha1.SizingOnCreate)))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
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
		Expect(kill.Limit.String()).To(Equal("96Mi"), "the limit at the kill")
		recommended := rec.Status.Containers[0].Recommended.Limit
		Expect(recommended.Cmp(resource.MustParse("96Mi"))).To(Equal(1), "a kill must raise the limit")
		Expect(condition(rec.Status.Conditions, v1alpha1.ConditionOOMObserved).Status).To(BeEquivalentTo("True"))

		for _, about := range []string{"Pod", "Deployment"} {
			Eventually(func(g Gomega) {
				var events corev1.EventList
				g.Expect(k8s.List(ctx, &events, client.InNamespace(*namespace))).To(Succeed())
				g.Expect(events.Items).To(ContainElement(And(
					HaveField("InvolvedObject.Kind", about), HaveField("Reason", ContainSubstring("OOM")), HaveField(
						"Message", ContainSubstring("96Mi"),
					))))
			}).WithContext(ctx).Should(Succeed(), "an event on the %s", about)
		}

		next := replacePod(ctx, runningPod(ctx, *namespace))
		Expect(limitOf(next)).To(Equal(recommended.String()))
	}, SpecTimeout(later*2))

	// Requires that the kernel kills a child alone: cgroup v1, as in the lab, or the kubelet's singleProcessOOMKill.
	It("of a child is counted while the container runs, and its later end is not a kill", func(ctx SpecContext) {
		expectChildKillsCounted(ctx, *namespace, annotated)
	}, SpecTimeout(later*3))

	It("is never lost and never counted twice: fifty, while memfit is killed again and again", func(ctx SpecContext) {
		const replicas, each = 10, 5
		const kills = replicas * each
		Expect(k8s.Create(ctx, profile(*namespace, v1alpha1.MemoryProfileSpec{}))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(
			k8s.Create(ctx, workload(*namespace, goImage, "32Mi", nil, replicated(replicas, diesFast(each)))),
		).To(Succeed())
		// Of the kills before memfit's first reading, only a pod's last is counted (docs/design/ledger.md).
		Eventually(ledgerWritten).WithContext(ctx).WithArguments(*namespace).Should(BeTrue())

		By("killing every memfit pod every few seconds until the last container was killed")
		crashes := 0
		for deadline := time.Now().Add(later); totalRestarts(ctx, *namespace) < kills; crashes++ {
			Expect(time.Now()).To(BeTemporally("<", deadline), "the containers are not killed")
			killManagers(ctx)
			time.Sleep(time.Duration(2+crashes%5*2) * time.Second) // sometimes before memfit serves again, sometimes after
		}
		GinkgoWriter.Println("memfit was killed", crashes, "times")
		Expect(crashes).To(BeNumerically(">=", 5))

		counted := func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.OOMKills).To(BeEquivalentTo(kills), "%s", reportedKills(ctx, *namespace, rec))
			g.Expect(rec.Status.RecentOOMKills).To(HaveLen(20), "the latest kills: %s", reportedKills(ctx, *namespace, rec))
		}
		Eventually(managersReady).WithContext(ctx).WithTimeout(later).Should(Equal(2))
		Eventually(counted).WithContext(ctx).WithTimeout(later).Should(Succeed())
		killedAndReplaced(ctx)
		Consistently(counted).WithContext(ctx).WithTimeout(soon / 4).Should(Succeed())
		Expect(totalRestarts(ctx, *namespace)).To(BeEquivalentTo(kills), "the kubelet's restart counts differ")
	}, SpecTimeout(later*3))
})
