// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const dashboardFile = "config/prometheus/dashboard.json"

type dataSource struct{ Type, UID string }

type dashboard struct {
	UID        string
	Templating struct {
		List []variable
	}
	Panels []panel
}

type variable struct {
	Name, Type string
	Datasource dataSource
	Query      any
}

type panel struct {
	ID                       int
	Title, Description, Type string
	Datasource               dataSource
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct {
		Datasource         dataSource
		Expr, LegendFormat string
	}
}

func loaded(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal(read(t, dashboardFile), &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || len(d.Panels) == 0 {
		t.Fatalf("the dashboard has no UID or no panels: %+v", d)
	}
	return d
}

// TestExpressionsOfTheDashboard checks that each expression parses, uses registered metrics and labels, and selects the
// chosen cluster, and that legends use only labels of the result.
func TestExpressionsOfTheDashboard(t *testing.T) {
	d := registered(t)
	shown := regexp.MustCompile(`\{\{(\w+)\}\}`)
	for _, p := range loaded(t).Panels {
		if p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q has no description or no targets", p.Title)
		}
		for _, target := range p.Targets {
			if d.check(t, p.Title, target.Expr) == nil {
				continue
			}
			for _, metric := range regexp.MustCompile(`(\w+)\{([^}]*)\}|memfit_\w+`).FindAllString(target.Expr, -1) {
				if !strings.Contains(metric, `cluster=~"$cluster"`) {
					t.Errorf("%s: %s does not select the chosen cluster", p.Title, metric)
				}
			}
			grouped := regexp.MustCompile(`by \(([^)]*)\)`).FindStringSubmatch(target.Expr)
			for _, label := range shown.FindAllStringSubmatch(target.LegendFormat, -1) {
				if grouped != nil && !slices.Contains(strings.Split(grouped[1], ", "), label[1]) {
					t.Errorf("%s: the legend has the label %s, the result only %s", p.Title, label[1], grouped[1])
				}
			}
		}
	}
}

// TestVariables checks that the dashboard uses exactly the variables that it defines, and only the chosen data source.
func TestVariables(t *testing.T) {
	d := loaded(t)
	chosen := dataSource{Type: "prometheus", UID: "${datasource}"}
	uses := map[string]bool{}
	addUses := func(text string) {
		for _, found := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(text, -1) {
			uses[found[1]] = true
		}
	}
	for _, p := range d.Panels {
		sources := []dataSource{p.Datasource}
		for _, target := range p.Targets {
			sources = append(sources, target.Datasource)
			addUses(target.Expr)
		}
		for _, source := range sources {
			if source != chosen {
				t.Errorf("panel %q uses data source %+v", p.Title, source)
			}
			addUses(source.UID)
		}
	}
	for i, v := range d.Templating.List {
		if v.Type == "query" && v.Datasource != chosen {
			t.Errorf("variable %s uses data source %+v", v.Name, v.Datasource)
		}
		addUses(fmt.Sprint(v.Query))
		for _, later := range d.Templating.List[i+1:] {
			if strings.Contains(fmt.Sprint(v.Query), "$"+later.Name) {
				t.Errorf("variable %s depends on %s, which is chosen later", v.Name, later.Name)
			}
		}
	}
	for _, v := range d.Templating.List {
		if !uses[v.Name] {
			t.Errorf("variable %s is unused", v.Name)
		}
		delete(uses, v.Name)
	}
	if len(uses) > 0 {
		t.Errorf("undefined variables: %v", uses)
	}
}

// TestGrid checks that panels have unique IDs, fit into Grafana's 24 columns and do not overlap.
func TestGrid(t *testing.T) {
	panels := loaded(t).Panels
	for i, p := range panels {
		a := p.GridPos
		if a.X < 0 || a.W <= 0 || a.H <= 0 || a.X+a.W > 24 {
			t.Errorf("panel %q at %+v is outside the grid", p.Title, a)
		}
		for _, other := range panels[:i] {
			b := other.GridPos
			if p.ID == other.ID {
				t.Errorf("panels %q and %q both have ID %d", other.Title, p.Title, p.ID)
			}
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("panels %q and %q overlap", other.Title, p.Title)
			}
		}
	}
}
