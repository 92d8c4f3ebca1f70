// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
)

const (
	certManagerTree = "config/overlays/lab"
	selfManagedTree = "config/overlays/self-managed-certs"
)

// buildManifests returns the objects that `make deploy TREE=... IMG=...` applies.
func buildManifests(ctx context.Context, path, image string) []unstructured.Unstructured {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, "go", "tool", "-modfile=hack/tools/go.mod", "kustomize", "build", path)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred(), "building %s", path)
	objects := decodeManifests(out)
	for i := range objects {
		if objects[i].GetKind() == "Deployment" {
			changeContainer(&objects[i], func(c map[string]any) { c["image"] = image })
		}
	}
	return objects
}

func decodeManifests(manifests []byte) []unstructured.Unstructured {
	GinkgoHelper()
	var objects []unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects
		} else {
			Expect(err).NotTo(HaveOccurred())
		}
		if object.Object != nil {
			objects = append(objects, object)
		}
	}
}

// changeContainer changes the only container of a Deployment.
func changeContainer(deployment *unstructured.Unstructured, change func(map[string]any)) {
	GinkgoHelper()
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, path...)
	Expect(err).NotTo(HaveOccurred())
	Expect(containers).To(HaveLen(1))
	change(containers[0].(map[string]any))
	Expect(unstructured.SetNestedSlice(deployment.Object, containers, path...)).To(Succeed())
}

// apply applies the objects with kubectl's field manager, so that the next `kubectl apply` finds no conflicts.
func apply(ctx context.Context, objects []unstructured.Unstructured) {
	GinkgoHelper()
	for _, o := range objects {
		Expect(
			k8s.Apply(
				ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("kubectl"), client.ForceOwnership,
			),
		).
			To(Succeed(), "%s %s", o.GetKind(), o.GetName())
	}
}

// replaceInstallation replaces one installation with the other, as docs/guide/install.md describes.
//
// Every wait has a timeout: Gomega otherwise waits as long as the context, and a cleanup's context has no deadline.
func replaceInstallation(ctx context.Context, from, to []unstructured.Unstructured) {
	GinkgoHelper()
	key := client.ObjectKey{Namespace: systemNamespace, Name: managerName}
	old := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	Expect(
		client.IgnoreNotFound(k8s.Delete(ctx, old, client.PropagationPolicy(metav1.DeletePropagationForeground))),
	).To(Succeed())
	Eventually(
		func() error { return client.IgnoreNotFound(k8s.Get(ctx, key, old)) },
	).WithContext(ctx).WithTimeout(later).Should(Succeed())
	Eventually(func() []corev1.Pod { return managerPods(ctx) }).WithContext(ctx).WithTimeout(later).Should(BeEmpty())
	for _, o := range from {
		if !slices.ContainsFunc(to, func(other unstructured.Unstructured) bool {
			return other.GetKind() == o.GetKind() && other.GetName() == o.GetName()
		}) {
			Expect(client.IgnoreNotFound(k8s.Delete(ctx, o.DeepCopy()))).To(Succeed(), "%s %s", o.GetKind(), o.GetName())
		}
	}
	Expect(client.IgnoreNotFound(k8s.Delete(ctx, servingSecret()))).To(Succeed())
	apply(ctx, to)
	Eventually(managersReady).WithContext(ctx).WithTimeout(later).Should(Equal(2))
	Eventually(publishedCA).WithContext(ctx).WithTimeout(later).Should(Succeed())
}

func servingSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "webhook-server-cert"}}
}

