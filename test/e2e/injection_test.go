// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
)

// goLimit is GOMEMLIMIT for a limit of 128Mi: 90 % of it, in bytes.
const goLimit = "120795955"

var _ = Describe("opting in", func() {
	namespace := inNamespace()
	goProfile := v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo}}

	DescribeTable("in each of the four ways gives the Go process its limit",
		func(ctx SpecContext, spec v1alpha1.MemoryProfileSpec, onNamespace bool, change func(*appsv1.Deployment)) {
			Expect(k8s.Create(ctx, profile(*namespace, spec))).To(Succeed())
			if onNamespace {
				patch := []byte(`{"metadata":{"annotations":{"memfit.dev/profile":"p"}}}`)
				_, err := clientset.CoreV1().Namespaces().Patch(
					ctx, *namespace, "application/merge-patch+json", patch, metav1.PatchOptions{},
				)
				Expect(err).NotTo(HaveOccurred())
			}
			waitUntilKnown(ctx, *namespace)
			Expect(k8s.Create(ctx, workload(*namespace, goImage, "128Mi", nil, change))).To(Succeed())
			pod := runningPod(ctx, *namespace)
			Expect(env(pod)).To(HaveKeyWithValue("GOMEMLIMIT", goLimit))
			Expect(pod.Annotations).To(HaveKey(v1alpha1.InjectedAnnotation))
		},
		Entry("the annotation on the workload", goProfile, false, annotated),
		Entry("the annotation on the pod template", goProfile, false, func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{v1alpha1.ProfileAnnotation: profileName}
		}),
		Entry("the annotation on the namespace", goProfile, true, nil),
		Entry("the profile's selector", v1alpha1.MemoryProfileSpec{
			Runtime:  v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		}, false, nil),
	)

	It("is disabled by memfit.dev/inject: false, whatever selects the pod", func(ctx SpecContext) {
		spec := goProfile
		spec.Selector = &metav1.LabelSelector{}
		Expect(k8s.Create(ctx, profile(*namespace, spec))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "128Mi", nil, func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{v1alpha1.InjectAnnotation: "false"}
		}))).To(Succeed())
		Expect(env(runningPod(ctx, *namespace))).NotTo(HaveKey("GOMEMLIMIT"))
	})
})

var _ = Describe("inside the container", func() {
	namespace := inNamespace()

	start := func(
		ctx SpecContext, spec v1alpha1.MemoryProfileSpec, image, limit string, command []string,
		change func(*corev1.Container),
	) *corev1.Pod {
		GinkgoHelper()
		Expect(k8s.Create(ctx, profile(*namespace, spec))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, image, limit, command, func(d *appsv1.Deployment) {
			annotated(d)
			if change != nil {
				change(&d.Spec.Template.Spec.Containers[0])
			}
		}))).To(Succeed())
		return runningPod(ctx, *namespace)
	}
	saysHeapLimit := []string{"node", "-e", `const v8 = require("v8");
console.log("heap", v8.getHeapStatistics().heap_size_limit / 1048576, "rss", process.memoryUsage().rss > 0); setInterval(() => {}, 1000)`}

	It("Node.js has the old space derived from the limit, where it would have taken 259 MiB of 256",
		func(ctx SpecContext) {
			pod := start(
				ctx, v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS, Version: "20"}},
				nodeImage, "256Mi", saysHeapLimit, nil,
			)
			// old space of 0.75 x 256 - 3 x 1 = 189 MiB, plus three semi-spaces of 1 MiB
			Eventually(logs).WithContext(ctx).WithArguments(pod).Should(ContainSubstring("heap 192 rss true"))
		})

	It("Node.js keeps what the user asked for", func(ctx SpecContext) {
		pod := start(ctx, v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS}}, nodeImage,
			"256Mi", saysHeapLimit,
			func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "NODE_OPTIONS", Value: "--max-old-space-size=100 --no-warnings"}}
			})
		Eventually(logs).WithContext(ctx).WithArguments(pod).Should(ContainSubstring("heap 103 rss true"))
		Expect(env(pod)).To(HaveKeyWithValue("NODE_OPTIONS", "--max-old-space-size=100 --no-warnings"))
	})

	It("the JVM starts with its flags and trims", func(ctx SpecContext) {
		pod := start(ctx, v1alpha1.MemoryProfileSpec{
			Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM, Version: "17"},
		}, jdkImage, "512Mi",
			[]string{"java", "-XX:+PrintFlagsFinal", "-version"}, nil)
		Eventually(logs).WithContext(ctx).WithArguments(pod).Should(MatchRegexp(`TrimNativeHeapInterval\s+= 60000`))
	})

	It("Go reports the limit and the share it was given", func(ctx SpecContext) {
		share := int32(80)
		pod := start(ctx, v1alpha1.MemoryProfileSpec{
			Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo}, Tuning: v1alpha1.TuningSpec{HeapPercent: &share},
		}, goImage, "128Mi", nil, nil)
		Eventually(func() (string, error) { return getFrom(ctx, pod, "/stats") }).WithContext(ctx).
			Should(ContainSubstring(`"goMemLimit":107374182`)) // 80 % of 128Mi, from runtime/debug
	})
})

var _ = Describe("an invalid MemoryProfile", func() {
	namespace := inNamespace()

	DescribeTable("is refused with a message that names the fix",
		func(ctx SpecContext, spec, want string) {
			bad := &unstructured.Unstructured{}
			Expect(
				yaml.Unmarshal(
					[]byte("{apiVersion: memfit.dev/v1alpha1, kind: MemoryProfile, metadata: {name: bad}, spec: "+spec+"}"), bad,
				),
			).To(Succeed())
			bad.SetNamespace(*namespace)
			Expect(k8s.Create(ctx, bad)).To(MatchError(ContainSubstring(want)))
		},
		Entry("two heap sizes", "{tuning: {heapPercent: 60, heapLimit: 256Mi}}", "keep one of them"),
		Entry("min above max", "{sizing: {limit: {min: 2Gi, max: 1Gi}}}", "min must not be above max"),
		Entry("a size without a unit", "{tuning: {heapLimit: 256}}", "for example 256Mi"),
		Entry(
			"a variant of the wrong runtime", "{runtime: {type: Go, variant: OpenJ9}}", "variant is only known for type JVM",
		),
		Entry("an unknown runtime", "{runtime: {type: Perl}}", "supported values"),
		Entry(
			"a selector nobody can match", "{selector: {matchExpressions: [{key: app, operator: Is, values: [a]}]}}",
			"matchExpressions",
		),
	)
})
