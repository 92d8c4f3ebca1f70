// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	rulesFile     = "config/prometheus/rules.yaml"
	dashboardFile = "config/prometheus/dashboard.json"
)

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestMetricsExist: rules and dashboard ask for metrics that the code has. A renamed one would leave an alert silent
// for ever.
func TestMetricsExist(t *testing.T) {
	var registered []string
	for _, room := range []string{"controllers/workload", "controllers/usage", "webhooks/pod"} {
		files, err := filepath.Glob(filepath.Join(root, room, "metrics*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no metrics in %s: %v", room, err)
		}
		for _, file := range files {
			for _, name := range regexp.MustCompile(`Name:\s+"(memfit_[a-z_]+)"`).FindAllSubmatch(
				read(t, filepath.Join(room, filepath.Base(file))), -1,
			) {
				registered = append(registered, string(name[1]))
			}
		}
	}
	for _, file := range []string{rulesFile, dashboardFile} {
		used := regexp.MustCompile(`memfit_[a-z_]+`).FindAllString(string(read(t, file)), -1)
		if len(used) == 0 {
			t.Errorf("%s uses no metric of memfit", file)
		}
		for _, name := range used {
			if !slices.Contains(registered, strings.TrimSuffix(name, "_bucket")) {
				t.Errorf("%s uses %s, which the code does not have: %v", file, name, registered)
			}
		}
	}
}

// TestRunbooks: every alert sends its reader to a heading that exists.
func TestRunbooks(t *testing.T) {
	anchors := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllSubmatch(read(t, "docs/troubleshooting.md"), -1) {
		plain := regexp.MustCompile("[^a-z0-9 -]").ReplaceAllString(strings.ToLower(string(heading[1])), "")
		anchors[strings.ReplaceAll(plain, " ", "-")] = true
	}
	alerts := strings.Count(string(read(t, rulesFile)), "- alert:")
	links := regexp.MustCompile(`runbook_url: \S+/docs/troubleshooting\.md#(\S+)`).FindAllSubmatch(read(t, rulesFile), -1)
	if len(links) != alerts {
		t.Errorf("%d alerts with %d runbooks in docs/troubleshooting.md", alerts, len(links))
	}
	for _, link := range links {
		if !anchors[string(link[1])] {
			t.Errorf("docs/troubleshooting.md has no heading for #%s", link[1])
		}
	}
}

func TestDashboard(t *testing.T) {
	var dashboard struct {
		UID    string
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, dashboardFile), &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.UID == "" || len(dashboard.Panels) == 0 {
		t.Fatalf("no dashboard: %+v", dashboard)
	}
	for _, panel := range dashboard.Panels {
		if panel.Description == "" || len(panel.Targets) == 0 {
			t.Errorf("panel %q has no description or shows nothing", panel.Title)
		}
	}
}

// TestMonitoringComponent: added to config/default it names things that are there.
func TestMonitoringComponent(t *testing.T) {
	objects := build(t, "test/install/testdata/monitored")
	monitor := find(t, objects, "ServiceMonitor", "memfit-controller-manager-metrics")
	selector, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	service := find(t, objects, "Service", "memfit-controller-manager-metrics-service")
	for label, value := range selector {
		if service.GetLabels()[label] != value {
			t.Errorf("the ServiceMonitor wants %s=%s, the Service has %v", label, value, service.GetLabels())
		}
	}
	webhook := find(t, objects, "Service", "memfit-webhook-service")
	if webhook.GetLabels()["control-plane"] != "" {
		t.Error("the ServiceMonitor selects the webhook's Service too")
	}
	for _, object := range []built{
		monitor, find(t, objects, "PrometheusRule", "memfit"), find(t, objects, "ConfigMap", "memfit-dashboard"),
	} {
		if object.GetNamespace() != namespace {
			t.Errorf("%s is in namespace %q", object.GetKind(), object.GetNamespace())
		}
	}
}

// TestAlerts plays histories through the alerts, where promtool is installed.
func TestAlerts(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (it comes with the package prometheus)")
	}
	var rule struct{ Spec json.RawMessage }
	if err := yaml.Unmarshal(read(t, rulesFile), &rule); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"rules.yaml": rule.Spec, "rules_test.yaml": read(t, "test/install/testdata/rules_test.yaml"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(promtool, "test", "rules", "rules_test.yaml")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
