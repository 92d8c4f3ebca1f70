// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cgroup2

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/test/labnode"
)

// fillChild has a shell start a child that takes far more than the limit, say how that ended, and live on.
const fillChild = `sleep 1; python3 -c 'x = b"x" * (300 << 20)'; echo child ended with $?; exec sleep 86400`

// TestGroupKill: a child over the limit takes its whole container. The pod's status is the one place that tells it
// once.
func TestGroupKill(t *testing.T) {
	n := newNode(t, "group kills, as is usual", func(k labnode.Kubelet) bool { return !k.SingleProcessOOMKill })
	once := `[ -e /state/once ] && exec sleep 86400; touch /state/once; ` + fillChild
	pod := n.start(newPod("group", "64Mi", []string{"sh", "-c", once}))
	n.Eventually(func(g Gomega) {
		s := n.status(pod.Name)
		g.Expect(s.RestartCount).To(BeEquivalentTo(1))
		g.Expect(s.State.Running).NotTo(BeNil())
		g.Expect(s.LastTerminationState.Terminated).NotTo(BeNil())
		g.Expect(s.LastTerminationState.Terminated.Reason).To(Equal("OOMKilled"))
		g.Expect(s.LastTerminationState.Terminated.ExitCode).To(BeEquivalentTo(137))
	}).Should(Succeed())
	n.Expect(n.read(n.containerCgroup(pod) + "/memory.oom.group")).To(Equal("1\n"))

	events := n.counters(podCgroup(pod) + "/memory.events")
	n.Expect(events).To(HaveKeyWithValue("oom_group_kill", 1), "one container died: %v", events)
	n.Expect(events["oom_kill"]).To(BeNumerically(">", 1), "counts processes, the shell and its child: %v", events)
	n.Expect(n.kernelKills(pod)).To(Equal(1), "the kernel's log")

	n.Eventually(func() map[string]float64 { return n.metric("container_oom_events_total", pod.Name) }).
		Should(HaveKey("app"), "the series of the container that runs now")
	var told float64
	for _, value := range n.metric("container_oom_events_total", pod.Name) {
		told += value
	}
	n.Expect(told).To(BeZero(), "the kubelet's counter does not see group kills. If it does now, memfit may count twice")
}

// kernelKills counts the kernel's OOM kills below the pod's cgroup.
func (n *node) kernelKills(pod *corev1.Pod) int {
	n.t.Helper()
	kills := 0
	for line := range strings.Lines(n.read("kernel-log")) {
		if strings.Contains(line, "oom-kill:constraint=") && strings.Contains(line, "pod"+string(pod.UID)) {
			kills++
		}
	}
	return kills
}

// TestChildKill: with singleProcessOOMKill the container survives its child, and neither status nor events tell.
func TestChildKill(t *testing.T) {
	n := newNode(t, "NODE_WITH=single-process-oom-kill", func(k labnode.Kubelet) bool { return k.SingleProcessOOMKill })
	pod := n.start(newPod("child", "64Mi", []string{"sh", "-c", fillChild}))
	n.Eventually(func() string { return n.logs(pod.Name) }).Should(ContainSubstring("child ended with 137"))
	n.Eventually(func() float64 { return n.metric("container_oom_events_total", pod.Name)["app"] }).
		Should(BeEquivalentTo(1), "the kubelet's counter, the one place that tells")

	s := n.status(pod.Name)
	n.Expect(s.RestartCount).To(BeZero())
	n.Expect(s.State.Running).NotTo(BeNil())
	n.Expect(s.LastTerminationState.Terminated).To(BeNil())
	told, err := n.clients.CoreV1().Events(n.namespace).List(t.Context(), metav1.ListOptions{
		FieldSelector: "type=Warning,involvedObject.name=" + pod.Name,
	})
	n.Expect(err).NotTo(HaveOccurred())
	n.Expect(told.Items).To(BeEmpty())
	events := n.counters(n.containerCgroup(pod) + "/memory.events")
	n.Expect(events).To(HaveKeyWithValue("oom_kill", 1), "%v", events)
	n.Expect(events).To(HaveKeyWithValue("oom_group_kill", 0), "%v", events)
	n.Expect(n.kernelKills(pod)).To(Equal(1), "the kernel's log")
}
