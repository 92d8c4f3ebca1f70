// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cgroup2

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/test/labnode"
)

const mebi = 1 << 20

// resize changes the limit of a pod in place.
func (n *node) resize(pod *corev1.Pod, limit string) {
	n.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"containers":[{"name":"app","resources":{"limits":{"memory":%q}}}]}}`, limit)
	_, err := n.clients.CoreV1().Pods(n.namespace).Patch(
		n.t.Context(), pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "resize",
	)
	n.Expect(err).NotTo(HaveOccurred())
}

// TestLoweringBelowUsage checks that the kubelet refuses a limit below usage including page cache, keeps the old limit,
// and applies a sufficient limit afterwards.
func TestLoweringBelowUsage(t *testing.T) {
	n := newNode(t, "any variant", func(labnode.Kubelet) bool { return true })
	const fill = `dd if=/dev/zero of=/state/f bs=1M count=150; sync; cat /state/f >/dev/null; echo filled
exec sleep 86400`
	pod := n.start(newPod("cache", "256Mi", []string{"sh", "-c", fill}))
	n.Eventually(func() string { return n.logs(pod.Name) }).Should(ContainSubstring("filled"))
	cgroup := n.containerCgroup(pod)
	stat := n.counters(cgroup + "/memory.stat")
	n.Expect(stat["file"]).To(BeNumerically(">", 100*mebi), "page cache")
	n.Expect(stat["anon"]).To(BeNumerically("<", 32*mebi), "below the new limit without page cache")

	n.resize(pod, "64Mi")
	n.Eventually(func(g Gomega) {
		g.Expect(n.pod(pod.Name).Status.Conditions).To(ContainElement(And(
			HaveField("Type", corev1.PodResizeInProgress), HaveField("Reason", corev1.PodReasonError),
		)))
	}).Should(Succeed())
	n.Expect(n.number(cgroup + "/memory.max")).To(BeEquivalentTo(256 * mebi))

	n.resize(pod, "320Mi")
	n.Eventually(func() string {
		if r := n.status(pod.Name).Resources; r != nil {
			return r.Limits.Memory().String()
		}
		return ""
	}).Should(Equal("320Mi"))
	n.Expect(n.number(cgroup + "/memory.max")).To(BeEquivalentTo(320 * mebi))
	n.Expect(n.status(pod.Name).RestartCount).To(BeZero())
}

// hold returns a command that allocates the MiB and keeps them.
func hold(mib int) []string {
	return []string{"python3", "-c", fmt.Sprintf("import time\nx = b'x' * (%d << 20)\nprint('held', flush=True)\n"+
		"time.sleep(86400)", mib)}
}

func burstable(pod *corev1.Pod, request string) *corev1.Pod {
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse(request)
	return pod
}

// TestMemoryHigh checks that MemoryQoS sets memory.high to the request plus 90 % of the difference to the limit, that a
// container above it stalls, and that the kubelet's summary shows the stall.
func TestMemoryHigh(t *testing.T) {
	n := newNode(t, "NODE_WITH=memory-qos", labnode.Kubelet.Throttles)
	pod := n.start(burstable(newPod("high", "128Mi", hold(123)), "64Mi"))
	cgroup := n.containerCgroup(pod)
	const page = 4096
	n.Expect(n.number(cgroup + "/memory.high")).To(BeEquivalentTo((64*mebi + 64*mebi*9/10) / page * page))
	n.Eventually(func() int { return n.counters(cgroup + "/memory.events")["high"] }).Should(BeNumerically(">", 0))
	// The kubelet's value, measured at intervals, lies between the kernel's values before and after.
	n.Eventually(func(g Gomega) {
		before := n.waitedFull(cgroup)
		g.Expect(before).To(BeNumerically(">", 100_000), "a tenth of a second")
		g.Eventually(func(g Gomega) {
			psi := n.summary(pod.Name).Memory.PSI
			g.Expect(psi).NotTo(BeNil())
			g.Expect(psi.Full.Total).To(And(BeNumerically(">=", before), BeNumerically("<=", n.waitedFull(cgroup))))
		}).Should(Succeed(), "in the kernel's microseconds")
	}).Should(Succeed())
}

// waitedFull returns how long all tasks of the cgroup waited for memory, in the kernel's microseconds.
func (n *node) waitedFull(cgroup string) (total int64) {
	n.t.Helper()
	for line := range strings.Lines(n.read(cgroup + "/memory.pressure")) {
		if strings.HasPrefix(line, "full ") {
			_, number, _ := strings.Cut(strings.TrimSpace(line), "total=")
			var err error
			total, err = strconv.ParseInt(number, 10, 64)
			n.Expect(err).NotTo(HaveOccurred(), line)
		}
	}
	return total
}

// TestSwap checks that with LimitedSwap a burstable container may use its share of the node's swap to exceed its limit,
// and that the kubelet's summary shows the swapped memory.
func TestSwap(t *testing.T) {
	n := newNode(t, "NODE_WITH=swap", labnode.Kubelet.Swaps)
	pod := n.start(burstable(newPod("swap", "128Mi", hold(135)), "64Mi"))
	n.Eventually(func() string { return n.logs(pod.Name) }).Should(ContainSubstring("held"))
	cgroup := n.containerCgroup(pod)
	most := n.number(cgroup + "/memory.swap.max")
	n.Expect(most).To(BeNumerically(">", 10*mebi))
	out := n.number(cgroup + "/memory.swap.current")
	n.Expect(out).To(And(BeNumerically(">", 5*mebi), BeNumerically("<=", most)))
	n.Eventually(func() int64 { return n.summary(pod.Name).Swap.SwapUsageBytes }).Should(BeNumerically(">", 5*mebi))
	n.Expect(n.status(pod.Name).RestartCount).To(BeZero())
}
