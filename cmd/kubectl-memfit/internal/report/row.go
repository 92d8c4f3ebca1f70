// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

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
	Namespace  string `json:"namespace"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	// Profile is its profile; Recommendation is the name of its MemoryRecommendation.
	Profile        v1alpha1.ProfileReference `json:"profile"`
	Recommendation string                    `json:"recommendation"`
	// OOMKills counts all kills so far; Killed is true when one was seen recently (condition OOMObserved).
	OOMKills int64 `json:"oomKills"`
	Killed   bool  `json:"oomObserved"`
	// Stalls counts how often a container stalled just below its limit; Stalled is true while one does (condition
	// MemoryStalled).
	Stalls  int64 `json:"stalls,omitempty"`
	Stalled bool  `json:"memoryStalled,omitempty"`
	// Drift and Applied are the conditions DriftDetected and Applied.
	Drift   Finding `json:"drift"`
	Applied Finding `json:"applied"`
	// PodIdentity identifies the pods if the workload is not their owner.
	PodIdentity *v1alpha1.PodIdentity `json:"podIdentity,omitempty"`
	// Blocked is the condition Stalled while it is True: memfit does not manage the workload, and other fields are stale.
	Blocked *Finding `json:"blocked,omitempty"`
	// Waiting: a changed size is recommended, or was attempted, and running pods do not have it.
	Waiting    bool               `json:"waiting"`
	Coverage   *v1alpha1.Coverage `json:"coverage,omitempty"`
	Containers []Container        `json:"containers"`
	Summary    string             `json:"summary"`
	// Next is what to do, most urgent first; empty if there is nothing to do.
	Next []string `json:"next,omitempty"`
}

// Container is the recommendation for one container.
type Container struct {
	Name string `json:"name"`
	// Identity is the runtime; absent: unknown. Runtime is its description with its source.
	Identity    *v1alpha1.RuntimeIdentity `json:"identity,omitempty"`
	Runtime     string                    `json:"runtime,omitempty"`
	Decision    string                    `json:"decision"`
	Confidence  string                    `json:"confidence,omitempty"`
	Current     v1alpha1.Size             `json:"current"`
	Recommended *v1alpha1.Size            `json:"recommended,omitempty"`
	// Usage is the highest recent use of one replica, UsagePercent its share of the limit, UsageTime when it was read.
	Usage        *resource.Quantity `json:"usage,omitempty"`
	UsagePercent int64              `json:"usagePercent,omitempty"`
	UsageTime    *metav1.Time       `json:"usageTime,omitempty"`
	Shape        string             `json:"shape,omitempty"`
	// TimeToLimitMinSeconds and TimeToLimitMaxSeconds bound the time to the limit at the current growth.
	TimeToLimitMinSeconds int64 `json:"timeToLimitMinSeconds,omitempty"`
	TimeToLimitMaxSeconds int64 `json:"timeToLimitMaxSeconds,omitempty"`
}

// Finding is a condition. Status is empty while memfit has not set it.
type Finding struct {
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`
}

// Rows are the workloads of recommendations, most urgent first: not managed, stalled now, killed recently, drifting, a
// size that waits to be applied, no number yet, the rest; then by kills and name.
func Rows(recs []v1alpha1.MemoryRecommendation) []Row {
	rows := make([]Row, 0, len(recs))
	for i := range recs {
		rows = append(rows, rowOf(&recs[i]))
	}
	slices.SortStableFunc(rows, worse)
	return rows
}

func rowOf(rec *v1alpha1.MemoryRecommendation) Row {
	s := &rec.Status
	r := Row{
		Namespace: rec.Namespace, APIVersion: rec.Status.Workload.APIVersion,
		Kind: rec.Status.Workload.Kind, Name: rec.Status.Workload.Name,
		Profile: rec.Status.Profile, Recommendation: rec.Name,
		OOMKills: s.OOMKills, Killed: meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionOOMObserved),
		Stalls: s.Stalls, Stalled: meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionMemoryStalled),
		Drift:    finding(s.Conditions, v1alpha1.ConditionDriftDetected),
		Applied:  finding(s.Conditions, v1alpha1.ConditionApplied),
		Coverage: s.Coverage, Summary: s.Summary, PodIdentity: s.Identity,
	}
	for i := range s.Containers {
		c := &s.Containers[i]
		r.Containers = append(r.Containers, containerOf(c))
		r.Waiting = r.Waiting || changes(c)
	}
	r.Waiting = r.Applied.Status == metav1.ConditionFalse && (r.Waiting || failed[r.Applied.Reason])
	if blocked := finding(s.Conditions, v1alpha1.ConditionStalled); blocked.Status == metav1.ConditionTrue {
		r.Blocked = &blocked
	}
	r.Next = next(rec, &r)
	return r
}

