// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/memfit/memfit/internal/profile"
)

// Change is a created, deleted or changed profile.
type Change struct {
	profile.Key

	// SelectionChanged is true if the profile may govern other workloads: it was created or deleted, or its selector
	// changed.
	SelectionChanged bool
}

// changes returns the differences between the profiles of two indexes.
func changes(before, after *profile.Index) []Change {
	var all []Change
	for n := range after.All() {
		old := before.Get(n.Key())
		switch {
		case old == nil || old.UID != n.UID:
			all = append(all, Change{n.Key(), true})
		case old.Generation != n.Generation || old.Inherited() != n.Inherited():
			chooses := old.HoldsDefaults() != n.HoldsDefaults() ||
				!equality.Semantic.DeepEqual(old.NamespaceSelector, n.NamespaceSelector) ||
				!equality.Semantic.DeepEqual(old.Spec.Selector, n.Spec.Selector)
			all = append(all, Change{n.Key(), chooses})
		}
	}
	for n := range before.All() {
		if after.Get(n.Key()) == nil {
			all = append(all, Change{n.Key(), true})
		}
	}
	return all
}
