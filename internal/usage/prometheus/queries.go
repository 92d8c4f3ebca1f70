// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/prometheus/common/model"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Queries are Go text/template strings for PromQL, by name; for a missing name, the default is used. Results must have
// the labels namespace, pod and container. The label id, with the container's cgroup path, distinguishes pods of the
// same name; queries for a node require it.
//
// RSS, WorkingSet, Swap and Usage are instant queries for the containers of one node, in bytes. Swap may be missing for
// nodes without swap. Usage is usage without page cache: demand without swap. If Usage is missing (Prometheus has no
// series of file pages), demand is an estimate by RSS. Time is the instant query for the time of measurement, in Unix
// seconds; without it, the time is now. PeakDemand, PeakRSS, PeakWorkingSet, LowDemand, LowRSS and LowWorkingSet are
// range queries for the containers of one workload: the highest and the lowest values of each step, in bytes.
//
// Queries for a node can use {{.Node}}, {{.Address}} and {{.Instance}}, a regular expression for both with any port.
// Queries for a workload can use {{.Namespace}} and {{.Pods}}, a regular expression. These values are quoted PromQL
// strings, so that no name can change the meaning of a query. Without quotes are {{.Step}}, a PromQL duration, and
// {{.Selector}}: empty, or a comma and [Options.Selector].
type Queries map[string]string

// The default queries are for cAdvisor's series as the kubelet exports them. They try two labels for the node, because
// installations differ: kube-prometheus sets node, plain Kubernetes discovery sets instance.
const (
	rss        = `container_memory_rss`
	swap       = `container_memory_swap`
	workingSet = `container_memory_working_set_bytes`
	containers = `container!="",container!="POD"{{.Selector}}`
	onNode     = `{` + containers + `,node={{.Node}}}`
	onInstance = `{` + containers + `,instance=~{{.Instance}}}`
	ofWorkload = `{` + containers + `,namespace={{.Namespace}},pod=~{{.Pods}}}`
	step       = `[{{.Step}}]`
	// subStep evaluates an expression every 30 s: most installations scrape every 15 to 60 s.
	subStep = `[{{.Step}}:30s]`
)

// unreclaimable returns usage without page cache, on cgroup v1 and v2, for a selector.
func unreclaimable(selector string) string {
	return "container_memory_usage_bytes" + selector + " - container_memory_total_active_file_bytes" + selector +
		" - container_memory_total_inactive_file_bytes" + selector
}

// demandOf returns unreclaimable plus swap, if the node has any.
func demandOf(selector string) string {
	return "(" + unreclaimable(selector) + " + " + swap + selector + " or " + unreclaimable(selector) + ")"
}

var defaults = Queries{
	"RSS":            rss + onNode + " or " + rss + onInstance,
	"WorkingSet":     workingSet + onNode + " or " + workingSet + onInstance,
	"Swap":           swap + onNode + " or " + swap + onInstance,
	"Usage":          unreclaimable(onNode) + " or " + unreclaimable(onInstance),
	"Time":           "timestamp(" + workingSet + onNode + ") or timestamp(" + workingSet + onInstance + ")",
	"PeakDemand":     "max_over_time(" + demandOf(ofWorkload) + subStep + ")",
	"PeakRSS":        "max_over_time(" + rss + ofWorkload + step + ")",
	"PeakWorkingSet": "max_over_time(" + workingSet + ofWorkload + step + ")",
	"LowDemand":      "min_over_time(" + demandOf(ofWorkload) + subStep + ")",
	"LowRSS":         "min_over_time(" + rss + ofWorkload + step + ")",
	"LowWorkingSet":  "min_over_time(" + workingSet + ofWorkload + step + ")",
}

