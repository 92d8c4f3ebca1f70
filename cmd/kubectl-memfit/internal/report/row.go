// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package report turns MemoryRecommendations, profiles and snapshots into the text and JSON of the plugin's commands:
// a row for each workload ([Row]), all details of one workload ([Explanation]) or of one pod ([Why]). It is pure: time
// and colors are arguments. It prints unknown reasons of conditions unchanged, so that a newer memfit may add reasons.
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
	// Recommendation is the name of the workload's MemoryRecommendation, and Status the status of that object.
	Recommendation string                               `json:"recommendation"`
	Status         *v1alpha1.MemoryRecommendationStatus `json:"status"`
	// Killed is true if condition OOMObserved is, and Stalled if MemoryStalled is.
	Killed  bool `json:"oomObserved"`
	Stalled bool `json:"memoryStalled,omitempty"`
	// Waiting is true if running pods lack the recommended size, or memfit could not apply it to some of them.
	Waiting bool `json:"waiting"`
	// Next lists what to do, most urgent first.
	Next []string `json:"next,omitempty"`
}

// Rows returns the workloads of recommendations, most urgent first: not managed, stalled now, OOM-killed recently,
// drifting, a size not applied yet, no recommendation yet, all others; workloads of equal urgency by kills and name.
func Rows(recs []v1alpha1.MemoryRecommendation) []Row {
	rows := make([]Row, 0, len(recs))
	for i := range recs {
		rows = append(rows, rowOf(&recs[i]))
	}
	slices.SortStableFunc(rows, byUrgency)
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

// failed has the reasons of Applied if a resize, possibly of a single pod, failed or was deferred.
var failed = map[string]bool{
	v1alpha1.ReasonRefused: true, v1alpha1.ReasonInfeasible: true, v1alpha1.ReasonResizeFailed: true,
	v1alpha1.ReasonNotActuated: true, v1alpha1.ReasonNotEffective: true, v1alpha1.ReasonDeferred: true,
	v1alpha1.ReasonVolumeKeepsSize: true,
}

// percent returns use as a percentage of a limit, or 0 if either is unknown.
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

// conditionOf returns a condition, or the zero value if memfit has not set the condition yet.
func conditionOf(s *v1alpha1.MemoryRecommendationStatus, kind string) metav1.Condition {
	return *cmp.Or(meta.FindStatusCondition(s.Conditions, kind), &metav1.Condition{})
}

func (r *Row) drifts() bool { return r.is(v1alpha1.ConditionDriftDetected) }

// blocked reports whether memfit does not manage the workload at present. If so, all its other data is stale.
func (r *Row) blocked() bool { return r.is(v1alpha1.ConditionStalled) }

// Sized reports whether any container has a recommended size.
func (r *Row) Sized() bool {
	return slices.ContainsFunc(
		r.Status.Containers, func(c v1alpha1.ContainerRecommendation) bool { return c.Recommended != nil },
	)
}

// troubles are the states of a workload that need attention, most urgent first, with the color of the row.
var troubles = []struct {
	text, color string
	has         func(*Row) bool
}{
	{"not managed", listing.Red, (*Row).blocked},
	{"stalls now", listing.Red, func(r *Row) bool { return r.Stalled }},
	{"OOM-killed recently", listing.Red, func(r *Row) bool { return r.Killed }},
	{"memory drifts", listing.Yellow, (*Row).drifts},
	{"size not applied yet", "", func(r *Row) bool { return r.Waiting }},
}

// Troubles lists the states of a workload that need attention, most urgent first.
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

func byUrgency(a, b Row) int {
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
		return byUrgency(a, b)
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

// first compares two items by a property. The item that has the property comes first.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
