// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

const (
	releaseName = "memfit"
	patience    = 5 * time.Minute // for pods with local images, and for the kubelet's update of a Secret (2 minutes)
)

var (
	crdKind = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	profileKind = schema.GroupVersionResource{Group: "memfit.dev", Version: "v1alpha1", Resource: "memoryprofiles"}
	podKind     = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	spaceKind   = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	hookKind    = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations",
	}
)

const (
	managerImage = "memfit.test/manager:dev"
	agentImage   = "memfit.test/agent:dev"
)

// installed returns values for a cluster without cert-manager, with images that are on its nodes.
func installed(t *testing.T, manager, agent string) map[string]any {
	t.Helper()
	text := `
webhook: {enabled: true}
certificates: {issuer: self-managed}
image: {repository: ` + image(manager) + `, pullPolicy: Never}
agent: {tier: watch, image: {repository: ` + image(agent) + `, pullPolicy: Never}}
`
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func image(name string) string {
	at := strings.LastIndex(name, ":")
	return name[:at] + ", tag: " + name[at+1:]
}

// cluster is the cluster under test. Without nodes, no pod runs, and no webhook answers.
type cluster struct {
	*testing.T
	helm  *action.Configuration
	api   dynamic.Interface
	nodes bool
}

// TestLifecycle installs the older release, upgrades to the current one, rolls back, upgrades again, uninstalls and
// installs again. It checks that profiles are unchanged, and that new pods get settings while a manager runs.
func TestLifecycle(t *testing.T) {
	manager, agent := cmp.Or(os.Getenv("IMG"), managerImage), cmp.Or(os.Getenv("AGENT_IMG"), agentImage)
	values, c := installed(t, manager, agent), connect(t)
	oldManager, oldAgent := cmp.Or(os.Getenv("PREVIOUS_IMG"), manager), cmp.Or(os.Getenv("PREVIOUS_AGENT_IMG"), agent)
	current := load(t)
	older := previous(t)
	c.namespaces()

	install := c.installer()
	if _, err := install.RunWithContext(t.Context(), older, installed(t, oldManager, oldAgent)); err != nil {
		t.Fatalf("installing %s: %v", older.Metadata.Version, err)
	}
	c.deployed(1)
	c.runs(oldManager, oldAgent)
	had := c.fields()
	uid := c.declare()
	c.injected("with the older release", true)

	upgrade := action.NewUpgrade(c.helm)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = namespace, c.wait(), patience
	if _, err := upgrade.RunWithContext(t.Context(), releaseName, current, values); err != nil {
		t.Fatalf("upgrading to %s: %v", current.Metadata.Version, err)
	}
	c.deployed(2)
	c.runs(manager, agent)
	if has := c.fields(); has <= had && os.Getenv("PREVIOUS") == "" {
		t.Errorf("the CRD of profiles has %d fields after the upgrade, had %d: it was not upgraded", has, had)
	}
	c.same(uid, "the upgrade")
	c.injected("after the upgrade", true)

	rollback := action.NewRollback(c.helm)
	rollback.Version, rollback.WaitStrategy, rollback.Timeout = 1, c.wait(), patience
	rollback.ServerSideApply = "auto"
	if err := rollback.Run(releaseName); err != nil {
		t.Fatalf("rolling back: %v", err)
	}
	c.deployed(3)
	c.runs(oldManager, oldAgent)
	if has := c.fields(); has != had {
		t.Errorf("the CRD of profiles has %d fields after the rollback, had %d", has, had)
	}
	c.same(uid, "the rollback")
	c.injected("after the rollback", true)

	if _, err := upgrade.RunWithContext(t.Context(), releaseName, current, values); err != nil {
		t.Fatalf("upgrading again: %v", err)
	}
	c.remove()
	c.same(uid, "uninstalling")
	if _, err := c.api.Resource(hookKind).Get(
		t.Context(), "memfit-mutating-webhook-configuration", metav1.GetOptions{},
	); !apierrors.IsNotFound(err) {
		t.Errorf("the webhook configuration exists after uninstalling: %v", err)
	}
	c.injected("after uninstalling", false)

	// The new release takes over the kept CRDs.
	if !c.nodes { // without a controller, the agent's namespace is never deleted
		values["agent"] = map[string]any{"tier": "none"}
	}
	if _, err := c.installer().RunWithContext(t.Context(), current, values); err != nil {
		t.Fatalf("installing again: %v", err)
	}
	c.deployed(1)
	c.same(uid, "installing again")
	c.injected("after installing again", true)
	c.remove()
}

// TestAnUpgradeTakesTheWebhookOfTheOldDefault checks that an upgrade removes a webhook that only the old default
// enabled, and that the notes report it, as docs/guide/upgrading.md warns. A release whose values enable the webhook
// keeps it, also in upgrades without values.
func TestAnUpgradeTakesTheWebhookOfTheOldDefault(t *testing.T) {
	if os.Getenv("KUBECONFIG") != "" {
		t.Skip("needs only an API server; TestLifecycle tests the cluster")
	}
	c := connect(t)
	c.namespaces()
	older := load(t)
	older.Values["webhook"].(map[string]any)["enabled"] = true
	selfManaged := map[string]any{"issuer": "self-managed"}
	if _, err := c.installer().RunWithContext(
		t.Context(), older, map[string]any{"certificates": selfManaged},
	); err != nil {
		t.Fatal(err)
	}
	c.hooked("with the old default", true)
	upgrade := action.NewUpgrade(c.helm)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = namespace, c.wait(), patience
	for _, one := range []struct {
		when   string
		values map[string]any
		hooked bool
	}{
		{"after an upgrade without values", nil, false},
		{"with the value", map[string]any{
			"webhook": map[string]any{"enabled": true}, "certificates": selfManaged,
		}, true},
		{"after another upgrade without values", nil, true},
	} {
		done, err := upgrade.RunWithContext(t.Context(), releaseName, load(t), one.values)
		if err != nil {
			t.Fatalf("%s: %v", one.when, err)
		}
		c.hooked(one.when, one.hooked)
		accessor, err := release.NewAccessor(done)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(accessor.Notes(), "this upgrade has removed it") == one.hooked {
			t.Errorf("%s: notes\n%s", one.when, accessor.Notes())
		}
	}
	c.remove()
}

// hooked checks whether the pod webhook is configured.
func (c *cluster) hooked(when string, want bool) {
	c.Helper()
	_, err := c.api.Resource(hookKind).Get(c.Context(), "memfit-mutating-webhook-configuration", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		c.Fatal(err)
	}
	if (err == nil) != want {
		c.Errorf("%s: pod webhook configured: %t, want %t", when, err == nil, want)
	}
}

func connect(t *testing.T) *cluster {
	t.Helper()
	nodes := true
	kubeconfig := os.Getenv("KUBECONFIG")
	if kubeconfig == "" {
		kubeconfig, nodes = withoutNodes(t), false
	}
	settings := cli.New()
	settings.KubeConfig = kubeconfig
	settings.SetNamespace(namespace)
	c := &cluster{T: t, helm: action.NewConfiguration(), nodes: nodes}
	if err := c.helm.Init(settings.RESTClientGetter(), namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if c.api, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // also after a failure
		ctx := context.Background()
		if _, err := action.NewStatus(c.helm).Run(releaseName); err == nil {
			c.remove()
		}
		_ = c.api.Resource(spaceKind).Delete(ctx, shop, metav1.DeleteOptions{})
		for end := time.Now().Add(patience); c.nodes && time.Now().Before(end); time.Sleep(time.Second) {
			if _, err := c.api.Resource(spaceKind).Get(ctx, shop, metav1.GetOptions{}); apierrors.IsNotFound(err) {
				break // the next test creates it again
			}
		}
	})
	return c
}

