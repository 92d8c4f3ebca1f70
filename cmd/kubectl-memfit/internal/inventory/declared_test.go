// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/identity"
	"github.com/memfit/memfit/internal/memory"
)

// TestDeclaredIdentities: a pod that a profile identifies by labels has the workload of its recommendation, where there
// is one.
func TestDeclaredIdentities(t *testing.T) {
	keys := []string{"app", "step"}
	pod := func(namespace, step, kind string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "run-1", Labels: map[string]string{"app": "shop", "step": step},
				OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "apps/v1", Kind: kind, Name: "run", Controller: new(true)},
				},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "shop/step:1"}}},
		}
	}
	id, found := identity.Of(pod("ci", "unit", "Run"), memory.WorkloadRef{
		APIVersion: "apps/v1", Kind: "Run", Namespace: "ci", Name: "run",
	}, keys)
	if !found {
		t.Fatal("nothing identifies the pod")
	}
	ref := id.Ref("ci")
	rec := v1alpha1.MemoryRecommendation{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: ref.Name}}
	rec.Status.Workload = v1alpha1.WorkloadReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
	rec.Status.Identity = &v1alpha1.PodIdentity{Platform: identity.Labeled, Values: id.Values, Labels: keys}
	rec.Status.Profile = v1alpha1.ProfileReference{Kind: "MemoryProfile", Name: "steps"}
	recs := []v1alpha1.MemoryRecommendation{rec}

	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"as its recommendation":          {pod("ci", "unit", "Run"), "PodIdentity " + ref.Name},
		"another step":                   {pod("ci", "lint", "Run"), "Run run"},
		"another namespace":              {pod("cd", "unit", "Run"), "Run run"},
		"the pod of a lasting owner":     {pod("ci", "unit", "StatefulSet"), "StatefulSet run"},
		"without the label of a profile": {pod("ci", "", "Run"), "Run run"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DeclaredIn(recs).Owner(tc.pod); got.Kind+" "+got.Name != tc.want {
				t.Errorf("%s %s, want %s", got.Kind, got.Name, tc.want)
			}
		})
	}

	in := New("")
	in.Declared = DeclaredIn(recs)
	in.AddPod(pod("ci", "unit", "Run"))
	in.Recommend(recs)
	c := in.Containers()[0]
	if c.Kind != "PodIdentity" || c.Workload != ref.Name || c.Profile != "steps" {
		t.Errorf("listed as %s %s with profile %q", c.Kind, c.Workload, c.Profile)
	}
}
