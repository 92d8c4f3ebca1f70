// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/goldenpods"
	"github.com/memfit/memfit/test/podplan"
)

// TestOnePodIsTheCanary: of the pods that ask while a permission stands, one gets the lower limit, from the replica
// that may give it; with the next permission another one does.
func TestOnePodIsTheCanary(t *testing.T) {
	pair, err := goldenpods.Read(filepath.Join(goldenpods.Dir(), "size-on-create.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	pod := decode(t, pair.Pod)
	size := func(limit string) *v1alpha1.Size {
		q := resource.MustParse(limit)
		return &v1alpha1.Size{Limit: &q, Request: &q}
	}
	owner := inject.ProgramOf(pod, "app", false).Owner
	in := inject.Input{Pod: pod, Profile: &profile.Profile{
		Ref: v1alpha1.ProfileReference{Kind: "MemoryProfile", Name: "web"}, Spec: &pair.Profile.Spec,
	}}
	injected := pod.DeepCopy()
	podplan.Apply(injected, inject.MakePlan(in))
	asked := profile.APISize(owner)
	rec := &v1alpha1.MemoryRecommendation{}
	rec.UID = "rec"
	rec.Status.Containers = []v1alpha1.ContainerRecommendation{{
		Container: "app", Program: inject.ProgramOf(injected, "app", false).ID, Owner: &asked, NewPods: &asked,
		Recommended: size("100Mi"),
	}}
	in.Sizes = inject.OffersIn(rec.Status.Containers)
	limit := func(c *Canaries) memory.Bytes {
		if m := c.plan(in, rec, false, false).Edit("app").Memory; m != nil {
			return m.Limit
		}
		return 0
	}
	mine, other := &Canaries{Replica: "memfit-0"}, &Canaries{Replica: "memfit-1"}
	if limit(mine) != 0 {
		t.Error("a canary without a permission")
	}
	rec.Status.Canary = &v1alpha1.Canary{Number: 7, Replica: "memfit-0"}
	if got := limit(other); got != 0 {
		t.Errorf("a replica that may not give it gives %s", got)
	}
	for i, want := range []memory.Bytes{100 * memory.MiB, 0, 0} {
		if got := limit(mine); got != want {
			t.Errorf("pod %d gets %s, want %s", i, got, want)
		}
	}
	rec.Status.Canary.Number++
	if got := limit(mine); got != 100*memory.MiB {
		t.Errorf("with the next permission a pod gets %s", got)
	}
	rec.Status.Canary.Number++
	rec.Status.Containers[0].Program = "another"
	if got := limit(mine); got != 0 {
		t.Errorf("a pod of another program gets %s", got)
	}
	rec.Status.Containers[0].Program = inject.ProgramOf(injected, "app", false).ID
	if got := limit(mine); got != 100*memory.MiB {
		t.Errorf("a pod of another program took the permission: %s", got)
	}
	rec.Status.Canary.Number++
	canary := pod.DeepCopy()
	podplan.Apply(canary, mine.plan(in, rec, false, false))
	canary.Spec.Containers = append(canary.Spec.Containers, corev1.Container{Name: "vault-agent"})
	again := in
	again.Pod = canary
	for _, c := range []*Canaries{mine, other, nil} {
		if m := c.plan(again, rec, true, false).Edit("app").Memory; m != nil {
			t.Errorf("a canary that another webhook changed gets %s when memfit is called again", m)
		}
	}
	if again.Pod = injected; other.plan(again, rec, true, false).Edit("app").Memory != nil {
		t.Error("a pod that was not the canary becomes one when memfit is called again")
	}
	var none *Canaries
	if none.allowed(rec) {
		t.Error("a webhook without a name creates canaries")
	}
}
