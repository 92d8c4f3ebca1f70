// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/test/budget"
)

// validNameBudget is what looking at a name may take: nothing of it is kept, and what is too long is not read.
var validNameBudget = budget.Budget{Bytes: 64 << 10, CPU: time.Second}

// TestForgedOwners: a reference that no object could have is ignored, and the pod is its own workload.
func TestForgedOwners(t *testing.T) {
	controls := true
	for what, ref := range map[string]metav1.OwnerReference{
		"a name with a slash":            {APIVersion: "apps/v1", Kind: "Deployment", Name: "a/b"},
		"a name in capitals":             {APIVersion: "example.com/v1", Kind: "Rollout", Name: "Web"},
		"a very long name":               {APIVersion: "example.com/v1", Kind: "Rollout", Name: strings.Repeat("a", 300_000)},
		"a kind with a space":            {APIVersion: "example.com/v1", Kind: "Roll out", Name: "web"},
		"a kind of many words":           {APIVersion: "example.com/v1", Kind: strings.Repeat("Rollout", 100), Name: "web"},
		"a group with a dash at the end": {APIVersion: "example-/v1", Kind: "Rollout", Name: "web"},
		"two slashes":                    {APIVersion: "a/b/c", Kind: "Rollout", Name: "web"},
		"no version":                     {APIVersion: "example.com/", Kind: "Rollout", Name: "web"},
	} {
		ref.Controller, ref.UID = &controls, "u"
		pod := &metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "p", OwnerReferences: []metav1.OwnerReference{ref}}
		got, err := Resolver{}.Owner(t.Context(), pod)
		want := memory.WorkloadRef{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-1"}
		if err != nil || got.Ref != want || got.UID != "p" {
			t.Errorf("%s: the workload is %.80s (%v), want the pod itself", what, got.Ref, err)
		}
	}
	pod := &metav1.ObjectMeta{Namespace: "shop", Name: "web-1", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: "web.front-1", Controller: &controls},
	}}
	if got, err := (Resolver{}).Owner(t.Context(), pod); err != nil || got.Ref.Kind != "Rollout" {
		t.Errorf("a Rollout's pod is of %s (%v)", got.Ref, err)
	}
}

// FuzzValidName agrees with the API server's own rule, within its budget.
func FuzzValidName(f *testing.F) {
	for _, name := range []string{
		"web", "a.b-c", "a.-b", "a-.b", "-a", "a-", "a..b", "", ".", "A", "a_b", strings.Repeat("a", 254), "ü",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		var got bool
		budget.Check(t, validNameBudget, len(name), func() { got = ValidName(name) })
		if want := len(validation.IsDNS1123Subdomain(name)) == 0; got != want {
			t.Errorf("%q is valid: %t, want %t", name, got, want)
		}
	})
}
