// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package report describes memfit's findings, for users at a terminal and for machines: a row for each workload
// ([Row]), and everything about one ([Explanation]). It is pure: MemoryRecommendations and profiles in, text or values
// out; time and the choice of colors are arguments. It shows the reasons of conditions and never interprets them, so
// that a newer memfit may have more.
package report

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
)

// Row is one workload. -o json and -o yaml of `kubectl memfit status` print these fields.
type Row struct {
	v1alpha1.WorkloadReference `json:",inline"`

	Namespace string `json:"namespace"`
	// Recommendation is the name of its MemoryRecommendation, Status is its status.
	Recommendation string                               `json:"recommendation"`
	Status         *v1alpha1.MemoryRecommendationStatus `json:"status"`
	// Killed and Stalled are the conditions OOMObserved and MemoryStalled.
	Killed  bool `json:"oomObserved"`
	Stalled bool `json:"memoryStalled,omitempty"`
	// Waiting is true if a changed size is recommended, or was attempted, and running pods do not have it.
	Waiting bool `json:"waiting"`
	// Next is what to do, most urgent first; empty if there is nothing to do.
	Next []string `json:"next,omitempty"`
}

// Rows returns the workloads of recommendations, most urgent first: not managed, stalled now, killed recently,
// drifting, a size that waits to be applied, no number yet, the rest; then by kills and name.
func Rows(recs []v1alpha1.MemoryRecommendation) []Row {
	rows := make([]Row, 0, len(recs))
	for i := range recs {
		rows = append(rows, rowOf(&recs[i]))
	}
	slices.SortStableFunc(rows, worse)
	return rows
}

func rowOf(rec *v1alpha1.MemoryRecommendation) Row {
	r := Row{
		Namespace: rec.Namespace, WorkloadReference: rec.Status.Workload, Recommendation: rec.Name, Status: &rec.Status,
	}
	r.Killed, r.Stalled = r.is(v1alpha1.ConditionOOMObserved), r.is(v1alpha1.ConditionMemoryStalled)
	applied := r.condition(v1alpha1.ConditionApplied)
	r.Waiting = applied.Status == metav1.ConditionFalse &&
		(failed[applied.Reason] || slices.ContainsFunc(rec.Status.Containers, changes))
	r.Next = next(&r)
	return r
}

// failed are reasons why a pod lacks a size that memfit tried to give it, also where all other pods have the size.
var failed = map[string]bool{
	v1alpha1.ReasonRefused: true, v1alpha1.ReasonInfeasible: true, v1alpha1.ReasonResizeFailed: true,
	v1alpha1.ReasonNotActuated: true, v1alpha1.ReasonNotEffective: true, v1alpha1.ReasonDeferred: true,
	v1alpha1.ReasonVolumeKeepsSize: true,
}

// percent returns use as a share of a limit; 0: one of them is unknown.
func percent(use, limit *resource.Quantity) int64 {
	if use == nil || limit == nil || limit.Value() <= 0 {
		return 0
	}
	return int64(100 * float64(use.Value()) / float64(limit.Value()))
}

// changes reports whether the recommendation differs from the size of running pods.
func changes(c v1alpha1.ContainerRecommendation) bool {
	r := c.Recommended
	return r != nil && (differs(r.Limit, c.Current.Limit) || differs(r.Request, c.Current.Request))
}

func (r *Row) is(kind string) bool { return meta.IsStatusConditionTrue(r.Status.Conditions, kind) }

func (r *Row) condition(kind string) metav1.Condition { return conditionOf(r.Status, kind) }

// conditionOf returns a condition. Its status is empty while memfit has not set it.
func conditionOf(s *v1alpha1.MemoryRecommendationStatus, kind string) metav1.Condition {
	return *cmp.Or(meta.FindStatusCondition(s.Conditions, kind), &metav1.Condition{})
}

func (r *Row) drifts() bool { return r.is(v1alpha1.ConditionDriftDetected) }

// blocked reports whether memfit does not manage the workload, so that all else about it is stale.
func (r *Row) blocked() bool { return r.is(v1alpha1.ConditionStalled) }

// Sized reports whether any container has a recommended size.
func (r *Row) Sized() bool {
	return slices.ContainsFunc(
		r.Status.Containers, func(c v1alpha1.ContainerRecommendation) bool { return c.Recommended != nil },
	)
}

// troubles are the states of a workload that need attention, the most urgent first, with the color of its line.
var troubles = []struct {
	text, color string
	has         func(*Row) bool
}{
	{"not managed", listing.Red, (*Row).blocked},
	{"stalls now", listing.Red, func(r *Row) bool { return r.Stalled }},
	{"OOM-killed recently", listing.Red, func(r *Row) bool { return r.Killed }},
	{"memory drifts", listing.Yellow, (*Row).drifts},
	{"a size waits to be applied", "", func(r *Row) bool { return r.Waiting }},
}

// Troubles lists the problems of a workload, the most urgent first.
func (r *Row) Troubles() (texts []string) {
	for _, t := range troubles {
		if t.has(r) {
			texts = append(texts, t.text)
		}
	}
	return texts
}

func (r *Row) color() string {
	for _, t := range troubles {
		if t.has(r) {
			return t.color
		}
	}
	return ""
}

func worse(a, b Row) int {
	for _, t := range troubles {
		if c := first(t.has(&a), t.has(&b)); c != 0 {
			return c
		}
	}
	return cmp.Or(first(!a.Sized(), !b.Sized()), cmp.Compare(b.Status.OOMKills, a.Status.OOMKills), byName(a, b))
}

func byName(a, b Row) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
}

// Orders are the sort keys of workloads; the first is the order of Rows.
var Orders = []string{"urgency", "use", "kills", "name"}

// Sort sorts by urgency, use or kills, the largest first, or by name.
func (s *Status) Sort(by string) {
	slices.SortStableFunc(s.Workloads, func(a, b Row) int {
		switch by {
		case "use":
			return cmp.Or(cmp.Compare(b.fullest(), a.fullest()), byName(a, b))
		case "kills":
			return cmp.Or(cmp.Compare(b.Status.OOMKills, a.Status.OOMKills), byName(a, b))
		case "name":
			return byName(a, b)
		}
		return worse(a, b)
	})
}

// fullest returns the highest use of a container as a percentage of its limit; -1: unknown.
func (r *Row) fullest() int64 {
	most := int64(-1)
	for i := range r.Status.Containers {
		if c := &r.Status.Containers[i]; c.Usage != nil {
			most = max(most, percent(c.Usage, c.Current.Limit))
		}
	}
	return most
}

// first orders items with a property before others.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
