// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Profile is a profile with its status.
type Profile struct {
	profile.Profile
	Status v1alpha1.MemoryProfileStatus
}

// Status is the output of `kubectl memfit status`.
type Status struct {
	// Workloads are the governed workloads, most urgent first.
	Workloads []Row
	// Problems describe the unhealthy conditions of profiles.
	Problems []string
	Unserved []Unserved
}

// NewStatus returns the status of the workloads of recommendations, and of profiles.
func NewStatus(recs []v1alpha1.MemoryRecommendation, profiles []Profile) Status {
	s := Status{Workloads: Rows(recs)}
	for i := range profiles {
		s.Problems = append(s.Problems, problems(&profiles[i])...)
	}
	return s
}

// Write prints a status, with what to do next below the table.
func (s *Status) Write(w io.Writer, o listing.Options) error {
	notes := s.next(o) + s.unserved(o)
	if len(s.Workloads) > 0 {
		notes += section(o, "Profiles that need attention", s.Problems)
	}
	l := s.list()
	l.Notes = strings.TrimPrefix(notes, "\n")
	return l.Print(w, o)
}

// section returns a title with lines below, or an empty text without lines.
func section(o listing.Options, title string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString("\n" + o.Colors.Paint(listing.Bold, title) + "\n")
	for _, line := range lines {
		text.WriteString("  " + listing.Line(line) + "\n")
	}
	return text.String()
}

// problems lists the unhealthy conditions of a profile, except InjectionUpToDate, which the rows of workloads show.
func problems(p *Profile) []string {
	var texts []string
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		bad := metav1.ConditionFalse
		if c.Type == v1alpha1.ConditionConflicted || c.Type == v1alpha1.ConditionIdentitiesBounded {
			bad = metav1.ConditionTrue
		}
		if c.Status == bad && c.Type != v1alpha1.ConditionInjectionUpToDate {
			texts = append(texts, fmt.Sprintf("%s: %s is %s (%s): %s", p.String(), c.Type, c.Status, c.Reason, c.Message))
		}
	}
	return texts
}

const noProfile = `No profile exists. Add one to your manifests (kubectl explain memoryprofile.spec lists the fields):

  apiVersion: memfit.dev/v1alpha1
  kind: MemoryProfile
  metadata: {name: web, namespace: %s}
  spec: {runtime: {type: NodeJS}}

Then opt a workload in:
`

// NothingGoverned explains how to opt in a first workload. An empty namespace means all namespaces.
func NothingGoverned(namespace string, profiles []Profile) string {
	var text strings.Builder
	profiles = slices.DeleteFunc(slices.Clone(profiles), func(p Profile) bool { return p.HoldsDefaults() })
	where, flag, example := "in namespace "+namespace, "-n "+namespace, namespace
	if namespace == "" {
		where, flag, example = "in any namespace", "-n NAMESPACE", "NAMESPACE"
	}
	fmt.Fprintf(&text, "No workload %s is governed by memfit.\n\n", where)
	name := "web"
	if len(profiles) == 0 {
		fmt.Fprintf(&text, noProfile, example)
	} else {
		name = profiles[0].Ref.Name
		var names []string
		for i := range profiles {
			names = append(names, profiles[i].String())
		}
		fmt.Fprintf(&text, "Opt a workload in with an existing profile (%s):\n", SomeOf(names))
	}
	fmt.Fprintf(&text, "\n  kubectl %s annotate deployment NAME %s=%s\n\nThe workload is listed here within a minute.\n",
		flag, v1alpha1.ProfileAnnotation, name)
	if namespace != "" {
		text.WriteString("Other namespaces: kubectl memfit status -A\n")
	}
	return text.String()
}

// Candidate is a workload that may request a profile. The labels and annotations of its pods are from the pod template.
type Candidate struct {
	profile.Subject

	Name string
}

// Unserved is a workload whose profile is missing, or that several profiles select.
type Unserved struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	// Reason is ProfileNotFound or ProfileAmbiguous, as in the workload's Event.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// AddUnserved adds the candidates without a clear profile that did not opt out. profiles must be complete.
func (s *Status) AddUnserved(candidates []Candidate, profiles []Profile) {
	named := make([]profile.Profile, len(profiles))
	for i := range profiles {
		named[i] = profiles[i].Profile
	}
	index := profile.NewIndex(named)
	for i := range candidates {
		c := &candidates[i]
		if d := index.Match(c.Subject); d.Problem == profile.NotFound || d.Problem == profile.Ambiguous {
			s.Unserved = append(s.Unserved, Unserved{
				Namespace: c.Namespace, Kind: c.WorkloadKind, Name: c.Name, Reason: d.Problem.EventReason(), Message: d.Why,
			})
		}
	}
	slices.SortFunc(s.Unserved, func(a, b Unserved) int {
		return cmp.Or(
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name),
		)
	})
}

func (s *Status) unserved(o listing.Options) string {
	var lines []string
	for i := range s.Unserved {
		u := &s.Unserved[i]
		name := called(u.Namespace, workloadkind.Typed(u.Kind, u.Name), o)
		lines = append(lines, name+": "+u.Reason+": "+u.Message)
	}
	return section(o, "Workloads without a clear profile", lines)
}
