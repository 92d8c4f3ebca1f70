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

// fillChild runs a child that allocates far more than the limit, prints its exit code, and keeps running.
const fillChild = `sleep 1; python3 -c 'x = b"x" * (300 << 20)'; echo child ended with $?; exec sleep 86400`

// TestGroupKill checks that the kernel kills the whole container for a child above the limit, and that only the pod's
// status shows the kill exactly once.
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
	n.Expect(events).To(HaveKeyWithValue("oom_group_kill", 1), "one container was killed: %v", events)
	n.Expect(events["oom_kill"]).To(BeNumerically(">", 1), "counts both processes, the shell and its child: %v", events)
	n.Expect(n.kernelKills(pod)).To(Equal(1), "the kernel's log")

	n.Eventually(func() map[string]float64 { return n.metric("container_oom_events_total", pod.Name) }).
		Should(HaveKey("app"), "the series of the running container")
	var counted float64
	for _, value := range n.metric("container_oom_events_total", pod.Name) {
		counted += value
	}
	n.Expect(counted).To(BeZero(), "the kubelet's counter must not count group kills, or memfit counts them twice")
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

// TestChildKill checks that with singleProcessOOMKill the container survives its child, and that neither status nor
// Events show the kill.
func TestChildKill(t *testing.T) {
	n := newNode(t, "NODE_WITH=single-process-oom-kill", func(k labnode.Kubelet) bool { return k.SingleProcessOOMKill })
	pod := n.start(newPod("child", "64Mi", []string{"sh", "-c", fillChild}))
	n.Eventually(func() string { return n.logs(pod.Name) }).Should(ContainSubstring("child ended with 137"))
	n.Eventually(func() float64 { return n.metric("container_oom_events_total", pod.Name)["app"] }).
		Should(BeEquivalentTo(1), "only the kubelet's counter shows the kill")

	s := n.status(pod.Name)
	n.Expect(s.RestartCount).To(BeZero())
	n.Expect(s.State.Running).NotTo(BeNil())
	n.Expect(s.LastTerminationState.Terminated).To(BeNil())
	warnings, err := n.clients.CoreV1().Events(n.namespace).List(t.Context(), metav1.ListOptions{
		FieldSelector: "type=Warning,involvedObject.name=" + pod.Name,
	})
	n.Expect(err).NotTo(HaveOccurred())
	n.Expect(warnings.Items).To(BeEmpty())
	events := n.counters(n.containerCgroup(pod) + "/memory.events")
	n.Expect(events).To(HaveKeyWithValue("oom_kill", 1), "%v", events)
	n.Expect(events).To(HaveKeyWithValue("oom_group_kill", 0), "%v", events)
	n.Expect(n.kernelKills(pod)).To(Equal(1), "the kernel's log")
}
