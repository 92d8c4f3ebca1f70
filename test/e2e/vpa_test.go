// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

// vpaManifests returns the CRDs, RBAC objects and Deployments of a VPA release, from VPA's Go module.
func vpaManifests(ctx context.Context) []unstructured.Unstructured {
	GinkgoHelper()
	dir, err := exec.CommandContext(
		ctx, "go", "-C", "../peers", "list", "-m", "-f", "{{.Dir}}", "k8s.io/autoscaler/vertical-pod-autoscaler",
	).Output()
	Expect(err).NotTo(HaveOccurred())
	var objects []unstructured.Unstructured
	for _, file := range []string{
		"vpa-v1-crd-gen", "vpa-rbac", "admission-controller-service", "admission-controller-deployment", "updater-deployment",
	} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "deploy", file+".yaml"))
		Expect(err).NotTo(HaveOccurred())
		for _, o := range decodeManifests(text) {
			if o.GetKind() == "Deployment" {
				changeContainer(&o, vpaProgram(o.GetName()))
			}
			objects = append(objects, o)
		}
	}
	return objects
}

// vpaProgram returns the changes to a release's container: an image that is on the node, a short interval for the
// updater, and no webhook registration, because registerWebhook chooses the webhook's position.
func vpaProgram(name string) func(map[string]any) {
	args := []any{"--v=2", "--register-webhook=false"}
	if name == "vpa-updater" {
		args = []any{"--v=2", "--updater-interval=5s", "--min-replicas=1"}
	}
	return func(c map[string]any) {
		c["image"], c["imagePullPolicy"], c["args"] = "memfit.test/"+name+":dev", "Never", args
	}
}

// startVPA runs VPA until the container of specs ends, and returns the certificate of its webhook.
func startVPA(ctx context.Context) []byte {
	GinkgoHelper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("vpa-webhook.kube-system.svc", nil, nil)
	Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "vpa-tls-certs"},
		Data:       map[string][]byte{"caCert.pem": certificate, "serverCert.pem": certificate, "serverKey.pem": key},
	}
	objects := vpaManifests(ctx)
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, secret))).To(Succeed())
		for _, o := range objects {
			Expect(
				client.IgnoreNotFound(k8s.Delete(ctx, o.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground))),
			).To(Succeed())
		}
	})
	Expect(k8s.Create(ctx, secret)).To(Succeed())
	apply(ctx, objects)
	Eventually(func(g Gomega) {
		for _, name := range []string{"vpa-admission-controller", "vpa-updater"} {
			var pods corev1.PodList
			g.Expect(
				k8s.List(ctx, &pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"app": name}),
			).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(1))
			g.Expect(pods.Items[0].Status.ContainerStatuses).To(HaveLen(1))
			status := pods.Items[0].Status.ContainerStatuses[0]
			if w := status.State.Waiting; w != nil && w.Reason == "ErrImageNeverPull" {
				StopTrying("the image of " + name + " is not on the node: make load-vpa").Now()
			}
			g.Expect(status.Ready).To(BeTrue(), "%s: %+v", name, status.State)
		}
	}).WithContext(ctx).WithTimeout(later).Should(Succeed())
	return certificate
}

// registerWebhook registers VPA's webhook for a namespace. The API server calls webhooks in the order of the
// configurations' names.
func registerWebhook(ctx context.Context, name, namespace string, ca []byte) {
	GinkgoHelper()
	path, fail, none := "/", admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	config := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "vpa.k8s.io", AdmissionReviewVersions: []string{"v1"}, FailurePolicy: &fail, SideEffects: &none,
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"},
				},
			}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: ca,
				Service: &admissionregistrationv1.ServiceReference{
					Namespace: metav1.NamespaceSystem, Name: "vpa-webhook", Path: &path,
				},
			},
		}},
	}
	Expect(k8s.Create(ctx, config)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(k8s.Delete(ctx, config))).To(Succeed()) })
}

func newVPA(namespace, mode string) *unstructured.Unstructured {
	v := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"targetRef":    map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
		"updatePolicy": map[string]any{"updateMode": mode},
	}}}
	v.SetGroupVersionKind(
		schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"},
	)
	v.SetNamespace(namespace)
	v.SetName("web")
	return v
}

