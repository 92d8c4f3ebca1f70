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

// stepsShown is the maximum number of next steps below the table, one for each workload.
const stepsShown = 3

var (
	statusColumns = []string{"WORKLOAD", "PROFILE", "RUNTIME", "LIMIT", "USE", "OOMS", "MEMORY", "APPLIED"}
	statusWide    = []string{"REQUEST", "CONFIDENCE", "PODS", "SUMMARY"}
)

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
		cmp.Or(identityTitle(r.Status), r.typed()), r.Status.Profile.Name, runtimesOf(r), limits(r), uses(r), kills(r),
		shapes(r), applied(r), requests(r), confidences(r), pods(r), r.Status.Summary,
	}
}

// each joins the texts of all containers, with their names if there are several.
func (r *Row) each(textOf func(c *v1alpha1.ContainerRecommendation) string) string {
	var parts []string
	for i := range r.Status.Containers {
		c := &r.Status.Containers[i]
		text := textOf(c)
		if len(r.Status.Containers) > 1 {
			text = c.Container + "=" + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func limits(r *Row) string {
	return r.each(func(c *v1alpha1.ContainerRecommendation) string {
		if c.Recommended == nil {
			return fmt.Sprintf("%s (%s)", Amount(c.Current.Limit), c.Decision)
		}
		return step(c.Current.Limit, c.Recommended.Limit)
	})
}

// uses returns the recent use of the fullest replica, and its share of the limit.
func uses(r *Row) string {
	if r.fullest() < 0 {
		return ""
	}
	return r.each(func(c *v1alpha1.ContainerRecommendation) string {
		share := percent(c.Usage, c.Current.Limit)
		switch {
		case c.Usage == nil:
			return "-"
		case share == 0:
			return Amount(c.Usage)
		}
		return fmt.Sprintf("%s (%d%%)", Amount(c.Usage), share)
	})
}

func requests(r *Row) string {
	return r.each(func(c *v1alpha1.ContainerRecommendation) string {
		return step(c.Current.Request, cmp.Or(c.Recommended, &v1alpha1.Size{}).Request)
	})
}

func runtimesOf(r *Row) string {
	var names []string
	for i := range r.Status.Containers {
		if id := r.Status.Containers[i].Identity; id != nil {
			title := runtimes.TitleOf(string(id.Type)) + " " + string(id.Variant) + " " + id.Version
			names = append(names, strings.Join(strings.Fields(title), " "))
		}
	}
	if len(names) == 0 && len(r.Status.Containers) > 0 { // containers without a runtime are omitted only beside others
		return "unknown"
	}
	return strings.Join(distinct(names), ", ")
}

func confidences(r *Row) string {
	return r.each(func(c *v1alpha1.ContainerRecommendation) string { return c.Confidence })
}

func kills(r *Row) string {
	if r.Killed {
		return fmt.Sprintf("%d, recently", r.Status.OOMKills)
	}
	return fmt.Sprint(r.Status.OOMKills)
}

// shapes returns the shape of the memory of containers, with the time until each reaches its limit.
func shapes(r *Row) string {
	if r.Stalled {
		return "stalled"
	}
	var kinds, texts []string
	for i := range r.Status.Containers {
		s := r.Status.Containers[i].Shape
		if s == nil {
			continue
		}
		text := s.Kind
		if s.TimeToLimitMaxSeconds > 0 {
			text += fmt.Sprintf(
				", limit in %s to %s", format.Duration(time.Duration(s.TimeToLimitMinSeconds)*time.Second),
				format.Duration(time.Duration(s.TimeToLimitMaxSeconds)*time.Second),
			)
		}
		kinds, texts = append(kinds, s.Kind), append(texts, text)
	}
	// The condition's reason is usually the name of a shape; then it is in the list already.
	if reason := r.condition(v1alpha1.ConditionDriftDetected).Reason; r.drifts() && !slices.Contains(kinds, reason) {
		texts = append([]string{reason}, texts...)
	}
	return strings.Join(distinct(texts), "; ")
}

func applied(r *Row) string {
	c := r.condition(v1alpha1.ConditionApplied)
	switch {
	case r.blocked():
		return fmt.Sprintf("no (%s)", r.condition(v1alpha1.ConditionStalled).Reason)
	case c.Status == metav1.ConditionTrue:
		return "yes"
	case c.Status == metav1.ConditionFalse:
		return fmt.Sprintf("no (%s)", c.Reason)
	case c.Status == metav1.ConditionUnknown:
		return fmt.Sprintf("unknown (%s)", c.Reason)
	}
	return ""
}

func pods(r *Row) string {
	c := r.Status.Coverage
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", c.Injected, c.Governed)
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
	steps = format.Few(steps, stepsShown)
	where := ""
	if o.Namespaces {
		where = "-n NAMESPACE "
	}
	return section(o, "What to do next", steps) + "Why these numbers: kubectl memfit explain " + where + "WORKLOAD\n"
}

// called returns the name of a workload, after its namespace if the table has a NAMESPACE column.
func called(namespace, name string, o listing.Options) string {
	if o.Namespaces {
		name = namespace + " " + name
	}
	return name
}
