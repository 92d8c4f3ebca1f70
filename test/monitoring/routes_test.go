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

// TestRoutes: the example of docs/guide/install.md is a configuration of Alertmanager, and each alert reaches those
// whom it concerns.
func TestRoutes(t *testing.T) {
	example := regexp.MustCompile("(?s)```yaml\n(# alertmanager.yml\n.*?)```").
		FindSubmatch(read(t, "docs/guide/install.md"))
	if example == nil {
		t.Fatal("docs/guide/install.md has no alertmanager.yml")
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
			t.Errorf("%s goes to %v, want %s", a.Alert, got, want)
		}
		if labels["namespace"] != "" {
			labels["namespace"] = "other"
			if got := receivers(labels); !slices.Equal(got, []string{"platform"}) {
				t.Errorf("%s of another namespace goes to %v, want the platform", a.Alert, got)
			}
		}
	}
	if teams == 0 || teams == len(all) {
		t.Errorf("%d of %d alerts are about workloads", teams, len(all))
	}
}
