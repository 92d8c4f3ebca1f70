// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/alertmanager/config"
	"github.com/prometheus/alertmanager/dispatch"
	"github.com/prometheus/common/model"
)

// TestRoutes checks that the example in docs/guide/install.md is a valid configuration of Alertmanager, and that it
// routes alerts about workloads to the namespace's team and all other alerts to the platform team.
func TestRoutes(t *testing.T) {
	example := regexp.MustCompile("(?s)```yaml\n(# alertmanager.yml\n.*?)```").
		FindSubmatch(read(t, "docs/guide/install.md"))
	if example == nil {
		t.Fatal("alertmanager.yml not found in docs/guide/install.md")
	}
	c, err := config.Load(string(example[1]))
	if err != nil {
		t.Fatal(err)
	}
	root := dispatch.NewRoute(c.Route, nil)
	receivers := func(labels model.LabelSet) (names []string) {
		for _, route := range root.Match(labels) {
			names = append(names, route.RouteOpts.Receiver)
		}
		return names
	}
	all, _ := alerts(t)
	teams := 0
	for _, a := range all {
		labels := model.LabelSet{"alertname": model.LabelValue(a.Alert), "severity": model.LabelValue(a.Labels["severity"])}
		want := "platform"
		if regexp.MustCompile(`by \(namespace, workload`).MatchString(a.Expr) {
			labels["namespace"], want = "shop", "shop"
			if labels["severity"] == "critical" {
				want = "shop-on-call"
			}
			teams++
		}
		if got := receivers(labels); !slices.Equal(got, []string{want}) {
			t.Errorf("%s is routed to %v, want %s", a.Alert, got, want)
		}
		if labels["namespace"] != "" {
			labels["namespace"] = "other"
			if got := receivers(labels); !slices.Equal(got, []string{"platform"}) {
				t.Errorf("%s of another namespace is routed to %v, want platform", a.Alert, got)
			}
		}
	}
	if teams == 0 || teams == len(all) {
		t.Errorf("%d of %d alerts are about workloads, want some but not all", teams, len(all))
	}
}
