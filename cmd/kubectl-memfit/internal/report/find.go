// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/workloadkind"
)

// Find returns the recommendation of a workload, named in kubectl's form ("web", "deploy/web", "deployment.apps/web")
// or by the recommendation's own name ("deployment-web"). The error lists the known workloads, and describes the scope
// of recs with where ("namespace shop").
func Find(recs []v1alpha1.MemoryRecommendation, name, where string) (*v1alpha1.MemoryRecommendation, error) {
	found := matching(recs, func(rec *v1alpha1.MemoryRecommendation) bool { return isWorkload(rec, name) })
	if len(found) == 0 {
		found = matching(recs, func(rec *v1alpha1.MemoryRecommendation) bool { return rec.Name == name })
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		missing := "kind"
		if severalNamespaces(found) {
			missing += " and namespace (-n)"
		}
		return nil, fmt.Errorf("%q matches several workloads in %s: %s; add the %s", name, where, listed(found), missing)
	case len(recs) == 0:
		return nil, fmt.Errorf(
			"%q is unknown: no profile governs any workload in %s; opt workloads in with the annotation %s", name,
			where, v1alpha1.ProfileAnnotation,
		)
	}
	return nil, fmt.Errorf("no profile governs a workload %q in %s; known workloads: %s", name, where,
		listed(matching(recs, func(*v1alpha1.MemoryRecommendation) bool { return true })))
}

func matching(
	recs []v1alpha1.MemoryRecommendation, is func(*v1alpha1.MemoryRecommendation) bool,
) []*v1alpha1.MemoryRecommendation {
	var found []*v1alpha1.MemoryRecommendation
	for i := range recs {
		if is(&recs[i]) {
			found = append(found, &recs[i])
		}
	}
	return found
}

func isWorkload(rec *v1alpha1.MemoryRecommendation, name string) bool {
	if title := identityTitle(&rec.Status); title != "" && title == name {
		return true
	}
	return Named(rec.Status.Workload, name)
}

// Named reports whether text names workload w in kubectl's form ("web", "deploy/web").
func Named(w v1alpha1.WorkloadReference, text string) bool {
	kind, name, typed := strings.Cut(text, "/")
	if !typed {
		return w.Name == text
	}
	return w.Name == name && workloadkind.Called(w.APIVersion, w.Kind, kind)
}

func listed(recs []*v1alpha1.MemoryRecommendation) string {
	several := severalNamespaces(recs)
	var names []string
	for _, rec := range recs {
		name := Typed(rec.Name, &rec.Status)
		if several {
			name = rec.Namespace + " " + name
		}
		names = append(names, name)
	}
	return SomeOf(names)
}

// SomeOf sorts names in place and returns the first ten, with the number of others.
func SomeOf(names []string) string {
	slices.Sort(names)
	return strings.Join(format.Few(names, 10), ", ")
}

func severalNamespaces(recs []*v1alpha1.MemoryRecommendation) bool {
	return slices.ContainsFunc(
		recs, func(rec *v1alpha1.MemoryRecommendation) bool { return rec.Namespace != recs[0].Namespace },
	)
}

// Title returns the heading of a workload: "Deployment shop/web" or "tekton: build-and-test/unit in namespace ci".
func Title(namespace string, s *v1alpha1.MemoryRecommendationStatus) string {
	if title := identityTitle(s); title != "" {
		return title + " in namespace " + namespace
	}
	return fmt.Sprintf("%s %s/%s", s.Workload.Kind, namespace, s.Workload.Name)
}

// identityTitle returns the identity of the pods, such as "tekton: build-and-test/unit"; empty if they have an owner.
func identityTitle(s *v1alpha1.MemoryRecommendationStatus) string {
	if s.Identity == nil {
		return ""
	}
	return identity.Title(s.Identity.Platform, s.Identity.Values)
}

// Typed returns a workload in kubectl's form ("deployment/web"), or for an identity the name of the recommendation.
func Typed(recommendation string, s *v1alpha1.MemoryRecommendationStatus) string {
	if s.Identity != nil {
		return recommendation
	}
	return workloadkind.Typed(s.Workload.Kind, s.Workload.Name)
}
