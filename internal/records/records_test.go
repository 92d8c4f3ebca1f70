// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/workloadkind"
)

var (
	web     = memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	someone = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "web", UID: "c"}
)

func owned(uid types.UID) []metav1.OwnerReference {
	return append([]metav1.OwnerReference{someone}, Owners(web, uid)...)
}

// TestIdentity: an identity has no object: its records have no owner, and whether one exists says nothing.
func TestIdentity(t *testing.T) {
	of := memory.WorkloadRef{
		APIVersion: workloadkind.IdentityAPIVersion, Kind: workloadkind.IdentityKind, Namespace: "ci", Name: "tekton-a-1",
	}
	if refs := Owners(of, "uid"); refs != nil {
		t.Errorf("its records are owned by %+v", refs)
	}
	if why := Orphaned(nil, of, Presence{State: Gone}); why != "" {
		t.Errorf("its record is deleted: %s", why)
	}
	if !UsableFor(nil, of, "uid") {
		t.Error("its record is not used")
	}
}

func TestOrphaned(t *testing.T) {
	exists := Presence{State: Exists, UID: "now"}
	for name, tc := range map[string]struct {
		refs []metav1.OwnerReference
		of   Presence
		want bool
	}{
		"of the workload that exists":    {refs: owned("now"), of: exists, want: false},
		"of an earlier one of that name": {refs: owned("before"), of: exists, want: true},
		"of an earlier one, and this one is leaving": {
			refs: owned("before"), of: Presence{State: Terminating, UID: "now"}, want: true,
		},
		"of one that is leaving: the garbage collector's": {
			refs: owned("now"), of: Presence{State: Terminating, UID: "now"}, want: false,
		},
		"of none that exists":                  {refs: owned("now"), of: Presence{State: Gone}, want: true},
		"of none, unowned":                     {of: Presence{State: Gone}, want: true},
		"unowned, of the workload that exists": {of: exists, want: true},
		"owned by somebody's ConfigMap only": {
			refs: []metav1.OwnerReference{someone}, of: exists, want: true,
		},
		"unowned, of one that is leaving": {
			of: Presence{State: Terminating, UID: "now"}, want: false,
		},
		"nothing is known":                              {refs: owned("before"), of: Presence{}, want: false},
		"nothing is known of an unowned one":            {of: Presence{}, want: false},
		"of a kind that cannot be read, unowned":        {of: Presence{UID: "now"}, want: false},
		"of a kind that cannot be read, of another UID": {refs: owned("before"), of: Presence{UID: "now"}, want: false},
		"of a workload that was read before it had its UID": {
			refs: owned("before"), of: Presence{State: Exists}, want: false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if why := Orphaned(tc.refs, web, tc.of); (why != "") != tc.want {
				t.Errorf("Orphaned = %q, want %t", why, tc.want)
			}
		})
	}
}

func TestBelongTo(t *testing.T) {
	rollout := memory.WorkloadRef{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: "web"}
	pod := memory.WorkloadRef{APIVersion: "v1", Kind: "Pod", Name: "web"}
	for name, tc := range map[string]struct {
		refs []metav1.OwnerReference
		of   memory.WorkloadRef
		uid  types.UID
		want bool
	}{
		"the pod's own workload":          {owned("now"), web, "now", true},
		"an earlier one of the same name": {owned("before"), web, "now", false},
		"a record that names no owner":    {nil, web, "now", false},
		"a UID that is not known yet":     {owned("now"), web, "", true},
		"another version of the same group": {
			[]metav1.OwnerReference{{APIVersion: "argoproj.io/v1", Kind: "Rollout", Name: "web", UID: "r"}}, rollout, "r", true,
		},
		"the same kind of another group": {
			owned("now"), memory.WorkloadRef{APIVersion: "example.com/v1", Kind: "Deployment", Name: "web"}, "now", false,
		},
		"a pod without a controller, again":  {Owners(pod, "p"), pod, "", false},
		"a pod that has its UID at creation": {Owners(pod, "p"), pod, "q", false},
	} {
		if got := UsableFor(tc.refs, tc.of, tc.uid); got != tc.want {
			t.Errorf("%s: UsableFor = %t, want %t", name, got, tc.want)
		}
	}
}
