// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/report"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/quote"
)

// comment collects lines of a YAML comment.
type comment struct{ strings.Builder }

// line writes a line. Any line break in text from the cluster would end the comment and start YAML.
func (c *comment) line(format string, args ...any) {
	c.WriteString(strings.TrimRight("# "+quote.Plain(fmt.Sprintf(format, args...)), " ") + "\n")
}

// header describes the source of a workload's patch.
func (w *workload) header() string {
	var c comment
	c.line(
		"%s: recommended by memfit (MemoryRecommendation %s, %s %s).", w, w.rec.Name, w.rec.Status.Profile.Kind,
		w.rec.Status.Profile.Name,
	)
	if w.target != "" {
		c.line("The patch is for %s.", w.target)
	}
	if at := written(w.rec); !at.IsZero() {
		c.line("Written by memfit at %s.", format.Time(at.Time))
	}
	for i := range w.sized {
		r := w.sized[i].rec
		c.line("  %s: %s, %s (%s, confidence %s)", r.Container, change("limit", r.Current.Limit, r.Recommended.Limit),
			change("request", r.Current.Request, r.Recommended.Request), r.Decision, r.Confidence)
		for _, reason := range r.Reasons {
			c.line("    - %s", reason)
		}
	}
	for _, text := range w.unsized {
		c.line("  %s", text)
	}
	if applied := meta.FindStatusCondition(w.rec.Status.Conditions, v1alpha1.ConditionApplied); applied != nil {
		c.line("  Running pods: Applied is %s (%s): %s", applied.Status, applied.Reason, applied.Message)
	}
	if w.kind.Frozen {
		c.line("  The template of a %s that exists cannot be changed: this is for the next one.", w.rec.Status.Workload.Kind)
	}
	return c.String()
}

// refusal returns the comment in place of a workload that is not exported.
func (w *workload) refusal() string {
	var c comment
	c.line("%s is left out: %s.", w, strings.TrimSuffix(w.refused, "."))
	for _, text := range w.unsized {
		c.line("  %s", text)
	}
	return c.String()
}

// written returns when a condition last changed.
func written(rec *v1alpha1.MemoryRecommendation) (last metav1.Time) {
	for i := range rec.Status.Conditions {
		if t := rec.Status.Conditions[i].LastTransitionTime; t.After(last.Time) {
			last = t
		}
	}
	return last
}

func change(what string, from, to *resource.Quantity) string {
	if to == nil {
		return what + " " + report.Amount(from) + " stays"
	}
	return what + " " + report.Amount(from) + " -> " + report.Amount(to)
}
