// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const (
	rulesFile   = "config/prometheus/rules.yaml"
	historyFile = "test/monitoring/testdata/rules_test.yaml"
	runbooks    = "docs/guide/troubleshooting.md"
)

type alert struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

// alerts returns the alerts of the PrometheusRule, and its spec, which is also a Prometheus rules file.
func alerts(t *testing.T) (all []alert, spec []byte) {
	t.Helper()
	var rule struct{ Spec json.RawMessage }
	if err := yaml.Unmarshal(read(t, rulesFile), &rule); err != nil {
		t.Fatal(err)
	}
	var groups struct{ Groups []struct{ Rules []alert } }
	if err := json.Unmarshal(rule.Spec, &groups); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("no alerts in %s", rulesFile)
	}
	return all, rule.Spec
}

// TestMetricsOfAlertsExist checks the metrics and labels of alerts. An alert on a renamed metric would never fire.
func TestMetricsOfAlertsExist(t *testing.T) {
	all, _ := alerts(t)
	d := registered(t)
	for _, a := range all {
		d.check(t, a.Alert, a.Expr)
	}
}

// TestRunbooks checks that each alert's runbook_url is a heading of runbooks, and that its section names the alert.
func TestRunbooks(t *testing.T) {
	sections := map[string]string{}
	for _, section := range strings.Split(string(read(t, runbooks)), "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		plain := regexp.MustCompile("[^a-z0-9 -]").ReplaceAllString(strings.ToLower(heading), "")
		sections[strings.ReplaceAll(plain, " ", "-")] = text
	}
	all, _ := alerts(t)
	for _, a := range all {
		page, anchor, _ := strings.Cut(a.Annotations["runbook_url"], "#")
		text, ok := sections[anchor]
		switch {
		case !strings.HasSuffix(page, "/"+runbooks):
			t.Errorf("%s: runbook_url %q is not in %s", a.Alert, a.Annotations["runbook_url"], runbooks)
		case !ok:
			t.Errorf("%s: %s has no heading for #%s", a.Alert, runbooks, anchor)
		case !strings.Contains(text, "`"+a.Alert+"`"):
			t.Errorf("%s: section #%s of %s does not name the alert", a.Alert, anchor, runbooks)
		}
	}
}

// TestHistories checks that the histories test each alert both ways: in one it fires, and in one it is silent although
// all its metrics exist.
func TestHistories(t *testing.T) {
	var histories struct {
		Tests []struct {
			InputSeries []struct{ Series string } `json:"input_series"`
			Asked       []struct {
				Alert string `json:"alertname"`
				Fires []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(read(t, historyFile), &histories); err != nil {
		t.Fatal(err)
	}
	all, _ := alerts(t)
	d := registered(t)
	for _, a := range all {
		parsed := d.check(t, a.Alert, a.Expr)
		fires, silent := false, false
		for _, history := range histories.Tests {
			var present []string
			for _, s := range history.InputSeries {
				series := d.check(t, historyFile, s.Series)
				present = append(present, series.(*parser.VectorSelector).Name)
			}
			for _, asked := range history.Asked {
				if asked.Alert == a.Alert {
					fires = fires || len(asked.Fires) > 0
					silent = silent || len(asked.Fires) == 0 && usesOnly(parsed, present)
				}
			}
		}
		if !fires || !silent {
			t.Errorf("histories of %s: one in which it fires: %t, one in which it is silent: %t, want both", a.Alert, fires,
				silent)
		}
	}
}

func usesOnly(expr parser.Expr, names []string) bool {
	only := true
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			only = only && slices.Contains(names, s.Name)
		}
		return nil
	})
	return only
}

// TestAlerts lints the alerts and tests them with the histories, with the promtool that go.mod pins.
func TestAlerts(t *testing.T) {
	_, spec := alerts(t)
	dir := t.TempDir()
	for name, content := range map[string][]byte{"rules.yaml": spec, "rules_test.yaml": read(t, historyFile)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", filepath.Join(dir, "rules.yaml")},
		{"test", "rules", filepath.Join(dir, "rules_test.yaml")},
	} {
		// The tag omits service discovery with its cloud SDKs. go tool has no -tags, so use go run.
		run := []string{"run", "-tags", "remove_all_sd", "github.com/prometheus/prometheus/cmd/promtool"}
		cmd := exec.CommandContext(t.Context(), "go", append(run, arguments...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", arguments, err, out)
		}
	}
}