func patchVPA(ctx context.Context, v *unstructured.Unstructured, patch string) {
	GinkgoHelper()
	Expect(k8s.Patch(ctx, v, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// setVPATarget writes the status that VPA's recommender would write after days: a target for each container, only of
// the resource that the VPA controls.
func setVPATarget(
	ctx context.Context, v *unstructured.Unstructured, controlled corev1.ResourceName, target map[string]string,
) {
	GinkgoHelper()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(v), v)).To(Succeed())
	var containers []any
	for name, amount := range target {
		size := map[string]any{string(controlled): amount}
		containers = append(
			containers,
			map[string]any{
				"containerName": name, "target": size, "lowerBound": size, "upperBound": size, "uncappedTarget": size,
			},
		)
	}
	Expect(unstructured.SetNestedField(v.Object, map[string]any{
		"recommendation": map[string]any{"containerRecommendations": containers},
		"conditions": []any{
			map[string]any{
				"type": "RecommendationProvided", "status": "True", "lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339),
			},
		},
	}, "status")).To(Succeed())
	Expect(k8s.Status().Update(ctx, v)).To(Succeed())
}

// sizeOf returns a container's memory as "request/limit", and the value of an environment variable.
func sizeOf(pod *corev1.Pod, container, variable string) (size, value string) {
	for _, c := range pod.Spec.Containers {
		if c.Name != container {
			continue
		}
		for _, e := range c.Env {
			if e.Name == variable {
				value = e.Value
			}
		}
		return c.Resources.Requests.Memory().String() + "/" + c.Resources.Limits.Memory().String(), value
	}
	return "", ""
}

// cpuOf returns the first container's CPU as "request/limit".
func cpuOf(pod *corev1.Pod) string {
	r := pod.Spec.Containers[0].Resources
	return r.Requests.Cpu().String() + "/" + r.Limits.Cpu().String()
}

// effectiveOf returns the memory limit that the kubelet reports for the container.
func effectiveOf(pod *corev1.Pod, container string) string {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == container && s.Resources != nil {
			return s.Resources.Limits.Memory().String()
		}
	}
	return ""
}

