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

// line writes a line of the comment. It removes line breaks and control characters, which could end the comment.
func (c *comment) line(format string, args ...any) {
	c.WriteString(strings.TrimRight("# "+quote.Plain(fmt.Sprintf(format, args...)), " ") + "\n")
}

// header returns the comment above a workload's patch.
func (w *workload) header() string {
	var c comment
	c.line(
		"%s: recommended by memfit (MemoryRecommendation %s, %s %s).", w, w.rec.Name, w.rec.Status.Profile.Kind,
		w.rec.Status.Profile.Name,
	)
	if w.target != "" {
		c.line("The patch is for %s.", w.target)
	}
	if at := lastTransition(w.rec); !at.IsZero() {
		c.line("Conditions last changed at %s.", format.Time(at.Time))
	}
	for i := range w.sized {
		r := w.sized[i].rec
		c.line("  %s: limit %s, request %s (%s, confidence %s)", r.Container, change(r.Current.Limit, r.Recommended.Limit),
			change(r.Current.Request, r.Recommended.Request), r.Decision, r.Confidence)
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
		c.line("  The template of an existing %s is immutable: apply this to the next one.", w.rec.Status.Workload.Kind)
	}
	return c.String()
}

// refusal returns the comment that replaces the patch of a workload that is left out.
func (w *workload) refusal() string {
	var c comment
	c.line("%s is left out: %s.", w, strings.TrimSuffix(w.refused, "."))
	for _, text := range w.unsized {
		c.line("  %s", text)
	}
	return c.String()
}

// lastTransition returns the last time at which any condition changed.
func lastTransition(rec *v1alpha1.MemoryRecommendation) (last metav1.Time) {
	for i := range rec.Status.Conditions {
		if t := rec.Status.Conditions[i].LastTransitionTime; t.After(last.Time) {
			last = t
		}
	}
	return last
}

func change(from, to *resource.Quantity) string {
	if to == nil {
		return report.Amount(from) + " (unchanged)"
	}
	return report.Amount(from) + " -> " + report.Amount(to)
}
