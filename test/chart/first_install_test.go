// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chart

import (
	"cmp"
	"os"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

var (
	deploymentKind     = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	recommendationKind = schema.GroupVersionResource{
		Group: "memfit.dev", Version: "v1alpha1", Resource: "memoryrecommendations",
	}
)

// TestFirstInstall installs the chart with only the image's values, and checks that memfit recommends, changes no pod
// and does not use cert-manager. Then an upgrade enables the webhook, and new pods get settings.
func TestFirstInstall(t *testing.T) {
	manager := cmp.Or(os.Getenv("IMG"), managerImage)
	values := map[string]any{}
	if err := yaml.Unmarshal(
		[]byte("image: {repository: "+image(manager)+", pullPolicy: Never}"), &values,
	); err != nil {
		t.Fatal(err)
	}
	c := connect(t)
	c.namespaces()
	if _, err := c.installer().RunWithContext(t.Context(), load(t), values); err != nil {
		t.Fatalf("installing without values: %v", err)
	}
	c.deployed(1)
	if manifest := c.manifest(); strings.Contains(manifest, "cert-manager") ||
		strings.Contains(manifest, "WebhookConfiguration") {
		t.Errorf("the manifest has a webhook or names cert-manager:\n%s", manifest)
	}
	c.declare()
	c.injected("without values", false)
	var pod string
	if c.nodes {
		pod = c.startKilled()
		c.recommended()
		c.unchanged(pod)
	}

	upgrade := action.NewUpgrade(c.helm)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = namespace, c.wait(), patience
	upgrade.ResetThenReuseValues = true
	on := map[string]any{
		"webhook": map[string]any{"enabled": true}, "certificates": map[string]any{"issuer": "self-managed"},
	}
	if _, err := upgrade.RunWithContext(t.Context(), releaseName, load(t), on); err != nil {
		t.Fatalf("enabling the webhook: %v", err)
	}
	c.deployed(2)
	c.injected("with the webhook", true)
	if c.nodes {
		c.unchanged(pod)
	}
	c.remove()
}

// manifest returns the manifest that Helm applied.
func (c *cluster) manifest() string {
	c.Helper()
	found, err := action.NewStatus(c.helm).Run(releaseName)
	if err != nil {
		c.Fatal(err)
	}
	accessor, err := release.NewAccessor(found)
	if err != nil {
		c.Fatal(err)
	}
	return accessor.Manifest()
}

// startKilled starts a workload that needs more than its limit, and returns the name of its pod.
func (c *cluster) startKilled() string {
	c.Helper()
	const text = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: dies}, spec: {
		selector: {matchLabels: {app: chart-test}}, template: {metadata: {labels: {app: chart-test}}, spec: {
			containers: [{name: web, image: "memfit.test/goprobe:dev", imagePullPolicy: Never, args: [-hold, 100Mi],
				resources: {limits: {memory: 64Mi}}}]}}}}`
	d := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &d.Object); err != nil {
		c.Fatal(err)
	}
	if _, err := c.api.Resource(deploymentKind).Namespace(shop).Create(
		c.Context(), d, metav1.CreateOptions{},
	); err != nil {
		c.Fatal(err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Second) {
		pods, err := c.api.Resource(podKind).Namespace(shop).List(c.Context(), metav1.ListOptions{})
		if err != nil {
			c.Fatal(err)
		}
		if len(pods.Items) == 1 {
			return pods.Items[0].GetName()
		}
	}
	c.Fatal("the Deployment has no pod")
	return ""
}

// recommended waits until memfit has counted an OOM kill of the workload and recommends a limit.
func (c *cluster) recommended() {
	c.Helper()
	var status map[string]any
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Second) {
		rec, err := c.api.Resource(recommendationKind).Namespace(shop).Get(
			c.Context(), "deployment-dies", metav1.GetOptions{},
		)
		if err != nil {
			continue // not written yet
		}
		status, _, _ = unstructured.NestedMap(rec.Object, "status")
		kills, _, _ := unstructured.NestedInt64(status, "oomKills")
		containers, _, _ := unstructured.NestedSlice(status, "containers")
		if kills == 0 || len(containers) != 1 {
			continue
		}
		limit, found, _ := unstructured.NestedString(containers[0].(map[string]any), "recommended", "limit")
		if found && limit != "64Mi" {
			c.Logf("after %d OOM kills at 64Mi memfit recommends a limit of %s", kills, limit)
			return
		}
	}
	c.Fatalf("memfit did not recommend a limit: %v", status)
}

// unchanged checks that nothing changed the pod after its Deployment created it.
func (c *cluster) unchanged(name string) {
	c.Helper()
	pod, err := c.api.Resource(podKind).Namespace(shop).Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	web := containers[0].(map[string]any)
	limit, _, _ := unstructured.NestedString(web, "resources", "limits", "memory")
	_, hasEnv := web["env"]
	if limit != "64Mi" || hasEnv || pod.GetGeneration() != 1 || len(pod.GetAnnotations()) != 0 {
		c.Errorf(
			"pod %s was changed: limit %s, generation %d, annotations %v, env %v", name, limit,
			pod.GetGeneration(), pod.GetAnnotations(), web["env"],
		)
	}
}
