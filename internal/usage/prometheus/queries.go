// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/prometheus/common/model"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
)

// Queries are Go text/template strings that give PromQL; an empty one means the default. What they return must have
// the labels namespace, pod and container; a label id with the container's cgroup path distinguishes pods of the same
// name.
//
// Every value is a PromQL string, quotes included, so no name can change what a query means: {{.Node}} and
// {{.Address}} of a node (and {{.Instance}}, a regular expression for both with any port), {{.Namespace}} and
// {{.Pods}} (a regular expression) of a workload. {{.Step}} is a PromQL duration, without quotes.
type Queries struct {
	// RSS and WorkingSet are instant queries for the containers of one node, in bytes; Swap is one for what is swapped
	// out, and may have no answer: nodes without swap have no such series.
	RSS, WorkingSet, Swap string
	// Usage is the instant query for what counts against the limit without page cache, in bytes: demand without swap.
	// Installations that drop the series of file pages have no answer; demand is then an estimate by RSS.
	Usage string
	// Time is the instant query for when those were measured, in Unix seconds. A container without one counts as measured
	// now.
	Time string
	// PeakDemand, PeakRSS, PeakWorkingSet, LowDemand, LowRSS and LowWorkingSet are range queries for the containers of one
	// workload: the highest and lowest of each step, in bytes.
	PeakDemand, PeakRSS, PeakWorkingSet, LowDemand, LowRSS, LowWorkingSet string
}

// The default queries are for cAdvisor's series as the kubelet exports them. The label that names the node differs
// between installations: kube-prometheus has node, plain Kubernetes discovery has instance. Both are asked for; equal
// series count once.
const (
	rss        = `container_memory_rss`
	swap       = `container_memory_swap`
	workingSet = `container_memory_working_set_bytes`
	containers = `container!="",container!="POD"`
	onNode     = `{` + containers + `,node={{.Node}}}`
	onInstance = `{` + containers + `,instance=~{{.Instance}}}`
	ofWorkload = `{` + containers + `,namespace={{.Namespace}},pod=~{{.Pods}}}`
	step       = `[{{.Step}}]`
	// subStep has a point for each scrape: most installations scrape every 15 to 60 s.
	subStep = `[{{.Step}}:30s]`
)

// unreclaimable is usage without page cache, on cgroup v1 and v2, for a selector.
func unreclaimable(selector string) string {
	return "container_memory_usage_bytes" + selector + " - container_memory_total_active_file_bytes" + selector +
		" - container_memory_total_inactive_file_bytes" + selector
}

// demandOf is that with swap, where the node has any.
func demandOf(selector string) string {
	return "(" + unreclaimable(selector) + " + " + swap + selector + " or " + unreclaimable(selector) + ")"
}

func (q Queries) compile() (c compiled, err error) {
	for _, t := range []struct {
		into                  **template.Template
		name, text, otherwise string
	}{
		{&c.rss, "RSS", q.RSS, rss + onNode + " or " + rss + onInstance},
		{&c.workingSet, "WorkingSet", q.WorkingSet, workingSet + onNode + " or " + workingSet + onInstance},
		{&c.swap, "Swap", q.Swap, swap + onNode + " or " + swap + onInstance},
		{&c.usage, "Usage", q.Usage, unreclaimable(onNode) + " or " + unreclaimable(onInstance)},
		{&c.time, "Time", q.Time, "timestamp(" + workingSet + onNode + ") or timestamp(" + workingSet + onInstance + ")"},
		{&c.peakDemand, "PeakDemand", q.PeakDemand, "max_over_time(" + demandOf(ofWorkload) + subStep + ")"},
		{&c.peakRSS, "PeakRSS", q.PeakRSS, "max_over_time(" + rss + ofWorkload + step + ")"},
		{&c.peakWorkingSet, "PeakWorkingSet", q.PeakWorkingSet, "max_over_time(" + workingSet + ofWorkload + step + ")"},
		{&c.lowDemand, "LowDemand", q.LowDemand, "min_over_time(" + demandOf(ofWorkload) + subStep + ")"},
		{&c.lowRSS, "LowRSS", q.LowRSS, "min_over_time(" + rss + ofWorkload + step + ")"},
		{&c.lowWorkingSet, "LowWorkingSet", q.LowWorkingSet, "min_over_time(" + workingSet + ofWorkload + step + ")"},
	} {
		if t.text == "" {
			t.text = t.otherwise
		}
		if *t.into, err = template.New(t.name).Option("missingkey=error").Parse(t.text); err != nil {
			return c, fmt.Errorf("the Prometheus query %s: %w", t.name, err)
		}
		if _, err = fill(*t.into, everything); err != nil {
			return c, err
		}
	}
	return c, nil
}

type compiled struct {
	rss, workingSet, swap, usage, time  *template.Template
	peakDemand, peakRSS, peakWorkingSet *template.Template
	lowDemand, lowRSS, lowWorkingSet    *template.Template
}

// values are what a template may use.
type values map[string]string

// everything has each value once, to try a template before it is needed.
var everything = values{"Node": "", "Address": "", "Instance": "", "Namespace": "", "Pods": "", "Step": ""}

func nodeValues(n usage.Node) values {
	names := make([]string, 0, 2)
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
