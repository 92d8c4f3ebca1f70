// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/internal/profile"
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
	// Problems are the unhealthy conditions of profiles, in words.
	Problems []string
	// Unserved are workloads that request a profile and get none.
	Unserved []Unserved
}

// NewStatus summarizes the objects read.
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

// section returns a heading with lines; empty without lines.
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

// problems lists the unhealthy conditions of a profile. Pods without their settings are listed with their workload.
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

// exampleProfile is a minimal profile.
const exampleProfile = `apiVersion: memfit.dev/v1alpha1
kind: MemoryProfile
metadata: {name: web, namespace: %s}
spec: {runtime: {type: NodeJS}}`

// NothingGoverned explains how to opt a first workload in. namespace is empty for all namespaces.
func NothingGoverned(namespace string, profiles []Profile) string {
	var text strings.Builder
	profiles = slices.DeleteFunc(slices.Clone(profiles), func(p Profile) bool { return p.GivesDefaults() })
	where, flag, example := "in namespace "+namespace, "-n "+namespace, namespace
	if namespace == "" {
		where, flag, example = "in any namespace", "-n NAMESPACE", "NAMESPACE"
	}
	fmt.Fprintf(&text, "No workload %s is governed by memfit.\n\n", where)
	if len(profiles) == 0 {
		fmt.Fprintf(&text, "No profile exists. Keep one next to your manifests (kubectl explain "+
			"memoryprofile.spec has every field):\n\n  %s\n\nThen opt a workload in:\n",
			strings.ReplaceAll(fmt.Sprintf(exampleProfile, example), "\n", "\n  "))
	} else {
		var names []string
		for i := range profiles {
			names = append(names, profiles[i].String())
		}
		fmt.Fprintf(&text, "Opt a workload in with an existing profile (%s):\n", SomeOf(names))
	}
	name := "web"
	if len(profiles) > 0 {
		name = profiles[0].Ref.Name
	}
	fmt.Fprintf(
		&text, "\n  kubectl %s annotate deployment NAME %s=%s\n\nIts pods show up here within a minute.\n", flag,
		v1alpha1.ProfileAnnotation, name,
	)
	if namespace != "" {
		text.WriteString("Other namespaces: kubectl memfit status -A\n")
	}
	return text.String()
}
