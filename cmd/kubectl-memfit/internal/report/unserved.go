// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/memfit/memfit/cmd/kubectl-memfit/internal/listing"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Asker is a workload as it is in the cluster, which may ask for a profile.
type Asker struct {
	Namespace, Kind, Name string
	// PodLabels and PodAnnotations are those of its pod template.
	PodLabels, PodAnnotations, Annotations, NamespaceAnnotations, NamespaceLabels map[string]string
}

// Unserved is a workload that asks for a profile, or is chosen by several, and gets none.
type Unserved struct {
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	// Reason is that of the event on the workload: ProfileNotFound or ProfileAmbiguous.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// unserved finds them among askers, by name. Who opted out gets what it wants.
func unserved(askers []Asker, profiles []Profile) []Unserved {
	named := make([]profile.Profile, len(profiles))
	for i := range profiles {
		named[i] = profiles[i].Profile
	}
	index := profile.NewIndex(named)
	var found []Unserved
	for i := range askers {
		a := &askers[i]
		d := index.Match(profile.Subject{
			Namespace: a.Namespace, WorkloadKind: a.Kind, PodLabels: a.PodLabels, PodAnnotations: a.PodAnnotations,
			WorkloadAnnotations: a.Annotations, NamespaceAnnotations: a.NamespaceAnnotations,
			NamespaceLabels: a.NamespaceLabels,
		})
		if d.Problem == profile.NotFound || d.Problem == profile.Ambiguous {
			found = append(
				found,
				Unserved{Namespace: a.Namespace, Kind: a.Kind, Name: a.Name, Reason: d.Problem.EventReason(), Message: d.Why},
			)
		}
	}
	slices.SortFunc(found, func(a, b Unserved) int {
		return cmp.Or(
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name),
		)
	})
	return found
}

// Seek adds the workloads that get no profile. Nothing may be concluded from profiles that could not all be read.
func (s *Status) Seek(askers []Asker, profiles []Profile) {
	s.Unserved = unserved(askers, profiles)
	for i := range s.Unserved {
		s.Unserved[i].Cluster = s.cluster
	}
}

// unserved lists the workloads without a profile for users, one line each.
func (s *Status) unserved(o listing.Options) string {
	var lines []string
	for i := range s.Unserved {
		u := &s.Unserved[i]
		name := called(u.Cluster, u.Namespace, workloadkind.Typed(u.Kind, u.Name), o)
		lines = append(lines, name+": "+u.Reason+": "+u.Message)
	}
	return section(o, "Workloads that get no profile", lines)
}
