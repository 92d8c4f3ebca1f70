// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestLint is `helm lint --strict charts/memfit`.
func TestLint(t *testing.T) {
	linted := lint.RunAll(folder, map[string]any{}, namespace)
	for _, m := range linted.Messages {
		// An icon is a URL; memfit has none.
		if m.Severity > support.InfoSev || !strings.Contains(m.Err.Error(), "icon is recommended") {
			t.Errorf("%s", m.Error())
		}
	}
}

// TestUnknownValuesAreRefused checks that the schema refuses misspelled and invalid values with an error that names the
// value.
func TestUnknownValuesAreRefused(t *testing.T) {
	c := load(t)
	for values, want := range map[string]string{
		`replicas: 3`:                                    "'replicas' not allowed",
		`manager: {replica: 3}`:                          "/manager': additional properties 'replica' not allowed",
		`manager: {replicas: 0}`:                         "/manager/replicas': minimum",
		`manager: {flags: {usage-intervall: 30s}}`:       "'usage-intervall' not allowed",
		`manager: {flags: {leader-elect: true}}`:         "'leader-elect' not allowed",
		`manager: {resources: {limits: {memory: 1.5G}}}`: "/manager/resources/limits/memory': '1.5G' does not match",
		`manager: {resources: {limits: null}}`:           "/manager/resources': missing property 'limits'",
		`agent: {tier: look}`:                            "/agent/tier': value must be one of 'none', 'watch', 'see'",
		`certificates: {issuer: none}`:                   "/certificates/issuer': value must be one of",
		`certificates: {issuer: provided}`:               "/certificates/caBundle': minLength",
		`namespaces: {exclude: [shop]}`:                  "/namespaces/exclude': no items match",
		`image: {digest: "sha256:1"}`:                    "/image/digest': 'sha256:1' does not match",
		`image: {repository: "memfit:v1"}`:               "/image/repository': 'memfit:v1' does not match",
		`webhook: {clientCA: {enabled: true}}`:           "/webhook': 'not' failed",
		`platform: eks`:                                  "/platform': value must be one of",
	} {
		if _, err := render(c, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", values, err, want)
		}
	}
}

// TestEveryValueIsInTheSchema checks that values.yaml and the schema have the same values.
func TestEveryValueIsInTheSchema(t *testing.T) {
	var schema node
	read(t, "values.schema.json", &schema)
	var values map[string]any
	read(t, "values.yaml", &values)
	delete(schema.Properties, "global") // from a parent chart
	same(t, "", schema, schema, values)
}

type node struct {
	Ref         string `json:"$ref"`
	Properties  map[string]node
	Definitions map[string]node
}

func same(t *testing.T, at string, top, n node, values map[string]any) {
	t.Helper()
	if n.Ref != "" {
		n = top.Definitions[strings.TrimPrefix(n.Ref, "#/definitions/")]
	}
	for key, value := range values {
		below, known := n.Properties[key]
		if below, isMap := value.(map[string]any); isMap && known && len(below) > 0 {
			same(t, at+"."+key, top, n.Properties[key], below)
		}
		if free := n.Properties == nil; !known && !free {
			t.Errorf("values.schema.json lacks %s.%s: %v", at, key, below)
		}
	}
	for key := range n.Properties {
		if _, has := values[key]; !has {
			t.Errorf("values.yaml lacks %s.%s", at, key)
		}
	}
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestFlags checks that manager.flags has every flag of the manager, except those that other values set.
func TestFlags(t *testing.T) {
	manager := filepath.Join(t.TempDir(), "manager")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", manager, "./cmd/manager")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the manager: %v\n%s", err, out)
	}
	help, err := exec.Command(manager, "-h").CombinedOutput()
	if err != nil {
		t.Fatalf("manager -h: %v\n%s", err, help)
	}
	elsewhere := []string{
		"lab-compress-evidence", // only for tests, which use kustomize
		"cert-mode", "cert-secret", "client-ca", "client-names", "exclude-namespaces", "health-probe-bind-address",
		"kubeconfig", "leader-elect", "metrics-bind-address", "metrics-cert-path", "metrics-secure", "mutating-webhook",
		"read-configmap-keys", "validating-webhook", "webhook-cert-path", "webhook-port", "webhook-service",
	}
	var want []string
	for _, found := range regexp.MustCompile(`(?m)^  -([a-z-]+)`).FindAllStringSubmatch(string(help), -1) {
		if !slices.Contains(elsewhere, found[1]) {
			want = append(want, found[1])
		}
	}
	var schema node
	read(t, "values.schema.json", &schema)
	var got []string
	for flag := range schema.Properties["manager"].Properties["flags"].Properties {
		got = append(got, flag)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manager.flags in values.schema.json (-manager +schema):\n%s", diff)
	}
}

