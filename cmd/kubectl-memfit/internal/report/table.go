// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/runtimes"
)

// stepsShown bounds the workloads with next steps below the table.
const stepsShown = 3

// statusColumns and statusWide are the columns of the table.
var (
	statusColumns = []string{"WORKLOAD", "PROFILE", "RUNTIME", "LIMIT", "USE", "OOMS", "MEMORY", "APPLIED"}
	statusWide    = []string{"REQUEST", "CONFIDENCE", "PODS", "SUMMARY"}
)

// list converts the status to a list.
func (s *Status) list() *listing.List {
	l := &listing.List{
		Kind: "WorkloadStatusList", Columns: statusColumns, Wide: statusWide, More: map[string]any{},
	}
	if len(s.Problems) > 0 {
		l.More["problems"] = s.Problems
	}
	if len(s.Unserved) > 0 {
		l.More["unserved"] = s.Unserved
	}
	for i := range s.Workloads {
		r := &s.Workloads[i]
		l.Items = append(l.Items, listing.Item{
			Object: r, Namespace: r.Namespace, Name: r.resource(), Cells: cells(r), Color: r.color(),
		})
	}
	return l
}

func cells(r *Row) []string {
	return []string{
		r.title(), r.Profile.Name, runtimesOf(r), limits(r), uses(r), kills(r), shapes(r), applied(r), requests(r),
		confidences(r), pods(r), r.Summary,
	}
}

// each joins a text about every container, with its name if there are several.
func (r *Row) each(say func(c *Container) string) string {
	var parts []string
	for i := range r.Containers {
		text := say(&r.Containers[i])
		if len(r.Containers) > 1 {
			text = r.Containers[i].Name + "=" + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func limits(r *Row) string {
	return r.each(func(c *Container) string {
		if c.Recommended == nil {
			return fmt.Sprintf("%s (%s)", Amount(c.Current.Limit), c.Decision)
		}
		return step(c.Current.Limit, c.Recommended.Limit)
	})
}

// uses returns the recent use of the fullest replica, and its share of the limit.
func uses(r *Row) string {
	if !slices.ContainsFunc(r.Containers, func(c Container) bool { return c.Usage != nil }) {
		return ""
	}
	return r.each(func(c *Container) string {
		switch {
		case c.Usage == nil:
			return "-"
		case c.UsagePercent == 0:
			return Amount(c.Usage)
		}
		return fmt.Sprintf("%s (%d%%)", Amount(c.Usage), c.UsagePercent)
	})
}

func requests(r *Row) string {
	return r.each(func(c *Container) string {
		return step(c.Current.Request, cmp.Or(c.Recommended, &v1alpha1.Size{}).Request)
	})
}

func runtimesOf(r *Row) string {
	var names []string
	for i := range r.Containers {
		if id := r.Containers[i].Identity; id != nil {
			title := runtimes.TitleOf(string(id.Type)) + " " + string(id.Variant) + " " + id.Version
			names = append(names, strings.Join(strings.Fields(title), " "))
		}
	}
	if len(names) == 0 && len(r.Containers) > 0 { // omit an unknown sidecar beside a known application
		return "unknown"
	}
	return strings.Join(distinct(names), ", ")
}

func confidences(r *Row) string {
	return r.each(func(c *Container) string { return c.Confidence })
}

func kills(r *Row) string {
	if r.Killed {
		return fmt.Sprintf("%d, recently", r.OOMKills)
	}
	return fmt.Sprint(r.OOMKills)
}

// shapes returns the shape of memory with the time to the limit, which shows the urgency.
func shapes(r *Row) string {
	var texts []string
	for i := range r.Containers {
		c := &r.Containers[i]
		text := c.Shape
		if c.TimeToLimitMaxSeconds > 0 {
			text += fmt.Sprintf(
				", limit in %s to %s", format.Duration(time.Duration(c.TimeToLimitMinSeconds)*time.Second),
				format.Duration(time.Duration(c.TimeToLimitMaxSeconds)*time.Second),
			)
		}
		texts = append(texts, text)
	}
	if r.Stalled {
		return "stalled"
	}
	// The reason of the condition is usually the shape, which has more detail.
	if r.Drifts() && !slices.ContainsFunc(r.Containers, func(c Container) bool { return c.Shape == r.Drift.Reason }) {
		texts = append([]string{r.Drift.Reason}, texts...)
	}
	return strings.Join(distinct(texts), "; ")
}

func applied(r *Row) string {
	if r.Blocked != nil {
		return fmt.Sprintf("no (%s)", r.Blocked.Reason)
	}
	switch r.Applied.Status {
	case metav1.ConditionTrue:
		return "yes"
	case metav1.ConditionFalse:
		return fmt.Sprintf("no (%s)", r.Applied.Reason)
	case metav1.ConditionUnknown:
		return fmt.Sprintf("unknown (%s)", r.Applied.Reason)
	}
	return ""
}

func pods(r *Row) string {
	if r.Coverage == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", r.Coverage.Injected, r.Coverage.Governed)
}

// next returns the next steps for the first rows that need attention.
func (s *Status) next(o listing.Options) string {
	var steps []string
	for i := range s.Workloads {
		if r := &s.Workloads[i]; len(r.Next) > 0 {
			steps = append(steps, called(r.Namespace, r.typed(), o)+": "+r.Next[0])
		}
	}
	if len(steps) == 0 {
		return ""
	}
	if more := len(steps) - stepsShown; more > 0 {
		steps = append(steps[:stepsShown], fmt.Sprintf("and %d more", more))
	}
	where := ""
	if o.Namespaces {
		where = "-n NAMESPACE "
	}
	return section(o, "What to do next", steps) + "Why these numbers: kubectl memfit explain " + where + "WORKLOAD\n"
}

// called returns a workload with its namespace if the table has that column.
func called(namespace, name string, o listing.Options) string {
	if o.Namespaces {
		name = namespace + " " + name
	}
	return name
}