// failed are reasons why a pod does not have a size that memfit tried to give it. Users must see them even if all other
// pods have the size and nothing else is recommended.
var failed = map[string]bool{
	v1alpha1.ReasonRefused: true, v1alpha1.ReasonInfeasible: true, v1alpha1.ReasonResizeFailed: true,
	v1alpha1.ReasonNotActuated: true, v1alpha1.ReasonNotEffective: true, v1alpha1.ReasonDeferred: true,
	v1alpha1.ReasonVolumeKeepsSize: true,
}

func containerOf(c *v1alpha1.ContainerRecommendation) Container {
	out := Container{
		Name: c.Container, Identity: c.Identity, Runtime: c.Runtime, Decision: c.Decision, Confidence: c.Confidence,
		Current: c.Current, Recommended: c.Recommended,
		Usage: c.Usage, UsagePercent: percent(c.Usage, c.Current.Limit), UsageTime: c.UsageTime,
	}
	if c.Shape != nil {
		out.Shape = c.Shape.Kind
		out.TimeToLimitMinSeconds, out.TimeToLimitMaxSeconds = c.Shape.TimeToLimitMinSeconds, c.Shape.TimeToLimitMaxSeconds
	}
	return out
}

// percent is use as a share of a limit; 0: one of them is unknown.
func percent(use, limit *resource.Quantity) int64 {
	if use == nil || limit == nil || limit.Value() <= 0 {
		return 0
	}
	return int64(100 * float64(use.Value()) / float64(limit.Value()))
}

// changes reports whether the recommendation differs from the size of running pods.
func changes(c *v1alpha1.ContainerRecommendation) bool {
	r := c.Recommended
	return r != nil && (differs(r.Limit, c.Current.Limit) || differs(r.Request, c.Current.Request))
}

func finding(conditions []metav1.Condition, kind string) Finding {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return Finding{}
	}
	return Finding{Status: c.Status, Reason: c.Reason, Message: c.Message}
}

// Drifts reports whether the condition DriftDetected is true: memory grows steadily.
func (r *Row) Drifts() bool { return r.Drift.Status == metav1.ConditionTrue }

// Sized reports whether any container has a recommended size.
func (r *Row) Sized() bool {
	return slices.ContainsFunc(r.Containers, func(c Container) bool { return c.Recommended != nil })
}

// troubles are the states of a workload that need attention, the most urgent first, with the color of its line.
var troubles = []struct {
	text, color string
	has         func(*Row) bool
}{
	{"not managed", listing.Red, func(r *Row) bool { return r.Blocked != nil }},
	{"stalls now", listing.Red, func(r *Row) bool { return r.Stalled }},
	{"OOM-killed recently", listing.Red, func(r *Row) bool { return r.Killed }},
	{"memory drifts", listing.Yellow, (*Row).Drifts},
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

// color returns the color of its line.
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
	return cmp.Or(first(!a.Sized(), !b.Sized()), cmp.Compare(b.OOMKills, a.OOMKills), byName(a, b))
}

func byName(a, b Row) int {
	return cmp.Or(
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind),
	)
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
			return cmp.Or(cmp.Compare(b.OOMKills, a.OOMKills), byName(a, b))
		case "name":
			return byName(a, b)
		}
		return worse(a, b)
	})
}

// fullest returns the highest use of a container as a percentage of its limit; -1: unknown.
func (r *Row) fullest() int64 {
	most := int64(-1)
	for i := range r.Containers {
		if r.Containers[i].Usage != nil {
			most = max(most, r.Containers[i].UsagePercent)
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