// publishedCA expects both webhook configurations to trust the Secret's CA, possibly besides earlier ones.
func publishedCA(g Gomega, ctx context.Context) {
	secret := servingSecret()
	g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	g.Expect(secret.Data["ca.crt"]).NotTo(BeEmpty())
	var pods admissionregistrationv1.MutatingWebhookConfiguration
	var profiles admissionregistrationv1.ValidatingWebhookConfiguration
	g.Expect(k8s.Get(ctx, client.ObjectKey{Name: "memfit-mutating-webhook-configuration"}, &pods)).To(Succeed())
	g.Expect(k8s.Get(ctx, client.ObjectKey{Name: "memfit-validating-webhook-configuration"}, &profiles)).To(Succeed())
	g.Expect(string(pods.Webhooks[0].ClientConfig.CABundle)).To(ContainSubstring(string(secret.Data["ca.crt"])))
	for _, w := range profiles.Webhooks {
		g.Expect(string(w.ClientConfig.CABundle)).To(ContainSubstring(string(secret.Data["ca.crt"])))
	}
}

// Serial: no other spec can run while memfit is replaced.
var _ = Describe("without cert-manager", Serial, func() {
	namespace := inNamespace()

	It("memfit makes its own certificate, publishes its CA and renews both", func(ctx SpecContext) {
		issuers := schema.GroupKind{Group: "cert-manager.io", Kind: "Issuer"}
		if _, err := k8s.RESTMapper().RESTMapping(issuers); meta.IsNoMatchError(err) {
			Skip("the cluster has no cert-manager, so that all specs already run on this overlay")
		} else {
			Expect(err).NotTo(HaveOccurred())
		}
		var before appsv1.Deployment
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: managerName}, &before)).To(Succeed())
		image := before.Spec.Template.Spec.Containers[0].Image
		usual, own := buildManifests(ctx, certManagerTree, image), buildManifests(ctx, selfManagedTree, image)
		DeferCleanup(func(ctx context.Context) { replaceInstallation(ctx, own, usual) })
		replaceInstallation(ctx, usual, own)

		By("injecting")
		Expect(
			k8s.Create(
				ctx, profile(*namespace, v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo}}),
			),
		).To(Succeed())
		waitUntilKnown(ctx, *namespace)
		Expect(k8s.Create(ctx, workload(*namespace, goImage, "128Mi", nil, annotated))).To(Succeed())
		pod := runningPod(ctx, *namespace)
		Expect(env(pod)).To(HaveKeyWithValue("GOMEMLIMIT", goLimit))
		stillInjects := func(g Gomega, ctx context.Context) {
			again := pod.DeepCopy()
			again.ObjectMeta = metav1.ObjectMeta{
				Namespace: *namespace, GenerateName: "again-",
				Annotations: map[string]string{v1alpha1.ProfileAnnotation: profileName},
			}
			again.Spec.Containers[0].Env = nil
			g.Expect(k8s.Create(ctx, again, client.DryRunAll)).To(Succeed())
			g.Expect(env(again)).To(HaveKeyWithValue("GOMEMLIMIT", goLimit))
		}

		By("renewing a serving certificate under the same CA")
		secret := servingSecret()
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		ca := secret.Data["ca.crt"]
		Expect(
			k8s.Patch(ctx, secret, client.RawPatch(types.MergePatchType, []byte(`{"data":{"tls.crt":"bm9uZQ=="}}`))),
		).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
			g.Expect(string(secret.Data["tls.crt"])).To(HavePrefix("-----BEGIN CERTIFICATE-----"))
		}).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Expect(secret.Data["ca.crt"]).To(Equal(ca))

		By("creating new certificates after the Secret was deleted and applied again")
		Expect(k8s.Delete(ctx, secret)).To(Succeed())
		apply(ctx, own)
		Eventually(publishedCA).WithContext(ctx).WithTimeout(later).Should(Succeed())
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		Expect(secret.Data["ca.crt"]).NotTo(Equal(ca))
		// the kubelet updates the pods' files after some time
		Eventually(stillInjects).WithContext(ctx).WithTimeout(later).Should(Succeed())

		By("checking that memfit had the rights it needs and did not restart")
		for _, p := range managerPods(ctx) {
			Expect(p.Status.ContainerStatuses[0].RestartCount).To(BeZero())
			Expect(logs(ctx, &p)).NotTo(ContainSubstring("forbidden"))
		}
	}, SpecTimeout(later*3), NodeTimeout(later*3))
})
