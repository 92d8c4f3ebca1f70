// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/profile"
)

// TestGitOpsExample checks that Argo CD's build of the example equals Flux's builds of its two folders.
func TestGitOpsExample(t *testing.T) {
	const shop = "config/samples/gitops/shop"
	all := build(t, shop)
	parts := append(build(t, shop+"/profiles"), build(t, shop+"/workloads")...)
	if diff := cmp.Diff(parts, all); diff != "" || len(all) != 3 {
		t.Errorf("%d objects (-Flux +Argo CD):\n%s", len(all), diff)
	}
}

// TestSamplesGetTheirSettings checks that each sample workload matches its own profile and gets the promised settings.
func TestSamplesGetTheirSettings(t *testing.T) {
	samples := build(t, "config/samples")
	var profiles []profile.Profile
	for _, p := range all[v1alpha1.MemoryProfile](t, samples, "MemoryProfile") {
		profiles = append(profiles, profile.Profile{
			Ref: v1alpha1.ProfileReference{Kind: profile.KindNamespaced, Name: p.Name}, Namespace: "default", Spec: &p.Spec,
		})
		if invalid := profile.Invalid(&p.Spec); len(invalid) > 0 {
			t.Errorf("sample %s is invalid: %v", p.Name, invalid)
		}
	}
	index := profile.NewIndex(profiles)
	promised := map[string]map[string]string{
		"websocket": {"server": "--max-old-space-size="},
		"orders":    {"app": "-XX:TrimNativeHeapInterval=30000"},
		"gateway":   {"gateway": "GOMEMLIMIT="},
		"worker":    {"worker": "MALLOC_ARENA_MAX=2", "metrics": "GOMEMLIMIT="},
	}
	deployments := all[appsv1.Deployment](t, samples, "Deployment")
	if len(deployments) != len(promised) {
		t.Errorf("%d Deployments, want %d", len(deployments), len(promised))
	}
	for i := range deployments {
		d := &deployments[i]
		match := index.Match(profile.Subject{
			Namespace: "default", PodLabels: d.Spec.Template.Labels, PodAnnotations: d.Spec.Template.Annotations,
			WorkloadAnnotations: d.Annotations,
		})
		if match.Profile == nil || match.Profile.Ref.Name != d.Name {
			t.Errorf("%s matches profile %v: %s", d.Name, match.Profile, match.Why)
			continue
		}
		pod := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
		plan := inject.MakePlan(inject.Input{Pod: pod, Profile: match.Profile})
		for container, want := range promised[d.Name] {
			if got := strings.Join(plan.Container(container).Settings(), "\n"); !strings.Contains(got, want) {
				t.Errorf("%s/%s gets\n%s\nwant %s", d.Name, container, got, want)
			}
		}
	}
}

// TestMemfitItselfIsASample checks that the profile selects the manager's pods and only measures them. memfit ignores
// any other profile for itself.
func TestMemfitItselfIsASample(t *testing.T) {
	profiles := all[v1alpha1.MemoryProfile](t, build(t, "config/samples/self"), "MemoryProfile")
	if len(profiles) != 1 {
		t.Fatalf("%d profiles, want one", len(profiles))
	}
	p := &profiles[0]
	if invalid := profile.Invalid(&p.Spec); len(invalid) > 0 {
		t.Errorf("the profile is invalid: %v", invalid)
	}
	named := profile.Profile{
		Ref: v1alpha1.ProfileReference{Kind: profile.KindNamespaced, Name: p.Name}, Namespace: p.Namespace, Spec: &p.Spec,
	}
	if !named.OnlyMeasures() {
		t.Error("the profile would change the pods that it selects")
	}
	index, selected := profile.NewIndex([]profile.Profile{named}), 0
	for _, d := range all[appsv1.Deployment](t, build(t, "config/default"), "Deployment") {
		match := index.Match(profile.Subject{Namespace: d.Namespace, PodLabels: d.Spec.Template.Labels})
		if match.Profile != nil {
			selected++
		}
	}
	if selected != 1 {
		t.Errorf("the profile selects %d Deployments of config/default, want only the manager's", selected)
	}
}