// withoutNodes starts an API server without a cluster, and returns its kubeconfig's path.
func withoutNodes(t *testing.T) string {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("neither KUBECONFIG nor KUBEBUILDER_ASSETS is set: run make test-chart")
	}
	env := envtest.Environment{}
	if _, err := env.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	user, err := env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const shop = "chart-test"

// namespaces creates the release's namespace, as docs/guide/install.md describes, and one for workloads.
func (c *cluster) namespaces() {
	c.Helper()
	for name, labels := range map[string]any{
		namespace: map[string]any{"pod-security.kubernetes.io/enforce": "restricted"}, shop: map[string]any{},
	} {
		space := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": labels},
		}}
		if _, err := c.api.Resource(spaceKind).Create(
			c.Context(), space, metav1.CreateOptions{},
		); err != nil && !apierrors.IsAlreadyExists(err) {
			c.Fatal(err)
		}
	}
}

// wait returns Helm's strategy of waiting for applied objects.
func (c *cluster) wait() kube.WaitStrategy {
	if c.nodes {
		return kube.StatusWatcherStrategy
	}
	return kube.HookOnlyStrategy
}

func (c *cluster) installer() *action.Install {
	install := action.NewInstall(c.helm)
	install.ReleaseName, install.Namespace, install.WaitStrategy, install.Timeout = releaseName, namespace, c.wait(),
		patience
	return install
}

