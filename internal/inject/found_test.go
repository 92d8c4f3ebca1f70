// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
)

func TestWhatWasFoundHoldsForTheSameImage(t *testing.T) {
	all := v1alpha1.RuntimeSpec{
		Type: v1alpha1.RuntimeJVM, Version: "17.0.15", Variant: "OpenJ9", Libc: v1alpha1.LibcMusl,
	}
	kind := v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM, Variant: "OpenJ9"}
	none := v1alpha1.RuntimeSpec{}
	for _, c := range []struct {
		found, image string
		want         v1alpha1.RuntimeSpec
	}{
		{"r.test/app:1", "r.test/app:1", all},
		{"r.test/app:1", "r.test/app:2", kind},
		{"r.test/app:1", "r.test/app@sha256:00", kind},
		{"r.test/app@sha256:00", "r.test/app@sha256:00", all},
		{"r.test/app:latest@sha256:00", "r.test/app:latest@sha256:00", all},
		{"r.test/app:latest", "r.test/app:latest", kind},
		{"r.test/app", "r.test/app", kind},
		{"r.test:5000/app", "r.test:5000/app", kind},
		{"r.test:5000/app:1", "r.test:5000/app:1", all},
		{"r.test:5000/app", "r.test:5001/app", none},
		{"r.test/app:1", "r.test/apps:1", none},
		{"", "", none},
		{"r.test/app:1", "", none},
	} {
		one := target{container: &corev1.Container{Image: c.image}, found: &v1alpha1.FoundRuntime{
			Image: c.found, Type: all.Type, Version: all.Version, Variant: all.Variant, Libc: all.Libc,
		}}
		if got, known := one.foundSpec(); got != c.want || known != (c.want != none) {
			t.Errorf("found in %q, created from %q: %+v %t, want %+v", c.found, c.image, got, known, c.want)
		}
	}
}

// TestNothingFoundChangesNothing: without agents a plan is what it was, whatever else is known of replicas.
func TestNothingFoundChangesNothing(t *testing.T) {
	for _, f := range []*v1alpha1.FoundRuntime{
		nil, {}, {Image: "app:1", HeapPercent: 50}, {Type: v1alpha1.RuntimeAuto, Image: "app:1", HeapPercent: 50},
	} {
		in := nodePod("1Gi", v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeAuto}})
		in.Pod.Spec.Containers[0].Image = "app:1"
		want := MakePlan(in)
		in.Observed = map[string]Observed{"app": {Found: f}}
		got := MakePlan(in)
		if got.annotation != want.annotation || got.Container("app").Growth() != want.Container("app").Growth() {
			t.Errorf("%+v: %s, without it %s", f, got.annotation, want.annotation)
		}
	}
}
