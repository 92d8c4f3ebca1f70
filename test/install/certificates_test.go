// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	defaultTree     = "config/default"
	selfManagedTree = "config/overlays/self-managed-certs"
	injectCA        = "cert-manager.io/inject-ca-from"
)

// TestCertificates checks that each certificate has the DNS names of its Service and a Secret that the manager mounts,
// and that the webhook configurations use its CA. Kustomize joins these strings from five files.
func TestCertificates(t *testing.T) {
	objects := build(t, defaultTree)
	mounted := map[string]bool{}
	for _, v := range deployment(t, defaultTree).Spec.Template.Spec.Volumes {
		if v.Secret != nil {
			mounted[v.Secret.SecretName] = true
		}
	}
	for name, service := range map[string]string{
		"memfit-serving-cert":  "memfit-webhook-service",
		"memfit-metrics-certs": "memfit-controller-manager-metrics-service",
	} {
		one[corev1.Service](t, objects, "Service", service)
		certificate := find(t, objects, "Certificate", name)
		names, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
		want := []string{service + "." + namespace + ".svc", service + "." + namespace + ".svc.cluster.local"}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("DNS names of %s (-want +got):\n%s", name, diff)
		}
		if secret, _, _ := unstructured.NestedString(certificate.Object, "spec", "secretName"); !mounted[secret] {
			t.Errorf("%s is in Secret %s, which the manager does not mount", name, secret)
		}
		issuer, _, _ := unstructured.NestedString(certificate.Object, "spec", "issuerRef", "name")
		find(t, objects, "Issuer", issuer)
	}
	for _, object := range objects {
		if strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
			if got, want := object.GetAnnotations()[injectCA], namespace+"/memfit-serving-cert"; got != want {
				t.Errorf("%s takes its CA from %q, want %q", object.GetName(), got, want)
			}
		}
	}
}

func find(t *testing.T, objects []built, kind, name string) built {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	t.Fatalf("%s %s not found", kind, name)
	panic("unreachable")
}

// TestSelfManagedCertificates checks that the overlay does not need cert-manager and otherwise equals config/default.
func TestSelfManagedCertificates(t *testing.T) {
	objects := build(t, selfManagedTree)
	for _, object := range objects {
		if strings.Contains(object.GetAPIVersion(), "cert-manager.io") || object.GetAnnotations()[injectCA] != "" {
			t.Errorf("%s %s needs cert-manager", object.GetKind(), object.GetName())
		}
	}
	want, got := deployment(t, defaultTree), deployment(t, selfManagedTree)
	wantManager, gotManager := managerOf(t, &want.Spec.Template.Spec), managerOf(t, &got.Spec.Template.Spec)
	isMetricsCert := func(s string) bool { return strings.Contains(s, "metrics-cert") }
	wantManager.Args = slices.DeleteFunc(append(wantManager.Args, "--cert-mode=self-managed"), isMetricsCert)
	slices.Sort(wantManager.Args)
	slices.Sort(gotManager.Args)
	wantManager.VolumeMounts = slices.DeleteFunc(
		wantManager.VolumeMounts, func(m corev1.VolumeMount) bool { return isMetricsCert(m.Name) },
	)
	volumes := slices.DeleteFunc(
		want.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return isMetricsCert(v.Name) },
	)
	want.Spec.Template.Spec.Volumes = volumes
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the overlay changes more than certificates (-config/default +overlay):\n%s", diff)
	}
}

// TestSelfManagedRights checks that the manager may write, by name, one Secret of its own namespace and its webhook
// configurations, and nothing else for its certificates.
func TestSelfManagedRights(t *testing.T) {
	objects := build(t, selfManagedTree)
	secret := one[corev1.Secret](t, objects, "Secret", "webhook-server-cert")
	if secret.Namespace != namespace || len(secret.Data)+len(secret.StringData) != 0 {
		t.Errorf(
			"Secret %s/%s with %d entries, want an empty one in %s", secret.Namespace, secret.Name, len(secret.Data), namespace,
		)
	}
	if !slices.ContainsFunc(deployment(t, selfManagedTree).Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && v.Secret.SecretName == secret.Name
	}) {
		t.Errorf("the manager does not mount Secret %s", secret.Name)
	}
	var configurations []string
	for _, c := range all[admissionregistrationv1.MutatingWebhookConfiguration](
		t, objects, "MutatingWebhookConfiguration",
	) {
		configurations = append(configurations, c.Name)
	}
	for _, c := range all[admissionregistrationv1.ValidatingWebhookConfiguration](
		t, objects, "ValidatingWebhookConfiguration",
	) {
		configurations = append(configurations, c.Name)
	}
	var writes []string
	rules := one[rbacv1.Role](t, objects, "Role", "memfit-certificates-role").Rules
	rules = append(rules, one[rbacv1.ClusterRole](t, objects, "ClusterRole", "memfit-certificates-role").Rules...)
	for _, rule := range rules {
		if slices.ContainsFunc(rule.Verbs, func(v string) bool { return v != "list" && v != "watch" }) {
			if len(rule.ResourceNames) == 0 {
				t.Errorf("%v %v without resourceNames", rule.Verbs, rule.Resources)
			}
			writes = append(writes, rule.ResourceNames...)
		}
	}
	want := append([]string{secret.Name}, configurations...)
	slices.Sort(want)
	slices.Sort(writes)
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("resources that the manager may write for its certificates (-want +got):\n%s", diff)
	}
}

// TestClientCA checks that the component mounts the file in CLIENT_CA from a ConfigMap, and that docs/guide/install.md
// has the command that creates the ConfigMap.
func TestClientCA(t *testing.T) {
	d := deployment(t, "test/install/testdata/client-ca")
	c := managerOf(t, &d.Spec.Template.Spec)
	env := map[string]string{}
	for _, v := range c.Env {
		env[v.Name] = v.Value
	}
	mount := slices.IndexFunc(
		c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath+"/ca.crt" == env["CLIENT_CA"] },
	)
	if mount < 0 || env["CLIENT_NAMES"] == "" {
		t.Fatalf(
			"CLIENT_CA is %q and CLIENT_NAMES %q, with the mounts %v", env["CLIENT_CA"], env["CLIENT_NAMES"], c.VolumeMounts,
		)
	}
	page := string(read(t, "docs/guide/install.md"))
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Name != c.VolumeMounts[mount].Name {
			continue
		}
		if v.ConfigMap == nil || !strings.Contains(page, "create configmap "+v.ConfigMap.Name+" --from-file=ca.crt") {
			t.Errorf("docs/guide/install.md has no command that creates %+v", v)
		}
	}
	if !strings.Contains(page, "`"+env["CLIENT_NAMES"]+"`") {
		t.Errorf("docs/guide/install.md does not name the certificate %s", env["CLIENT_NAMES"])
	}
}

// TestLab checks that the overlay changes only the image and its pull policy.
func TestLab(t *testing.T) {
	want, got := deployment(t, defaultTree), deployment(t, "config/overlays/lab")
	c := managerOf(t, &want.Spec.Template.Spec)
	c.Image, c.ImagePullPolicy = "memfit.test/manager:dev", corev1.PullNever
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the lab's Deployment (-config/default +lab):\n%s", diff)
	}
	if others := len(all[appsv1.Deployment](t, build(t, "config/overlays/lab"), "Deployment")); others != 1 {
		t.Errorf("%d Deployments, want 1", others)
	}
}