func (c *cluster) remove() {
	c.Helper()
	uninstall := action.NewUninstall(c.helm)
	uninstall.WaitStrategy, uninstall.Timeout = c.wait(), patience
	if _, err := uninstall.Run(releaseName); err != nil {
		c.Errorf("uninstalling: %v", err)
	}
}

// deployed checks that Helm reports this revision of the release as deployed.
func (c *cluster) deployed(revision int) {
	c.Helper()
	found, err := action.NewStatus(c.helm).Run(releaseName)
	if err != nil {
		c.Fatal(err)
	}
	accessor, err := release.NewAccessor(found)
	if err != nil {
		c.Fatal(err)
	}
	if accessor.Version() != revision || accessor.Status() != "deployed" {
		c.Errorf("revision %d is %s, want %d deployed", accessor.Version(), accessor.Status(), revision)
	}
	origin, err := chart.NewAccessor(accessor.Chart())
	if err != nil {
		c.Fatal(err)
	}
	c.Logf("revision %d, chart %v: %s", accessor.Version(), origin.MetadataAsMap()["Version"], accessor.Status())
}

// runs waits until all pods of the manager and the agent have these images and are ready.
func (c *cluster) runs(manager, agent string) {
	c.Helper()
	if !c.nodes {
		return
	}
	for ns, want := range map[string]string{namespace: manager, "memfit-agent": agent} {
		for end := time.Now().Add(patience); ; time.Sleep(2 * time.Second) {
			pods, err := c.api.Resource(podKind).Namespace(ns).List(c.Context(), metav1.ListOptions{})
			if err != nil {
				c.Fatal(err)
			}
			ready, seen := 0, ""
			for i := range pods.Items {
				image, isReady := running(&pods.Items[i])
				if image == want && isReady {
					ready++
				}
				seen += fmt.Sprintf(" %s (%s)", pods.Items[i].GetName(), image)
			}
			if ready == len(pods.Items) && ready > 0 {
				c.Logf("%s: %d pods, all ready with image %s", ns, ready, want)
				break
			}
			if time.Now().After(end) {
				c.Fatalf("pods of %s:%s; want all ready with image %s", ns, seen, want)
			}
		}
	}
}

// running returns the image of a pod's first container, and whether the container is ready.
func running(pod *unstructured.Unstructured) (image string, ready bool) {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	image, _ = containers[0].(map[string]any)["image"].(string)
	statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	return image, len(statuses) > 0 && statuses[0].(map[string]any)["ready"] == true
}

