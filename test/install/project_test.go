// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestProjectFile checks PROJECT, which kubebuilder reads: its kinds and webhooks are those of config/default, its
// controllers those of controllers/.
func TestProjectFile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "PROJECT"))
	if err != nil {
		t.Fatal(err)
	}
	var project struct {
		Domain    string
		Resources []struct {
			API        *struct{ Namespaced bool }
			Kind       string
			Controller bool
			Webhooks   struct{ Validation, Defaulting bool }
		}
	}
	if err := yaml.Unmarshal(text, &project); err != nil {
		t.Fatal(err)
	}
	got, want := []string(nil), reconciled(t)
	for _, r := range project.Resources {
		if r.API != nil {
			got = append(got, "kind "+r.Kind+map[bool]string{true: " Namespaced", false: " Cluster"}[r.API.Namespaced])
		}
		if r.Controller {
			got = append(got, "controller of "+r.Kind)
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

// reconcilerOf matches the registration of a controller for a kind whose objects it reconciles by their own names.
var reconcilerOf = regexp.MustCompile(
	`For\(&v1alpha1\.(\w+)\{\}|&v1alpha1\.(\w+)\{\}, handler\.TypedEnqueueRequestsFromMapFunc\(keyOf\(`,
)

// reconciled returns "controller of KIND" for each kind with a controller.
func reconciled(t *testing.T) (out []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "controllers", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range reconcilerOf.FindAllStringSubmatch(string(text), -1) {
			out = append(out, "controller of "+found[1]+found[2])
		}
	}
	return out
}
