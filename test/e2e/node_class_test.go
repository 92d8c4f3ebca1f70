// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/test/labnode"
)

// sizeOfNode is the node label that the profile of these specs uses as node class.
const sizeOfNode = "e2e.memfit.dev/size"

// twoSizes labels the lab's second node as large and the others as small, until the spec ends, and returns the large
// node's name. It skips the spec if the cluster has only one node.
func twoSizes(ctx context.Context) (large string) {
	GinkgoHelper()
	var nodes corev1.NodeList
	Expect(k8s.List(ctx, &nodes)).To(Succeed())
	sizes := map[string]string{}
	for i := range nodes.Items {
		sizes[nodes.Items[i].Name] = "small"
		if nodes.Items[i].Labels[labnode.Label] != "" {
			large = nodes.Items[i].Name
			sizes[large] = "large"
		}
	}
	if large == "" || len(sizes) < 2 {
		Skip("needs two nodes: make test-e2e NODE=cgroup2 E2E_FLAGS='-v -ginkgo.label-filter=nodes'")
	}
	label := func(ctx context.Context, node, value string) { // value is JSON
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(
			nil, `{"metadata":{"labels":{%q:%s}}}`, sizeOfNode, value,
		))
		Expect(k8s.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, patch)).To(Succeed())
	}
	for node, size := range sizes {
		label(ctx, node, fmt.Sprintf("%q", size))
		DeferCleanup(func(ctx context.Context) { label(ctx, node, "null") })
	}
	return large
}

// logDaemon returns a DaemonSet that needs 85Mi on the large node and 5Mi on the others.
func logDaemon(namespace, large string) *appsv1.DaemonSet {
	labels, grace := map[string]string{"app": "web"}, int64(1)
	script := fmt.Sprintf(
		"import os, time; x = bytearray((85 if os.environ['NODE'] == %q else 5) << 20); time.sleep(86400)", large,
	)
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "log"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: labels, Annotations: map[string]string{v1alpha1.ProfileAnnotation: profileName},
				},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &grace,
					Tolerations:                   []corev1.Toleration{{Key: labnode.Label, Operator: corev1.TolerationOpExists}},
					Containers: []corev1.Container{{
						Name: "app", Image: pythonImage, ImagePullPolicy: corev1.PullNever,
						Command: []string{"python3", "-c", script},
						Env: []corev1.EnvVar{{Name: "NODE", ValueFrom: &corev1.EnvVarSource{
							FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"},
						}}},
						Resources: corev1.ResourceRequirements{
							Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")},
							Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
						},
					}},
				},
			},
		},
	}
}

// limitsByNode returns the memory limits of the namespace's scheduled pods, by node.
func limitsByNode(ctx context.Context, namespace string) map[string]string {
	limits := map[string]string{}
	for _, pod := range pods(ctx, namespace) {
		if pod.DeletionTimestamp == nil && pod.Spec.NodeName != "" {
			limits[pod.Spec.NodeName] = pod.Spec.Containers[0].Resources.Limits.Memory().String()
		}
	}
	return limits
}

var _ = Describe("pods of a DaemonSet on nodes of two classes", Label("nodes"), func() {
	namespace := inNamespace()

	It("get a limit for each class", func(ctx SpecContext) {
		large := twoSizes(ctx)
		Expect(k8s.Create(ctx, profile(*namespace, v1alpha1.MemoryProfileSpec{
			Runtime: native, Sizing: v1alpha1.SizingSpec{Mode: v1alpha1.SizingOnCreate},
			Identity: &v1alpha1.IdentitySpec{NodeClass: sizeOfNode},
		}))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		daemons := logDaemon(*namespace, large)
		Expect(k8s.Create(ctx, daemons)).To(Succeed())

		By("waiting for the kill on the large node")
		Eventually(func(g Gomega) {
			g.Expect(recommendationOf(ctx, *namespace, "daemonset/log [large]").Status.OOMKills).To(BeNumerically(">=", 1))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Expect(recommendationOf(ctx, *namespace, "daemonset/log [small]").Status.OOMKills).To(BeZero())

		By("replacing all pods: the webhook derives each pod's node from its affinity")
		Expect(k8s.DeleteAllOf(
			ctx, &corev1.Pod{}, client.InNamespace(*namespace), client.MatchingLabels{"app": "web"},
		)).To(Succeed())
		Eventually(func(g Gomega) {
			limits := limitsByNode(ctx, *namespace)
			g.Expect(len(limits)).To(BeNumerically(">=", 2))
			for node, limit := range limits {
				if node == large {
					raised := resource.MustParse(limit)
					g.Expect(raised.Value()).To(BeNumerically(">=", 100<<20))
				} else {
					g.Expect(limit).To(Equal("64Mi"), node)
				}
			}
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
	}, SpecTimeout(later*3))
})
