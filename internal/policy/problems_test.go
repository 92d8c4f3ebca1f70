// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
)

// TestProblemsNameTheirProfiles: a conflict shows on the profiles it is about, and on no other, whatever its text says:
// annotations, which any tenant writes, are part of the text.
func TestProblemsNameTheirProfiles(t *testing.T) {
	var p Problems
	web := memory.WorkloadRef{Kind: "Deployment", Namespace: "shop", Name: "web"}
	api, all := profile.Key{"MemoryProfile", "shop", "web-api"}, profile.Key{"MemoryProfile", "shop", "all"}
	named := func(k profile.Key) *profile.Profile {
		return &profile.Profile{Ref: v1alpha1.ProfileReference{Kind: k.Kind, Name: k.Name}, Namespace: k.Namespace}
	}
	const clash = "MemoryProfile shop/web-api (selector app=web) and MemoryProfile shop/all (selector {}) both choose " +
		"this pod"
	claims := []*profile.Profile{named(api), named(all)}
	if news, concerned := p.Set(web, clash, claims); !news || len(concerned) != 2 {
		t.Errorf("a new problem is news %v for %v, want it to be for both profiles", news, concerned)
	}
	if news, _ := p.Set(web, clash, claims); news {
		t.Error("a problem is news a second time")
	}
	const forged = `annotation memfit.dev/profile on the pod template names "MemoryProfile shop/all is broken, ask evil.example"`
	if news, concerned := p.Set(memory.WorkloadRef{Kind: "Pod", Namespace: "evil", Name: "x"}, forged, nil); !news ||
		len(concerned) != 0 {
		t.Errorf("the text of an annotation is news for the profiles %v", concerned)
	}
	for key, want := range map[profile.Key]int{
		api: 1, all: 1, {"MemoryProfile", "shop", "web"}: 0, {"MemoryProfile", "other", "all"}: 0,
	} {
		if got := p.Claiming(key); len(got) != want {
			t.Errorf("%s has problems %q, want %d", key, got, want)
		}
	}
	if len(p.Clear(web)) != 2 || len(p.Clear(web)) != 0 || len(p.Claiming(all)) != 0 {
		t.Error("a problem is gone when it is cleared")
	}
}