// Serial: VPA serves the whole cluster.
var _ = Describe("beside a real VerticalPodAutoscaler", Serial, Ordered, func() {
	var ca []byte
	namespace := inNamespace()

	BeforeAll(func(ctx SpecContext) {
		if os.Getenv("LAB_MODE") == "existing" {
			Skip("VPA's images are built locally and cannot be loaded into the cluster of KUBECONFIG")
		}
		ca = startVPA(ctx)
		// memfit checks at its start and every two minutes whether VerticalPodAutoscalers exist.
		restartManagers(ctx)
	}, NodeTimeout(later*2))

	// starts creates a profile and a pod: app, a Go program of 64Mi/128Mi that uses more than it requests, and front, a
	// Node.js program of 128Mi/256Mi.
	starts := func(ctx context.Context, mode v1alpha1.SizingMode, change ...func(*corev1.PodSpec)) *corev1.Pod {
		GinkgoHelper()
		spec := sized(mode, v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo})
		spec.Containers = []v1alpha1.ContainerPolicy{
			{Name: "front", Runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS, Version: "20"}},
		}
		Expect(k8s.Create(ctx, profile(*namespace, spec))).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "128Mi", nil, func(d *appsv1.Deployment) {
			annotated(d)
			app := &d.Spec.Template.Spec.Containers[0]
			app.Args = []string{"-hold", "85Mi"}
			app.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
			front := app.DeepCopy()
			front.Name, front.Image, front.Command = "front", nodeImage, []string{"node", "-e", "setInterval(() => {}, 1000)"}
			front.Resources.Requests[corev1.ResourceMemory] = resource.MustParse("128Mi")
			front.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("256Mi")
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, *front)
			for _, c := range change {
				c(&d.Spec.Template.Spec)
			}
		}))).To(Succeed())
		return &readyPods(ctx, *namespace, 1)[0]
	}

	DescribeTable("memfit names it, sizes nothing, and derives settings from the limits that VPA gives",
		func(ctx SpecContext, name, mode string) {
			registerWebhook(ctx, name, *namespace, ca)
			v := newVPA(*namespace, mode)
			Expect(k8s.Create(ctx, v)).To(Succeed())
			before := starts(ctx, v1alpha1.SizingInPlace)
			size, limit := sizeOf(before, "app", "GOMEMLIMIT")
			Expect([]string{size, limit}).To(Equal([]string{"64Mi/128Mi", goLimit}), "VPA has no recommendation yet")

			conflict := eventuallyApplied(ctx, *namespace, v1alpha1.ReasonConflict)
			Expect(conflict.Message).To(
				And(
					ContainSubstring(fmt.Sprintf("VerticalPodAutoscaler %s/web (updateMode %s, controls memory)", *namespace, mode)),
					ContainSubstring("controlledResources"),
				),
			)
			Eventually(func(g Gomega) {
				rec, err := recommendation(ctx, *namespace)
				g.Expect(err).NotTo(HaveOccurred())
				own := rec.Status.Containers[0].Recommended
				g.Expect(own).NotTo(BeNil(), "memfit must have its own recommendation")
				g.Expect(own.Request.String()).NotTo(BeElementOf("64Mi", "200Mi"), "neither the template's nor VPA's request")
			}).WithContext(ctx).WithTimeout(later).Should(Succeed())

			By("waiting for VPA's updater to evict the pod, and for the next one to start")
			setVPATarget(ctx, v, corev1.ResourceMemory, map[string]string{"app": "200Mi", "front": "300Mi"})
			var after *corev1.Pod
			Eventually(func(g Gomega) {
				live := pods(ctx, *namespace)
				g.Expect(live).To(HaveLen(1))
				g.Expect(live[0].UID).NotTo(Equal(before.UID))
				after = &live[0]
			}).WithContext(ctx).WithTimeout(later).Should(Succeed())
			expectVPASizes := func(pod *corev1.Pod) {
				GinkgoHelper()
				size, value := sizeOf(pod, "app", "GOMEMLIMIT")
				Expect([]string{size, value}).To(Equal([]string{"200Mi/400Mi", "377487360"}), "90 %% of 400Mi")
				size, value = sizeOf(pod, "front", "NODE_OPTIONS")
				Expect([]string{size, value}).To(
					Equal([]string{"300Mi/600Mi", "--max-old-space-size=438"}), "75 %% of 600Mi, less three semi-spaces of 4 MiB",
				)
			}
			expectVPASizes(after)
			ready := readyPods(ctx, *namespace, 1)
			Expect(ready[0].UID).To(Equal(after.UID))

			By("checking that the pod is unchanged")
			Consistently(func(g Gomega) {
				live := pods(ctx, *namespace)
				g.Expect(live).To(HaveLen(1))
				g.Expect(live[0].UID).To(Equal(after.UID))
				g.Expect(live[0].Generation).To(BeEquivalentTo(1))
			}).WithContext(ctx).WithTimeout(12 * time.Second).WithPolling(time.Second).Should(Succeed())
			Expect(restarts(&pods(ctx, *namespace)[0])).To(BeZero())
			expectVPASizes(&pods(ctx, *namespace)[0])
			eventuallyApplied(ctx, *namespace, v1alpha1.ReasonConflict)
			Eventually(eventsAbout).WithContext(ctx).WithArguments(
				*namespace, "Deployment", "web", "Conflict",
			).WithTimeout(later).ShouldNot(BeEmpty())
		},
		Entry("when VPA's webhook comes first", SpecTimeout(later*3), "a-vpa-webhook-config", "Recreate"),
		Entry("when memfit's webhook comes first", SpecTimeout(later*3), "vpa-webhook-config", "Recreate"),
	)

	It("memfit reports outdated settings when VPA resizes the pod in place", func(ctx SpecContext) {
		registerWebhook(ctx, "vpa-webhook-config", *namespace, ca)
		v := newVPA(*namespace, "InPlaceOrRecreate")
		Expect(k8s.Create(ctx, v)).To(Succeed())
		before := starts(ctx, v1alpha1.SizingInPlace)
		eventuallyApplied(ctx, *namespace, v1alpha1.ReasonConflict)
		setVPATarget(ctx, v, corev1.ResourceMemory, map[string]string{"app": "200Mi", "front": "300Mi"})
		Eventually(func(g Gomega) {
			live := pods(ctx, *namespace)
			g.Expect(live).To(HaveLen(1))
			g.Expect(live[0].UID).To(Equal(before.UID))
			size, value := sizeOf(&live[0], "app", "GOMEMLIMIT")
			g.Expect([]string{size, value}).To(
				Equal([]string{"200Mi/400Mi", goLimit}), "the environment of a running process cannot change",
			)
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			behind := condition(rec.Status.Conditions, v1alpha1.ConditionSettingsMatchLimit)
			g.Expect(behind.Status).To(Equal(metav1.ConditionFalse), behind.Message)
			g.Expect(behind.Message).To(ContainSubstring("GOMEMLIMIT"))
		}).WithContext(ctx).WithTimeout(soon).Should(Succeed())

		By("deleting the VPA: memfit had applied no size yet, so it continues immediately")
		Expect(k8s.Delete(ctx, v)).To(Succeed())
		Eventually(func(g Gomega) {
			rec, err := recommendation(ctx, *namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(applied(rec).Reason).NotTo(Equal(v1alpha1.ReasonConflict), applied(rec).Message)
		}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
	}, SpecTimeout(later*2))

	It("is not a conflict when VPA does not size memory, and ends when the VPA is deleted", func(ctx SpecContext) {
		registerWebhook(ctx, "vpa-webhook-config", *namespace, ca)
		v := newVPA(*namespace, "Initial")
		Expect(k8s.Create(ctx, v)).To(Succeed())
		starts(ctx, v1alpha1.SizingOnCreate)
		eventuallyApplied(ctx, *namespace, v1alpha1.ReasonConflict)
		expectNoConflict := func() {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				rec, err := recommendation(ctx, *namespace)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(applied(rec).Reason).NotTo(Equal(v1alpha1.ReasonConflict), applied(rec).Message)
			}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		}
		patchVPA(ctx, v, `{"spec":{"updatePolicy":{"updateMode":"Off"}}}`)
		expectNoConflict()
		patchVPA(ctx, v, `{"spec":{"updatePolicy":{"updateMode":"Initial"}}}`)
		eventuallyApplied(ctx, *namespace, v1alpha1.ReasonConflict)
		patchVPA(
			ctx, v, `{"spec":{"resourcePolicy":{"containerPolicies":[{"containerName":"*","controlledResources":["cpu"]}]}}}`,
		)
		expectNoConflict()
		patchVPA(ctx, v, `{"spec":{"resourcePolicy":null}}`)
		eventuallyApplied(ctx, *namespace, v1alpha1.ReasonConflict)
		Expect(k8s.Delete(ctx, v)).To(Succeed())
		expectNoConflict()
	}, SpecTimeout(later*3))

	// The recipe of docs/guide/from-vpa.md. The template requests 100m CPU with a limit of twice that. VPA's target is
	// 150m, and then 250m.
	DescribeTable("VPA sizes CPU and memfit memory of one pod, and neither undoes the other", Label("evidence"),
		func(ctx SpecContext, name, mode string) {
			skipUnlessCompressed(ctx)
			registerWebhook(ctx, name, *namespace, ca)
			v := newVPA(*namespace, mode)
			Expect(unstructured.SetNestedSlice(v.Object, []any{map[string]any{
				"containerName": "*", "controlledResources": []any{string(corev1.ResourceCPU)},
			}}, "spec", "resourcePolicy", "containerPolicies")).To(Succeed())
			Expect(k8s.Create(ctx, v)).To(Succeed())
			setVPATarget(ctx, v, corev1.ResourceCPU, map[string]string{"app": "150m"})
			starts(ctx, v1alpha1.SizingInPlace, func(spec *corev1.PodSpec) {
				spec.Containers[0].Args = []string{"-hold", "100Mi"}
				spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100m")
				spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("200m")
			})

			// both waits until the pod has VPA's CPU and memfit's memory, the limit is effective, and Applied is UpToDate.
			both := func(cpu string) (pod *corev1.Pod) {
				GinkgoHelper()
				Eventually(func(g Gomega) {
					live := pods(ctx, *namespace)
					g.Expect(live).To(HaveLen(1))
					pod = &live[0]
					g.Expect(cpuOf(pod)).To(Equal(cpu))
					rec, err := recommendation(ctx, *namespace)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(applied(rec).Reason).To(Equal(v1alpha1.ReasonUpToDate), applied(rec).Message)
					g.Expect(rec.Status.Containers[0].Container).To(Equal("app"))
					wanted := rec.Status.Containers[0].Recommended
					g.Expect(wanted).NotTo(BeNil())
					size, _ := sizeOf(pod, "app", "")
					g.Expect(size).To(Equal(wanted.Request.String() + "/" + wanted.Limit.String()))
					g.Expect(effectiveOf(pod, "app")).To(Equal(limitOf(pod)))
				}).WithContext(ctx).WithTimeout(later).Should(Succeed())
				return pod
			}
			first := both("150m/300m")

			By("replacing the pod, which starts with both")
			pod := replacePod(ctx, first)
			Expect(pod.Generation).To(BeEquivalentTo(1), "it was resized after its start")
			Expect(cpuOf(pod)).To(Equal("150m/300m"))
			size, goMemLimit := sizeOf(pod, "app", "GOMEMLIMIT")
			limit := pod.Spec.Containers[0].Resources.Limits.Memory()
			Expect(goMemLimit).To(Equal(fmt.Sprint(limit.Value() * 90 / 100)))
			rec, err := recommendation(ctx, *namespace)
			Expect(err).NotTo(HaveOccurred())
			Expect(limit.String()).To(Equal(rec.Status.Containers[0].Recommended.Limit.String()))
			readyPods(ctx, *namespace, 1)

			By("letting VPA's updater change the CPU, but not the memory")
			setVPATarget(ctx, v, corev1.ResourceCPU, map[string]string{"app": "250m"})
			next := both("250m/500m")
			if mode == "InPlaceOrRecreate" {
				Expect(next.UID).To(Equal(pod.UID))
			} else {
				Expect(next.UID).NotTo(Equal(pod.UID))
				readyPods(ctx, *namespace, 1)
			}
			after, value := sizeOf(next, "app", "GOMEMLIMIT")
			Expect([]string{after, value}).To(Equal([]string{size, goMemLimit}))

			By("exceeding the memory limit, which memfit raises without changing the CPU")
			exceedMemory(ctx, next, "400Mi")
			Eventually(func(g Gomega) {
				live := pods(ctx, *namespace)
				g.Expect(live).To(HaveLen(1))
				now := live[0].Spec.Containers[0].Resources.Limits.Memory()
				g.Expect(now.Cmp(*limit)).To(Equal(1), "%s after %s", now, limit)
			}).WithContext(ctx).WithTimeout(later).Should(Succeed())
			raised := both("250m/500m")
			Expect(raised.UID).To(Equal(next.UID))

			By("checking that sizes are stable")
			Consistently(func(g Gomega) { // longer than two intervals of VPA's updater
				live := pods(ctx, *namespace)
				g.Expect(live).To(HaveLen(1))
				g.Expect(live[0].UID).To(Equal(raised.UID))
				g.Expect(live[0].Generation).To(Equal(raised.Generation))
				g.Expect(cpuOf(&live[0])).To(Equal("250m/500m"))
			}).WithContext(ctx).WithTimeout(12 * time.Second).WithPolling(time.Second).Should(Succeed())
			for _, reason := range []string{"Conflict", v1alpha1.EventConflictingWriter, v1alpha1.EventNotResized} {
				Expect(eventsAbout(ctx, *namespace, "Deployment", "web", reason)).To(BeEmpty())
			}
			Expect(plugin(ctx, "history", "deploy/web", "-n", *namespace)).To(
				And(ContainSubstring("Resized, pod "+raised.Name), Not(ContainSubstring("ConflictingWriter"))),
			)
		},
		Entry("resized in place, VPA's webhook first", SpecTimeout(later*4), "a-vpa-webhook-config", "InPlaceOrRecreate"),
		Entry("evicted, memfit's webhook first", SpecTimeout(later*4), "vpa-webhook-config", "Recreate"),
	)
})
