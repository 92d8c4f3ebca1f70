// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/goldenpods"
)

// TestResourcesThatAreThereAreNotReplaced: a size needs the field resources, which may be absent, empty, or have
// members that only a newer Kubernetes knows.
func TestResourcesThatAreThereAreNotReplaced(t *testing.T) {
	for sent, want := range map[string]string{
		`{"name":"app"}`:                           `{"name":"app","resources":{"limits":{"memory":"300Mi"}}}`,
		`{"name":"app","resources":null}`:          `{"name":"app","resources":{"limits":{"memory":"300Mi"}}}`,
		`{"name":"app","resources":{}}`:            `{"name":"app","resources":{"limits":{"memory":"300Mi"}}}`,
		`{"name":"app","resources":{"new":[]}}`:    `{"name":"app","resources":{"new":[],"limits":{"memory":"300Mi"}}}`,
		`{"name":"app","resources":{"limits":{}}}`: `{"name":"app","resources":{"limits":{"memory":"300Mi"}}}`,
		`{"name":"app","resources":{"requests":null}}`: `{"name":"app","resources":{"requests":null,` +
			`"limits":{"memory":"300Mi"}}}`,
	} {
		raw := []byte(`{"template":{"metadata":{},"spec":{"containers":[` + sent + `]}}}`)
		asked, err := readReview(reviewOf(raw[len(`{"template":`) : len(raw)-1]))
		if err != nil {
			t.Fatal(err)
		}
		pod, err := podOf(&asked)
		if err != nil {
			t.Fatal(err)
		}
		a := &admissionv1.AdmissionResponse{}
		plan := inject.MakePlan(inject.Input{
			Pod: pod, Profile: &profile.Profile{Spec: &v1alpha1.MemoryProfileSpec{}}, SizesOnly: true,
			Sizes: map[string]inject.Offer{"app": {Size: memory.Size{Limit: 300 * memory.MiB}}},
		})
		if err := patch(a, plan.Patch(pod), "/template"); err != nil {
			t.Fatal(err)
		}
		decoded, err := jsonpatch.DecodePatch(a.Patch)
		if err != nil {
			t.Fatal(err)
		}
		after, err := decoded.Apply(raw)
		if err != nil {
			t.Fatalf("%s does not apply to %s: %v", a.Patch, raw, err)
		}
		var got struct {
			Template struct{ Spec struct{ Containers []any } }
		}
		var wanted any
		if err := json.Unmarshal(after, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, got.Template.Spec.Containers[0]); diff != "" {
			t.Errorf("%s: -want +got\n%s", sent, diff)
		}
	}
}

func decode(t *testing.T, raw []byte) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	if err := json.Unmarshal(raw, &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// normal: an empty map or list and none are the same to the API server.
func normal(pod *corev1.Pod) *corev1.Pod {
	if len(pod.Annotations) == 0 {
		pod.Annotations = nil
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			if len(c.Env) == 0 {
				c.Env = nil
			}
			if len(c.ResizePolicy) == 0 {
				c.ResizePolicy = nil
			}
			if len(c.Resources.Limits) == 0 {
				c.Resources.Limits = nil
			}
			if len(c.Resources.Requests) == 0 {
				c.Resources.Requests = nil
			}
		}
	}
	return pod
}

// golden is the pod of a golden pair as JSON, and its profile.
func golden(t testing.TB, file string) (pod []byte, profile *v1alpha1.MemoryProfile) {
	t.Helper()
	pair, err := goldenpods.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Pod, pair.Profile
}
