// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/test/budget"
)

// ownerBudget is what finding the workload of any pod may take: a handful of lookups, whatever its references are.
var ownerBudget = budget.Budget{Bytes: 256 << 10, PerByte: 16, CPU: time.Second}

// FuzzOwner: owner references are untrusted, in pods and in what they refer to. For any of them, memfit asks for a
// handful of objects at most, and what it takes for the workload is the pod itself or something of which there can be
// an object.
func FuzzOwner(f *testing.F) {
	f.Add("apps/v1", "ReplicaSet", "web-1", "u", "apps/v1", "Deployment", "web", true)
	f.Add("batch/v1", "Job", "web-1", "u", "batch/v1", "Job", "web-1", true)
	f.Add("APPS/v1", "replicaset", "Web_1", "", "argoproj.io/v1alpha1", "Rollout", "a/b", true)
	f.Add("v1", "Node", "node-1", "u", "", "", "", true)
	f.Add("a/b/c", strings.Repeat("K", 64), strings.Repeat("n", 254), "u", "v1", "Pod", "\xff", false)
	f.Add("apps/v1", "ReplicaSet", "ring", "uid-ReplicaSet/ring", "apps/v1", "ReplicaSet", "ring", true)
	// what is allocated once per process is not part of the budget
	checkOwner(f, "apps/v1", "ReplicaSet", "web", "u", "apps/v1", "Deployment", "web", true)
	f.Fuzz(func(t *testing.T, apiVersion, kind, name, uid, aboveVersion, aboveKind, aboveName string, controls bool) {
		size := len(apiVersion) + len(kind) + len(name) + len(uid) + len(aboveVersion) + len(aboveKind) + len(aboveName)
		budget.Check(
			t, ownerBudget, size,
			func() { checkOwner(t, apiVersion, kind, name, uid, aboveVersion, aboveKind, aboveName, controls) },
		)
	})
}

func checkOwner(t testing.TB, apiVersion, kind, name, uid, aboveVersion, aboveKind, aboveName string, controls bool) {
	t.Helper()
	c := holding("ReplicaSet/"+name, "Job/"+name)
	for id := range c.objects {
		c.objects[id].OwnerReferences = []metav1.OwnerReference{
			{APIVersion: aboveVersion, Kind: aboveKind, Name: aboveName, Controller: &controls},
		}
	}
	pod := &metav1.ObjectMeta{Namespace: "shop", Name: "web-1-x7k2p", UID: "pod", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "example.com/v1", Kind: "Bystander", Name: "not-the-controller"},
		{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid), Controller: &controls},
	}}
	owner, err := Resolver{Reader: c, APIReader: c}.Owner(t.Context(), pod)
	if err != nil && !apierrors.IsNotFound(err) && !errors.Is(err, ErrNotSeen) {
		t.Errorf("it cannot be found out: %v", err)
	}
	if len(c.asked) > 2*(maxHops+1) {
		t.Errorf("%d objects were asked for: %q", len(c.asked), c.asked)
	}
	ref := owner.Ref
	if ref.Namespace != "shop" {
		t.Errorf("%s is in another namespace", ref)
	}
	if ref.Kind == "Pod" && ref.APIVersion == "v1" && ref.Name == pod.Name {
		return
	}
	if !controls {
		t.Errorf("%s does not control the pod", ref)
	}
	if !plausible(&metav1.OwnerReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}) {
		t.Errorf("there can be no %+v", ref)
	}
}
