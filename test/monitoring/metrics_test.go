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

// root is the top of the repository, seen from this package.
const root = "../.."

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// onTarget are the labels that Prometheus gives every series of a target, as the Prometheus operator sets them for a
// ServiceMonitor, and the one that tells several clusters apart where their series are together.
var onTarget = []string{"namespace", "service", "pod", "container", "endpoint", "job", "instance", "cluster"}

// described are names of metrics, and their labels.
type described map[string][]string

// registered is what the manager registers, as its page says, which cmd/manager holds to the code: the code itself
// would be compiled here once more, and all of Kubernetes with it, beside Prometheus' versions of what it imports.
func registered(t *testing.T) described {
	t.Helper()
	d := described{}
	row := regexp.MustCompile("(?m)^\\| `(memfit_\\w+)` \\| \\w+ \\| ([^|]*) \\|")
	label := regexp.MustCompile(`\w+`)
	for _, found := range row.FindAllStringSubmatch(string(read(t, "docs/reference/manager.md")), -1) {
		d[found[1]] = label.FindAllString(found[2], -1)
	}
	if got := d["memfit_oom_kills_total"]; !slices.Equal(got, []string{"container", "kind", "namespace", "workload"}) {
		t.Fatalf("labels are read wrongly: %v", d)
	}
	return d
}

// others are metrics of the process that Prometheus' library registers by itself; they have no labels.
var others = []string{
	"up", "process_resident_memory_bytes", "go_memory_classes_heap_objects_bytes", "go_memstats_heap_alloc_bytes",
}

// labelsOf are the labels a series of this name has; false if nothing registers it.
func (d described) labelsOf(name string) ([]string, bool) {
	if slices.Contains(others, name) {
		return onTarget, true
	}
	own, ok := d[name]
	if base, isBucket := strings.CutSuffix(name, "_bucket"); !ok && isBucket {
		if own, ok = d[base]; ok {
			own = append(slices.Clone(own), "le")
		}
	}
	return append(slices.Clone(own), onTarget...), ok
}

// check parses an expression and reports what it asks for that no series has.
func (d described) check(t *testing.T, where, expr string) parser.Expr {
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
					t.Errorf("%s: %s has no label %q, only %v", where, n.Name, m.Name, has)
				}
			}
		case *parser.AggregateExpr:
			parser.Inspect(n.Expr, func(inner parser.Node, _ []parser.Node) error {
				if s, ok := inner.(*parser.VectorSelector); ok {
					has, _ := d.labelsOf(s.Name)
					for _, by := range n.Grouping {
						if !slices.Contains(has, by) {
							t.Errorf("%s: %s is grouped by %q and has only %v", where, s.Name, by, has)
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

// TestNamesOfTheMonitorStay: a metric that has a label which the target has too keeps its own only if the
// ServiceMonitor reports it. Else every alert names the namespace of memfit and the container of the manager.
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
