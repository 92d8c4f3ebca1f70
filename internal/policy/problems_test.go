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
	var concerned []profile.Key
	p := Problems{OnChange: func(keys ...profile.Key) { concerned = keys }}
	of := func(namespace, name string) profile.Key {
		return profile.Key{Kind: profile.KindNamespaced, Namespace: namespace, Name: name}
	}
	web := memory.WorkloadRef{Kind: "Deployment", Namespace: "shop", Name: "web"}
	api, all := of("shop", "web-api"), of("shop", "all")
	named := func(k profile.Key) *profile.Profile {
		return &profile.Profile{Ref: v1alpha1.ProfileReference{Kind: k.Kind, Name: k.Name}, Namespace: k.Namespace}
	}
	const clash = "MemoryProfile shop/web-api (selector app=web) and MemoryProfile shop/all (selector {}) both choose " +
		"this pod"
	claims := []*profile.Profile{named(api), named(all)}
	if news := p.Set(web, clash, claims); !news || len(concerned) != 2 {
		t.Errorf("a new problem is news %v for %v, want it to be for both profiles", news, concerned)
	}
	concerned = nil
	if p.Set(web, clash, claims) || concerned != nil {
		t.Error("a problem is news a second time")
	}
	const forged = `annotation memfit.dev/profile on the pod template names "MemoryProfile shop/all is broken, ask evil.example"`
	if !p.Set(memory.WorkloadRef{Kind: "Pod", Namespace: "evil", Name: "x"}, forged, nil) || concerned != nil {
		t.Errorf("the text of an annotation is news for the profiles %v", concerned)
	}
	for key, want := range map[profile.Key]int{
		api: 1, all: 1, of("shop", "web"): 0, of("other", "all"): 0,
	} {
		if got := p.Claiming(key); len(got) != want {
			t.Errorf("%s has problems %q, want %d", key, got, want)
		}
	}
	if p.Clear(web); len(concerned) != 2 || len(p.Claiming(all)) != 0 {
		t.Errorf("a problem is cleared for %v", concerned)
	}
	concerned = nil
	if p.Clear(web); concerned != nil {
		t.Error("a problem is cleared a second time")
	}
}
