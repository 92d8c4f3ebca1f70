// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// root is the repository's root directory, relative to this package.
const root = "../.."

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// targetLabels are the labels that Prometheus adds to every series of a ServiceMonitor's target, and "cluster", which
// distinguishes clusters in a shared Prometheus.
var targetLabels = []string{"namespace", "service", "pod", "container", "endpoint", "job", "instance", "cluster"}

// metrics maps names of metrics to their labels.
type metrics map[string][]string

// registered returns the manager's metrics from its page, which cmd/manager compares with the code. Importing the code
// would compile it and Kubernetes again, with Prometheus' versions of the dependencies.
func registered(t *testing.T) metrics {
	t.Helper()
	d := metrics{}
	row := regexp.MustCompile("(?m)^\\| `(memfit_\\w+)` \\| \\w+ \\| ([^|]*) \\|")
	label := regexp.MustCompile(`\w+`)
	for _, found := range row.FindAllStringSubmatch(string(read(t, "docs/reference/manager.md")), -1) {
		d[found[1]] = label.FindAllString(found[2], -1)
	}
	if got := d["memfit_oom_kills_total"]; !slices.Equal(got, []string{"container", "kind", "namespace", "workload"}) {
		t.Fatalf("the labels in docs/reference/manager.md were parsed incorrectly: %v", d)
	}
	return d
}

// others are metrics that Prometheus and its library add; they have no labels of their own.
var others = []string{
	"up", "process_resident_memory_bytes", "go_memory_classes_heap_objects_bytes", "go_memstats_heap_alloc_bytes",
}

// labelsOf returns the labels of a series of this name, and false if nothing registers it.
func (d metrics) labelsOf(name string) ([]string, bool) {
	if slices.Contains(others, name) {
		return targetLabels, true
	}
	own, ok := d[name]
	if base, isBucket := strings.CutSuffix(name, "_bucket"); !ok && isBucket {
		if own, ok = d[base]; ok {
			own = append(slices.Clone(own), "le")
		}
	}
	return append(slices.Clone(own), targetLabels...), ok
}

// check parses an expression and reports metrics and labels that do not exist.
func (d metrics) check(t *testing.T, where, expr string) parser.Expr {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return nil
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			has, ok := d.labelsOf(n.Name)
			if !ok {
				t.Errorf("%s uses %s, which the manager does not register", where, n.Name)
			}
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel && !slices.Contains(has, m.Name) {
					t.Errorf("%s: label %q of %s not found, want one of %v", where, m.Name, n.Name, has)
				}
			}
		case *parser.AggregateExpr:
			parser.Inspect(n.Expr, func(inner parser.Node, _ []parser.Node) error {
				if s, ok := inner.(*parser.VectorSelector); ok {
					has, _ := d.labelsOf(s.Name)
					for _, by := range n.Grouping {
						if !slices.Contains(has, by) {
							t.Errorf("%s: %s is grouped by %q, but its labels are %v", where, s.Name, by, has)
						}
					}
				}
				return nil
			})
		}
		return nil
	})
	return parsed
}

// TestNamesOfTheMonitorStay checks that the ServiceMonitor sets honorLabels. Otherwise the target's labels replace a
// metric's labels of the same name, and every alert names memfit's namespace and the manager's container.
func TestNamesOfTheMonitorStay(t *testing.T) {
	var monitor struct {
		Spec struct {
			Endpoints []struct{ HonorLabels bool }
		}
	}
	if err := yaml.Unmarshal(read(t, "config/prometheus/monitor.yaml"), &monitor); err != nil {
		t.Fatal(err)
	}
	if len(monitor.Spec.Endpoints) != 1 || !monitor.Spec.Endpoints[0].HonorLabels {
		t.Errorf("endpoints of the ServiceMonitor without honorLabels: true: %+v", monitor.Spec.Endpoints)
	}
}