// TestCRDsAreKept checks that uninstalling keeps the CRDs, and thus all profiles, unless crds.keep is false.
func TestCRDsAreKept(t *testing.T) {
	c := load(t)
	for values, want := range map[string]string{"": "keep", "crds: {keep: false}": ""} {
		found := 0
		for _, o := range all(t, c, values, "CustomResourceDefinition") {
			found++
			if got := o.GetAnnotations()["helm.sh/resource-policy"]; got != want {
				t.Errorf("%q: %s has the policy %q, want %q", values, o.GetName(), got, want)
			}
		}
		if found != 5 {
			t.Errorf("%q: %d CRDs, want 5", values, found)
		}
	}
	if left := all(t, c, "crds: {install: false}", "CustomResourceDefinition"); len(left) != 0 {
		t.Errorf("crds.install: false leaves %d CRDs", len(left))
	}
}

func all(t *testing.T, c *chartv2.Chart, values, kind string) []object {
	t.Helper()
	objects, err := render(c, values)
	if err != nil {
		t.Fatalf("%s: %v", values, err)
	}
	return slices.DeleteFunc(objects, func(o object) bool { return o.GetKind() != kind })
}

// container returns a field of a workload's first container as JSON.
func container(t *testing.T, c *chartv2.Chart, values, kind string, fields ...string) string {
	t.Helper()
	found := all(t, c, values, kind)
	if len(found) != 1 {
		t.Fatalf("%s: %d objects of kind %s, want 1", values, len(found), kind)
	}
	list, _, _ := unstructured.NestedSlice(found[0].Object, "spec", "template", "spec", "containers")
	value, _, err := unstructured.NestedFieldNoCopy(list[0].(map[string]any), fields...)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestImages(t *testing.T) {
	c := load(t)
	digest := "sha256:" + strings.Repeat("0a", 32)
	for values, want := range map[string]string{
		``:                                       `"memfit/manager:v` + c.AppVersion() + `"`,
		`imageRegistry: registry.example:5000`:   `"registry.example:5000/memfit/manager:v` + c.AppVersion() + `"`,
		`imageRegistry: registry.example/mirror`: `"registry.example/mirror/memfit/manager:v` + c.AppVersion() + `"`,
		`image: {tag: v9}`:                       `"memfit/manager:v9"`,
		`image: {tag: v9, digest: "` + digest + `"}`: `"memfit/manager@` + digest + `"`,
	} {
		if got := container(t, c, values, "Deployment", "image"); got != want {
			t.Errorf("%q: got %s, want %s", values, got, want)
		}
	}
}

// TestGoMemLimit checks that GOMEMLIMIT is 90% of the limit in whole bytes, for each unit.
func TestGoMemLimit(t *testing.T) {
	c := load(t)
	for limit, want := range map[string]string{
		"512Mi": "483183820", "1Gi": "966367641", "600000Ki": "552960000", "1000000000": "900000000", "16Gi": "15461882265",
	} {
		env := container(t, c, `manager: {resources: {limits: {memory: "`+limit+`"}}}`, "Deployment", "env")
		if !strings.Contains(env, `{"name":"GOMEMLIMIT","value":"`+want+`"}`) {
			t.Errorf("%s: %s, want %s", limit, env, want)
		}
	}
}

// TestWhatOnlyTheChartHas checks the values that have no equivalent in config/.
func TestWhatOnlyTheChartHas(t *testing.T) {
	c := load(t)
	args := container(t, c, `
manager: {flags: {usage-interval: 30s, kubelet-insecure-skip-verify: true}}
namespaces: {exclude: [kube-system, kube-node-lease, cert-manager, legacy]}
`, "Deployment", "args")
	for _, want := range []string{
		`"--usage-interval=30s"`, `"--kubelet-insecure-skip-verify=true"`,
		`"--exclude-namespaces=kube-system,kube-node-lease,cert-manager,legacy"`,
	} {
		if !strings.Contains(args, want) {
			t.Errorf("args %s lack %s", args, want)
		}
	}
	hook := all(t, c, `
webhook: {enabled: true}
namespaces: {exclude: [kube-system, kube-node-lease, legacy], selector: {matchLabels: {team: shop}, matchExpressions: [{key: tier, operator: Exists}]}}
certificates: {issuer: provided, caBundle: Y2E=}
`, "MutatingWebhookConfiguration")[0]
	hooks, _, _ := unstructured.NestedSlice(hook.Object, "webhooks")
	want := map[string]any{
		"matchLabels": map[string]any{"team": "shop"},
		"matchExpressions": []any{
			map[string]any{
				"key": "kubernetes.io/metadata.name", "operator": "NotIn",
				"values": []any{"kube-system", "kube-node-lease", "legacy", namespace},
			},
			map[string]any{"key": "tier", "operator": "Exists"},
		},
	}
	if diff := cmp.Diff(want, hooks[0].(map[string]any)["namespaceSelector"]); diff != "" {
		t.Errorf("namespaceSelector (-want +got):\n%s", diff)
	}
	ca, _, _ := unstructured.NestedString(hooks[0].(map[string]any), "clientConfig", "caBundle")
	if ca != "Y2E=" || len(hook.GetAnnotations()) != 0 {
		t.Errorf("issuer provided: caBundle %q, annotations %v", ca, hook.GetAnnotations())
	}
	if left := all(
		t, c, "webhook: {enabled: true}\ncertificates: {issuer: provided, caBundle: Y2E=}", "Certificate",
	); len(left) != 0 {
		t.Errorf("issuer provided: %d Certificates, want none", len(left))
	}
	pod := all(t, c, `manager: {
  priorityClassName: high, replicas: 3, nodeSelector: {pool: infra}, tolerations: [{operator: Exists}],
  podLabels: {team: platform}, podAnnotations: {a: b}, affinity: {nodeAffinity: {}}, env: [{name: A, value: b}],
  topologySpreadConstraints: [{maxSkew: 2}], volumes: [{name: v}], volumeMounts: [{name: v, mountPath: /v}],
  podDisruptionBudget: false}`, "Deployment")[0]
	text, err := json.Marshal(pod.Object)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"priorityClassName":"high"`, `"replicas":3`, `"pool":"infra"`, `"tolerations":[{"operator":"Exists"}]`,
		`"team":"platform"`, `"a":"b"`, `"affinity":{"nodeAffinity":{}}`, `{"name":"A","value":"b"}`,
		`"topologySpreadConstraints":[{"maxSkew":2}]`, `{"name":"v"}`, `{"mountPath":"/v","name":"v"}`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the Deployment lacks %s", want)
		}
	}
}

// TestNotes checks that the notes of an observe-only release describe the next step, and those of an upgrade the
// webhook that it may have removed.
func TestNotes(t *testing.T) {
	const goOn, removed = "--set webhook.enabled=true", "this upgrade has removed it"
	for _, one := range []struct {
		values        string
		upgrade       bool
		goOn, removed bool
	}{
		{"", false, true, false},
		{"", true, true, true},
		{"webhook: {enabled: true}", true, false, false},
		{"manager: {enabled: false}", true, false, false},
	} {
		files, err := texts(load(t), one.values, common.ReleaseOptions{IsInstall: !one.upgrade, IsUpgrade: one.upgrade})
		if err != nil {
			t.Fatal(err)
		}
		notes := files["memfit/templates/NOTES.txt"]
		if strings.Contains(notes, goOn) != one.goOn || strings.Contains(notes, removed) != one.removed {
			t.Errorf("%+v:\n%s", one, notes)
		}
	}
}

// TestPackage checks that the packed chart has the release's version and is reproducible.
func TestPackage(t *testing.T) {
	var archives [2][]byte
	for i := range archives {
		dir := t.TempDir()
		cmd := exec.Command("go", "run", "./hack/chart", "package", "-version", "v9.8.7-rc.1", "-o", dir)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "9.8.7-rc.1" {
			t.Fatalf("packing: %v\n%s", err, out)
		}
		var err error
		if archives[i], err = os.ReadFile(filepath.Join(dir, "memfit-9.8.7-rc.1.tgz")); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(archives[0], archives[1]) {
		t.Error("two archives of the same chart differ")
	}
	packed, err := loader.LoadArchive(bytes.NewReader(archives[0]))
	if err != nil {
		t.Fatal(err)
	}
	if packed.Metadata.Version != "9.8.7-rc.1" || packed.AppVersion() != "9.8.7-rc.1" {
		t.Errorf("version %s, appVersion %s", packed.Metadata.Version, packed.AppVersion())
	}
	want, err := render(load(t), "image: {tag: v1}")
	if err != nil {
		t.Fatal(err)
	}
	got, err := render(packed, "image: {tag: v1}")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(byName(t, want), byName(t, got)); diff != "" {
		t.Errorf("objects of the packed chart (-folder +packed):\n%s", diff)
	}
}
