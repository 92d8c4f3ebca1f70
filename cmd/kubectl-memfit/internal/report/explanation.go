// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/profile"
)

// Explanation has all data about one workload. `kubectl memfit explain -o json` prints these fields.
type Explanation struct {
	Row `json:",inline"`

	// Policies are the profile's policies in the order of containers; absent if the profile could not be read.
	Policies []Policy `json:"policies,omitempty"`
	// Clashes are contradictions between the profile and its defaults. Until they are fixed, memfit changes no size.
	Clashes []string `json:"clashes,omitempty"`
}

// Policy is the profile's policy for one container, with defaults.
type Policy struct {
	Container string              `json:"container"`
	Sizing    v1alpha1.SizingSpec `json:"sizing"`
	// Values are the effective fields of sizing, tuning and drift, each with its source.
	Values []profile.Value `json:"values"`
}

// Governing returns the profile of a recommendation, or nil if it is not in profiles.
func Governing(rec *v1alpha1.MemoryRecommendation, profiles []Profile) *profile.Profile {
	for i := range profiles {
		if n := &profiles[i].Profile; n.Ref == rec.Status.Profile && (n.Namespace == "" || n.Namespace == rec.Namespace) {
			return n
		}
	}
	return nil
}

// Explain returns the explanation of a workload. governing is its profile; nil: unknown.
func Explain(rec *v1alpha1.MemoryRecommendation, governing *profile.Profile) Explanation {
	e := Explanation{Row: rowOf(rec)}
	if governing == nil {
		return e
	}
	e.Clashes = governing.Clashes()
	for i := range e.Status.Containers {
		name := e.Status.Containers[i].Container
		e.Policies = append(e.Policies, Policy{
			Container: name, Sizing: governing.Container(name, nil).Sizing, Values: governing.Values(name),
		})
	}
	return e
}

// origins lists the values that users set, grouped by source.
func origins(values []profile.Value) []string {
	chosen := map[string][]string{}
	for _, v := range values {
		if v.From != profile.FromDefault {
			chosen[v.From] = append(chosen[v.From], v.Field+" "+v.Value)
		}
	}
	var texts []string
	for _, place := range slices.Sorted(maps.Keys(chosen)) {
		texts = append(texts, place+": "+strings.Join(chosen[place], ", "))
	}
	return append(texts, "default: all other fields with a default (-o json lists them)")
}

func bounds(s *v1alpha1.SizingSpec) string {
	parts := []string{"limit " + between(s.Limit, "any size"), "request " + between(s.Request, "the limit")}
	if s.RequestPolicy == v1alpha1.RequestEqualsLimit {
		parts[1] = "request equals limit"
	}
	if s.HeadroomPercent != nil {
		parts = append(parts, fmt.Sprintf("headroom %d %%", *s.HeadroomPercent))
	}
	parts = append(parts, "posture "+string(s.Posture), "decrease "+string(s.Decrease))
	if s.Increase == v1alpha1.IncreaseAfterKill { // the default needs no mention
		parts = append(parts, "increase "+string(s.Increase))
	}
	if s.Rescue == v1alpha1.RescueEnabled {
		parts = append(parts, "rescue "+string(s.Rescue))
	}
	parts = append(parts, "mode "+string(s.Mode))
	return strings.Join(parts, ", ")
}

func between(b *v1alpha1.Bounds, highest string) string {
	if b.Max != nil {
		highest = Amount(&b.Max.Quantity)
	}
	return Amount(&b.Min.Quantity) + " to " + highest
}

func evidence(e *v1alpha1.Evidence) string {
	var parts []string
	for _, peak := range []struct {
		name   string
		amount *resource.Quantity
	}{
		{"peak demand", e.PeakDemand}, {"peak RSS", e.PeakRSS}, {"peak working set", e.PeakWorkingSet},
		{"live set", e.LiveSetMedian},
	} {
		if peak.amount != nil {
			parts = append(parts, peak.name+" "+Amount(peak.amount))
		}
	}
	if e.LiveSet != nil {
		parts = append(parts, "live heap up to "+Amount(e.LiveSet)+" without a heap cap")
	}
	if len(parts) == 0 {
		return "no samples yet"
	}
	text := strings.Join(parts, ", ") + "; " + format.About(e.Samples, "sample")
	if e.Replicas > 0 {
		text += " of " + format.Count(int64(e.Replicas), "container")
	}
	if e.WindowSeconds > 0 {
		text += " over " + format.Duration(time.Duration(e.WindowSeconds)*time.Second)
	}
	if e.Source != "" {
		text += ", from " + e.Source
	}
	switch e.Certainty {
	case "RSSOnly":
		text += ", some of it RSS only"
	case "WorkingSetOnly":
		text += ", some of it working set only"
	}
	if e.HistorySource != "" {
		text += ", history from " + e.HistorySource
	}
	return text
}

func shape(s *v1alpha1.Shape) string {
	text := s.Kind
	if s.Confidence != "" {
		text += " (confidence " + s.Confidence + ")"
	}
	return text + ": " + s.Summary
}

func killed(k *v1alpha1.OOMKillRecord) string {
	text := fmt.Sprintf("%s  %s at limit %s", format.Time(k.Time.Time), k.Kind, Amount(k.Limit))
	if k.Peak != nil {
		text += ", peak " + Amount(k.Peak)
	}
	return text + fmt.Sprintf(": pod %s, container %s, confidence %s", k.Pod, k.Container, k.Confidence)
}

// covered reports how many pods run with the profile's settings, and why others do not.
func covered(c *v1alpha1.Coverage) string {
	parts := []string{fmt.Sprintf("%d of %d run with the profile's settings", c.Injected, c.Governed)}
	skipped := "skipped"
	if c.SkippedReason != "" {
		skipped += " (" + c.SkippedReason + ")"
	}
	for _, other := range []struct {
		pods int32
		are  string
	}{{c.Missed, "created without memfit"}, {c.Stale, "with older settings"}, {c.Skipped, skipped}} {
		if other.pods > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", other.pods, other.are))
		}
	}
	return strings.Join(parts, ", ")
}