// fields returns the number of fields of a profile's spec in the installed CRD.
func (c *cluster) fields() int {
	c.Helper()
	crd, err := c.api.Resource(crdKind).Get(c.Context(), "memoryprofiles.memfit.dev", metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	spec, _, _ := unstructured.NestedMap(
		versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties",
	)
	return len(spec)
}

// declare creates a profile for the pods of injected, and returns its UID.
func (c *cluster) declare() string {
	c.Helper()
	profile := &unstructured.Unstructured{}
	const text = `{apiVersion: memfit.dev/v1alpha1, kind: MemoryProfile, metadata: {name: kept}, spec: {
		selector: {matchLabels: {app: chart-test}}, runtime: {type: Go, version: "1.22"}, sizing: {mode: Recommend}}}`
	if err := yaml.Unmarshal([]byte(text), &profile.Object); err != nil {
		c.Fatal(err)
	}
	made, err := c.api.Resource(profileKind).Namespace(shop).Create(c.Context(), profile, metav1.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return string(made.GetUID())
}

// same checks that declare's profile still exists with its UID and its runtime.
func (c *cluster) same(uid, after string) {
	c.Helper()
	got, err := c.api.Resource(profileKind).Namespace(shop).Get(c.Context(), "kept", metav1.GetOptions{})
	if err != nil {
		c.Fatalf("the profile after %s: %v", after, err)
	}
	kind, _, _ := unstructured.NestedString(got.Object, "spec", "runtime", "type")
	if string(got.GetUID()) != uid || kind != "Go" {
		c.Errorf("the profile after %s is %v", after, got.Object)
	}
}

// injected waits until a new pod gets settings, which needs the API server to trust the webhook's certificate, or until
// it gets none.
func (c *cluster) injected(when string, want bool) {
	c.Helper()
	if !c.nodes {
		return
	}
	pods := c.api.Resource(podKind).Namespace(shop)
	pod := &unstructured.Unstructured{}
	const text = `{apiVersion: v1, kind: Pod, metadata: {generateName: web-, labels: {app: chart-test}}, spec: {
		containers: [{name: web, image: memfit.test/pause:lab, resources: {limits: {memory: 64Mi}}}]}}`
	if err := yaml.Unmarshal([]byte(text), &pod.Object); err != nil {
		c.Fatal(err)
	}
	got := false
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Second) {
		made, err := pods.Create(c.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			containers, _, _ := unstructured.NestedSlice(made.Object, "spec", "containers")
			_, got = containers[0].(map[string]any)["env"]
		}
		if err == nil && got == want {
			c.Logf("%s: a new pod has settings: %t", when, got)
			return
		}
		if time.Now().After(end) {
			c.Fatalf("%s: a new pod has settings: %t, want %t: %v", when, got, want, err)
		}
	}
}

// previous returns the previous release: the chart in PREVIOUS, or the current chart with one field of the CRD removed,
// because most releases add a field.
func previous(t *testing.T) *chartv2.Chart {
	t.Helper()
	if name := os.Getenv("PREVIOUS"); name != "" {
		c, err := loader.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load(t)
	c.Metadata.Version, c.Metadata.AppVersion = "0.0.1", "0.0.1"
	cut := errors.New("field drift not found in the template of the CRD of profiles")
	for _, f := range c.Templates {
		if strings.HasSuffix(f.Name, "crd/memfit.dev_memoryprofiles.yaml") {
			f.Data, cut = without(f.Data, "drift")
		}
	}
	if cut != nil {
		t.Fatal(cut)
	}
	return c
}

// without removes a field of spec from a CRD. It finds the field by its indentation, because the file is a template.
func without(text []byte, field string) ([]byte, error) {
	const indent = "              " // of the properties of spec
	var out []string
	inside, found := false, false
	for line := range strings.SplitSeq(string(text), "\n") {
		if strings.HasPrefix(line, indent) && !strings.HasPrefix(line, indent+" ") {
			inside = strings.TrimSpace(line) == field+":"
			found = found || inside
		} else if !strings.HasPrefix(line, indent) {
			inside = false
		}
		if !inside {
			out = append(out, line)
		}
	}
	if !found {
		return nil, fmt.Errorf("field %s not found", field)
	}
	return []byte(strings.Join(out, "\n")), nil
}
