// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import "github.com/memfit/memfit/api/v1alpha1"

// Named is one profile as it was read. It must not change after [NewIndex] has seen it.
type Named struct {
	// Ref is MemoryProfile or ClusterMemoryProfile and the name.
	Ref v1alpha1.ProfileReference
	// Namespace is empty for a ClusterMemoryProfile.
	Namespace string
	// Generation is metadata.generation, so that what was injected can be traced to the spec it came from.
	Generation int64
	// Spec is shared, never written.
	Spec *v1alpha1.MemoryProfileSpec
}

// Index finds the profile of a pod without looking at profiles of other namespaces. It is immutable: build a new one when a
// profile changes. The zero value and nil govern nothing.
type Index struct{}

// NewIndex compiles the selectors of profiles. A selector that does not parse governs nothing.
func NewIndex(_ []Named) *Index { return &Index{} }

// Subject is what is known of a pod when it is about to be created or is looked at. Nil maps are empty.
type Subject struct {
	Namespace                                                            string
	PodLabels, PodAnnotations, WorkloadAnnotations, NamespaceAnnotations map[string]string
}

// Problem says why a pod that asks for a profile, or is chosen by one, is not governed.
type Problem string

// The problems.
const (
	// NotFound: the annotation names a profile that does not exist.
	NotFound Problem = "NotFound"
	// Ambiguous: two profiles choose the pod by selector; none is applied.
	Ambiguous Problem = "Ambiguous"
	// OptedOut: memfit.dev/inject is "false" on the pod, its workload or its namespace.
	OptedOut Problem = "OptedOut"
)

// Decision is the answer of [Index.Decide].
type Decision struct {
	// Profile governs the pod; nil when none does.
	Profile *Named
	// Why says what decided, in words for a status message: "annotation memfit.dev/profile on the Deployment".
	// With a Problem it says what to mend.
	Why string
	// Problem is empty when a profile governs the pod, and when nobody asked for one.
	Problem Problem
}

// Decide finds the profile that governs s: named by annotation on the pod template, else on the workload, else on the
// namespace, else chosen by selector. A MemoryProfile wins over a ClusterMemoryProfile.
func (x *Index) Decide(_ Subject) Decision { return Decision{} }