// compile parses the queries, with defaults for missing ones, and executes each once to find errors.
func (q Queries) compile() (map[string]*template.Template, error) {
	compiled := make(map[string]*template.Template, len(defaults))
	for name := range q {
		if defaults[name] == "" {
			return nil, fmt.Errorf("the Prometheus query %s: unknown query; must be one of %s",
				name, strings.Join(slices.Sorted(maps.Keys(defaults)), ", "))
		}
	}
	for name, text := range defaults {
		t, err := template.New(name).Option("missingkey=error").Parse(cmp.Or(q[name], text))
		if err != nil {
			return nil, fmt.Errorf("the Prometheus query %s: %w", name, err)
		}
		if _, err = fill(t, everything); err != nil {
			return nil, err
		}
		compiled[name] = t
	}
	return compiled, nil
}

// values are the values that templates can use.
type values map[string]string

// everything has all names of values, to test a template.
var everything = values{
	"Node": "", "Address": "", "Instance": "", "Namespace": "", "Pods": "", "Step": "", "Selector": "",
}

// matcher matches a label matcher of PromQL.
const matcher = ` *[a-zA-Z_][a-zA-Z0-9_]* *(=|!=|=~|!~) *"([^"\\\n]|\\.)*" *`

var matchers = regexp.MustCompile("^" + matcher + "(," + matcher + ")*$")

func nodeValues(n usage.Node) values {
	var names []string
	for _, name := range []string{n.Name, n.Address} {
		if name != "" {
			names = append(names, regexp.QuoteMeta(name))
		}
	}
	instance := `\[?(` + strings.Join(names, "|") + `)\]?(:[0-9]+)?`
	return values{"Node": strconv.Quote(n.Name), "Address": strconv.Quote(n.Address), "Instance": strconv.Quote(instance)}
}

func workloadValues(w memory.WorkloadRef, step time.Duration) values {
	return values{
		"Namespace": strconv.Quote(w.Namespace), "Pods": strconv.Quote(podPattern(w)), "Step": model.Duration(step).String(),
	}
}

func fill(t *template.Template, v values) (string, error) {
	var query strings.Builder
	if err := t.Execute(&query, v); err != nil {
		return "", fmt.Errorf("the Prometheus query %s: %w", t.Name(), err)
	}
	return query.String(), nil
}

const (
	// generated are the characters of generated suffixes: five for a pod, up to ten for the hash of a pod template. They
	// exclude vowels, so most names that users choose do not match.
	generated   = `[bcdfghjklmnpqrstvwxz2456789]`
	longestBase = 58 // characters before the suffix of a generated name: 63 minus five
)

// podPattern returns a regular expression, anchored by Prometheus, for the names of all pods that a workload has ever
// had. It may also match pods of a workload whose name only has an additional suffix like a hash.
func podPattern(w memory.WorkloadRef) string {
	switch workloadkind.Like(w.APIVersion, w.Kind).PodNames {
	case workloadkind.SameName:
		return regexp.QuoteMeta(w.Name)
	case workloadkind.Ordinal:
		return regexp.QuoteMeta(w.Name) + "-[0-9]+"
	case workloadkind.Generated:
		return pattern(w.Name, "", 0)
	case workloadkind.GeneratedWithIndex:
		return pattern(w.Name, "(-[0-9]+)?", 6) // between: the index of an indexed Job
	case workloadkind.GeneratedWithTime:
		return pattern(w.Name, "-[0-9]{8,}(-[0-9]+)?", 15) // between: minutes since 1970
	case workloadkind.GeneratedWithHash:
		return pattern(w.Name, "-"+generated+"{1,10}", 11) // between: the ReplicaSet's hash
	default:
		return pattern(w.Name, "(-"+generated+"{1,10})?", 11)
	}
}

// pattern returns a pattern of name, the pattern between (which matches at most width characters, without an optional
// index), and five generated characters. Kubernetes truncates names that are too long.
func pattern(name, between string, width int) string {
	if len(name)+width+len("-") <= longestBase {
		return regexp.QuoteMeta(name) + between + "-" + generated + "{5}"
	}
	// Kubernetes keeps at least this part of a name. Indexed Jobs truncate names further, for the index.
	kept := longestBase - min(width, len("-99999-"))
	return regexp.QuoteMeta(name[:min(len(name), kept)]) + "[a-z0-9.-]*" + generated + "{5}"
}
