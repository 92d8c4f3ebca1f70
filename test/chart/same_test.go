// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"
)

// pair is a way to install memfit: folders of config/ for kustomize, and the equivalent values for Helm.
type pair struct {
	resources, components []string
	values                string
}

// treeNames are the values for the namespace and the placeholder images of a tree of config/.
const treeNames = `
namespace: {create: true}
image: {repository: controller, tag: latest}
agent: {image: {repository: agent, tag: latest}}
`

// base are the values of all pairs, which a pair's own values override. Unlike the chart, trees enable the webhook.
const base = treeNames + `
webhook: {enabled: true}
`

var pairs = map[string]pair{
	"default": {resources: []string{"default"}},
	"self-managed certificates": {
		resources: []string{"overlays/self-managed-certs"},
		values: `
certificates: {issuer: self-managed}
rights: {resizePods: true, evictPods: true, readMetricsAPI: true}
`,
	},
	"observe-only": {resources: []string{"overlays/observe-only"}, values: `webhook: {enabled: false}`},
	"keys of ConfigMaps": {
		resources: []string{"overlays/read-configmap-keys"}, values: `rights: {readConfigMapKeys: true}`,
	},
	"agent watch": {resources: []string{"overlays/agent-watch"}, values: `agent: {tier: watch}`},
	"agent see":   {resources: []string{"overlays/agent-see"}, values: `agent: {tier: see}`},
	"lab": {
		resources: []string{"overlays/lab"},
		values: `
image: {repository: memfit.test/manager, tag: dev, pullPolicy: Never}
rights: {resizePods: true, evictPods: true, readMetricsAPI: true}
`,
	},
	"agent alone": {
		resources: []string{"overlays/lab-agent"},
		values: `
manager: {enabled: false}
agent: {tier: see, image: {repository: memfit.test/agent, tag: dev, pullPolicy: Never}}
`,
	},
	"CRDs alone": {resources: []string{"crd"}, values: `manager: {enabled: false}`},
	"resizing": {
		resources: []string{"default"}, components: []string{"rbac/resize-pods"}, values: `rights: {resizePods: true}`,
	},
	"evicting": {
		resources: []string{"default"}, components: []string{"rbac/evict-pods"}, values: `rights: {evictPods: true}`,
	},
	"metrics API": {
		resources: []string{"default"}, components: []string{"rbac/read-metrics-api"},
		values: `rights: {readMetricsAPI: true}`,
	},
	"client CA": {
		resources: []string{"default"}, components: []string{"client-ca"},
		values: `webhook: {clientCA: {enabled: true}}`,
	},
	"restricted egress": {
		resources: []string{"default"}, components: []string{"network-policy/restrict-egress"},
		values: `networkPolicy: {restrictEgress: true}`,
	},
	"Prometheus": {
		resources: []string{"default"}, components: []string{"prometheus"},
		values: `monitoring: {serviceMonitor: {enabled: true}, rules: {enabled: true}, dashboard: {enabled: true}}`,
	},
	"Prometheus, observe-only": {
		resources: []string{"overlays/observe-only"}, components: []string{"prometheus-unverified"},
		values: `
webhook: {enabled: false}
monitoring: {serviceMonitor: {enabled: true}, rules: {enabled: true}, dashboard: {enabled: true}}
`,
	},
	"Prometheus, self-managed certificates": {
		resources: []string{"overlays/self-managed-certs"}, components: []string{"prometheus-unverified"},
		values: `
certificates: {issuer: self-managed}
rights: {resizePods: true, evictPods: true, readMetricsAPI: true}
monitoring: {serviceMonitor: {enabled: true}, rules: {enabled: true}, dashboard: {enabled: true}}
`,
	},
	"all at once": {
		resources: []string{"default"},
		components: []string{
			"agent/see", "client-ca", "network-policy/restrict-egress", "prometheus", "rbac/evict-pods",
			"rbac/read-configmap-keys", "rbac/read-metrics-api", "rbac/resize-pods",
		},
		values: `
agent: {tier: see}
webhook: {clientCA: {enabled: true}}
networkPolicy: {restrictEgress: true}
monitoring: {serviceMonitor: {enabled: true}, rules: {enabled: true}, dashboard: {enabled: true}}
rights: {evictPods: true, readConfigMapKeys: true, readMetricsAPI: true, resizePods: true}
`,
	},
}

