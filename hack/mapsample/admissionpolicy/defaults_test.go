// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpolicy

import (
	"strings"
	"testing"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/profile"
)

// TestDefaultsGiveNoPolicy: a profile with role Defaults governs no pod. A policy would set its values in every pod of
// the namespace that requests a profile of that name.
func TestDefaultsGiveNoPolicy(t *testing.T) {
	spec := &v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo}}
	n := &profile.Profile{
		Ref:       v1alpha1.ProfileReference{Kind: profile.KindNamespaced, Name: "team"},
		Namespace: "shop", Spec: spec,
	}
	if _, err := For(n); err != nil {
		t.Fatalf("as a profile: %v", err)
	}
	spec.Role = v1alpha1.RoleDefaults
	if _, err := For(n); err == nil || !strings.Contains(err.Error(), "MemoryProfile shop/team has role: Defaults") {
		t.Errorf("as defaults: %v, want that it governs no pod", err)
	}
}
