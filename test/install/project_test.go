// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestProjectTellsTheTruth: kubebuilder and tools of its kind go by PROJECT. What it says of kinds and webhooks is what
// config/default installs.
func TestProjectTellsTheTruth(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "PROJECT"))
	if err != nil {
		t.Fatal(err)
	}
	var project struct {
		Domain    string
		Resources []struct {
			API      *struct{ Namespaced bool }
			Kind     string
			Webhooks struct{ Validation, Defaulting bool }
		}
	}
	if err := yaml.Unmarshal(text, &project); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, r := range project.Resources {
		if r.API != nil {
			got = append(got, "kind "+r.Kind+map[bool]string{true: " Namespaced", false: " Cluster"}[r.API.Namespaced])
		}
		if r.Webhooks.Validation {
			got = append(got, "validating "+strings.ToLower(r.Kind)+"s")
		}
		if r.Webhooks.Defaulting {
			got = append(got, "mutating "+strings.ToLower(r.Kind)+"s")
		}
	}
	for _, o := range build(t, defaultTree) {
		switch o.GetKind() {
		case "CustomResourceDefinition":
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
			want = append(want, "kind "+kind+" "+scope)
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
			for _, hook := range hooks {
				rules, _, _ := unstructured.NestedSlice(hook.(map[string]any), "rules")
				for _, rule := range rules {
					resources, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resources")
					for _, resource := range resources {
						want = append(want, strings.ToLower(strings.TrimSuffix(o.GetKind(), "WebhookConfiguration"))+" "+resource)
					}
				}
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("PROJECT (-installed +PROJECT):\n%s", diff)
	}
}