// TestTheChartIsTheTree checks that Helm and kustomize install the same objects. It ignores the chart's managed-by
// label and its annotation that keeps CRDs.
func TestTheChartIsTheTree(t *testing.T) {
	c := load(t)
	for name, p := range pairs {
		t.Run(name, func(t *testing.T) {
			sameObjects(t, c, merged(t, base, p.values), p)
		})
	}
}

// TestAFirstInstallObserves checks that the chart without values is observe-only: it changes no pods.
func TestAFirstInstallObserves(t *testing.T) {
	sameObjects(t, load(t), treeNames, pair{resources: []string{"overlays/observe-only"}})
	if hooks := all(t, load(t), "", "MutatingWebhookConfiguration"); len(hooks) != 0 {
		t.Errorf("without values there are %d pod webhooks, want none", len(hooks))
	}
}

// sameObjects checks that Helm renders the objects that kustomize builds.
func sameObjects(t *testing.T, c *chartv2.Chart, values string, p pair) {
	t.Helper()
	objects, err := render(c, values)
	if err != nil {
		t.Fatal(err)
	}
	want, got := byName(t, overlay(t, p.resources, p.components)), byName(t, objects)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("object names (-kustomize +chart):\n%s", diff)
	}
	for key := range want {
		if diff := cmp.Diff(want[key], got[key]); got[key] != nil && diff != "" {
			t.Errorf("%s (-kustomize +chart):\n%s", key, diff)
		}
	}
	if t.Failed() {
		t.Log("make manifests writes most templates of charts/memfit from config/, the others are written by hand")
	}
}

// TestEveryTreeHasAPair checks that each overlay and each component of config/ has equivalent values.
func TestEveryTreeHasAPair(t *testing.T) {
	known := map[string]bool{}
	for _, p := range pairs {
		for _, folder := range slices.Concat(p.resources, p.components) {
			parts(t, folder, known)
		}
	}
	top := filepath.Join(root, "config")
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && path == filepath.Join(top, "samples") {
			return fs.SkipDir // examples for users; memfit does not install them
		}
		if err == nil && path == filepath.Join(top, "compress-evidence") {
			return fs.SkipDir // for labs only, which use kustomize
		}
		if err != nil || entry.Name() != "kustomization.yaml" {
			return err
		}
		folder, err := filepath.Rel(top, filepath.Dir(path))
		if !known[filepath.ToSlash(folder)] {
			t.Errorf("config/%s has no equivalent values: add a pair to pairs in test/chart/same_test.go", folder)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// parts adds a folder of config/, and all folders that its kustomization includes, to known.
func parts(t *testing.T, folder string, known map[string]bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config", folder, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var k struct{ Resources, Components []string }
	if err := yaml.Unmarshal(text, &k); err != nil {
		t.Fatal(err)
	}
	known[folder] = true
	for _, part := range slices.Concat(k.Resources, k.Components) {
		if path.Ext(part) == "" {
			parts(t, path.Join(folder, part), known)
		}
	}
}

// merged joins values; later values override earlier ones.
func merged(t *testing.T, texts ...string) string {
	t.Helper()
	out := map[string]any{}
	for _, text := range texts {
		over := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &over); err != nil {
			t.Fatalf("%s: %v", strings.TrimSpace(text), err)
		}
		out = join(out, over)
	}
	text, err := yaml.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func join(under, over map[string]any) map[string]any {
	for key, value := range over {
		if below, ok := under[key].(map[string]any); ok {
			if above, ok := value.(map[string]any); ok {
				under[key] = join(below, above)
				continue
			}
		}
		under[key] = value
	}
	return under
}
