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

// Asker is a workload of the cluster that may request a profile. Labels and annotations of pods are from its template.
type Asker struct {
	profile.Subject

	Name string
}

// Unserved is a workload whose profile is missing, or that several profiles select.
type Unserved struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	// Reason is that of the event on the workload: ProfileNotFound or ProfileAmbiguous.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Seek adds the workloads without a clear profile, by name. It ignores workloads that opted out. Call it only if all
// profiles could be read.
func (s *Status) Seek(askers []Asker, profiles []Profile) {
	named := make([]profile.Profile, len(profiles))
	for i := range profiles {
		named[i] = profiles[i].Profile
	}
	index := profile.NewIndex(named)
	for i := range askers {
		a := &askers[i]
		if d := index.Match(a.Subject); d.Problem == profile.NotFound || d.Problem == profile.Ambiguous {
			s.Unserved = append(s.Unserved, Unserved{
				Namespace: a.Namespace, Kind: a.WorkloadKind, Name: a.Name, Reason: d.Problem.EventReason(), Message: d.Why,
			})
		}
	}
	slices.SortFunc(s.Unserved, func(a, b Unserved) int {
		return cmp.Or(
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name),
		)
	})
}

// unserved lists the workloads without a profile for users, one line each.
func (s *Status) unserved(o listing.Options) string {
	var lines []string
	for i := range s.Unserved {
		u := &s.Unserved[i]
		name := called(u.Namespace, workloadkind.Typed(u.Kind, u.Name), o)
		lines = append(lines, name+": "+u.Reason+": "+u.Message)
	}
	return section(o, "Workloads without a clear profile", lines)
}
