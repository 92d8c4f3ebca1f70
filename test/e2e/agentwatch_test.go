// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && agent

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

// runAtTierWatch runs the agent as config/overlays/agent-watch defines it, with its current image, until the spec ends.
func runAtTierWatch(ctx context.Context) {
	GinkgoHelper()
	d := &appsv1.DaemonSet{}
	key := client.ObjectKey{Namespace: agentNamespace, Name: "memfit-agent"}
	Expect(k8s.Get(ctx, key, d)).To(Succeed())
	set := func(ctx context.Context, template corev1.PodTemplateSpec) {
		GinkgoHelper()
		Eventually(func(g Gomega) { // retries on conflicts with status writes
			g.Expect(k8s.Get(ctx, key, d)).To(Succeed())
			d.Spec.Template = template
			g.Expect(k8s.Update(ctx, d)).To(Succeed())
		}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
		wanted := d.Generation
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, key, d)).To(Succeed())
			g.Expect(d.Status.ObservedGeneration).To(BeNumerically(">=", wanted))
			g.Expect([]int32{d.Status.UpdatedNumberScheduled, d.Status.NumberAvailable}).
				To(Equal([]int32{d.Status.DesiredNumberScheduled, d.Status.DesiredNumberScheduled}))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
	}
	before := *d.Spec.Template.DeepCopy()
	var watch appsv1.DaemonSet
	for _, o := range buildManifests(ctx, "config/overlays/agent-watch", "") {
		if o.GetKind() == "DaemonSet" {
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &watch)).To(Succeed())
		}
	}
	Expect(watch.Spec.Template.Spec.Containers).To(HaveLen(1))
	has := &before.Spec.Containers[0]
	c := &watch.Spec.Template.Spec.Containers[0]
	c.Image, c.ImagePullPolicy = has.Image, has.ImagePullPolicy
	DeferCleanup(func(ctx context.Context) { set(ctx, before) })
	set(ctx, watch.Spec.Template)
}

// agentRights returns the user and the effective capabilities of each agent process at tier Watch on this machine.
func agentRights() (of []string) {
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	Expect(err).NotTo(HaveOccurred())
	for _, path := range commands {
		command, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(command, []byte("/agent\x00--tier=watch\x00")) {
			continue // another process, or an ended one
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(path), "status"))
		Expect(err).NotTo(HaveOccurred())
		var uid, effective string
		for line := range strings.Lines(string(status)) {
			switch fields := strings.Fields(line); {
			case strings.HasPrefix(line, "Uid:"):
				uid = fields[2]
			case strings.HasPrefix(line, "CapEff:"):
				effective = fields[1]
			}
		}
		of = append(of, fmt.Sprintf("uid %s, capabilities %s", uid, effective))
	}
	return of
}

var _ = Describe("an agent at tier Watch", Label("agent"), func() {
	namespace := inNamespace()

	It("explains kills without reading the memory of a process, for which it has no right", func(ctx SpecContext) {
		runAtTierWatch(ctx)
		if os.Getenv("LAB_MODE") == "lab" { // the lab's processes run on this machine
			Expect(agentRights()).To(HaveExactElements("uid 65532, capabilities 0000000000000000"))
		}
		recommend := v1alpha1.MemoryProfileSpec{Sizing: v1alpha1.SizingSpec{Mode: v1alpha1.SizingRecommend}}
		Expect(k8s.Create(ctx, profile(*namespace, recommend))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, nodeImage, "160Mi", nil, all(diesTimes(1), func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{
				v1alpha1.MapAnnotation: "true", v1alpha1.InspectAnnotation: "now", // requests have no effect at tier Watch
			}
		})))).To(Succeed())
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rec.Status.RecentOOMKills).NotTo(BeEmpty())
			kill := rec.Status.RecentOOMKills[0]
			g.Expect(kill.Summary).To(And(ContainSubstring("were in use"), ContainSubstring(`"node"`)))
			g.Expect(kill.Summary).NotTo(ContainSubstring("filled by"))
			g.Expect(kill.Limit.String()).To(Equal("160Mi"))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())

		pod := runningPod(ctx, *namespace)
		var s v1alpha1.MemorySnapshot
		Eventually(func(g Gomega) { // long enough after the restart that tier See would have inspected the container
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(pod), &s)).To(Succeed())
			g.Expect(s.Status.Containers).To(HaveLen(1))
			g.Expect(s.Status.Containers[0].LastKill).NotTo(BeNil())
			age := s.Status.ObservedTime.Sub(s.Status.Containers[0].LastKill.Time.Time)
			g.Expect(age).To(BeNumerically(">", soon/3))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Expect(s.Status.Tier).To(Equal(v1alpha1.AgentWatch))
		c := &s.Status.Containers[0]
		Expect(c.Inspection).To(Equal(v1alpha1.InspectionNotEnabled))
		Expect(c.Memory).To(BeNil())
		Expect(c.Runtime).To(BeNil())
		Expect(c.Map).To(BeNil())
		Expect(c.LastKill.Memory).To(BeNil())
		Expect(c.LastKill.ContainerLimit.String()).To(Equal("160Mi"))
		Expect(len(c.LastKill.Series)).To(BeNumerically(">", 2))
		Expect(c.LastKill.Processes).NotTo(BeEmpty())
		page := strings.Join(strings.Fields(plugin(ctx, "why", "pod/"+pod.Name, "-n", *namespace)), " ")
		Expect(page).To(And(
			ContainSubstring(c.LastKill.Summary), ContainSubstring("the agent runs at tier Watch"),
		))
	}, NodeTimeout(4*later))
})
