// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
)

// of is a profile for one runtime.
func of(r v1alpha1.RuntimeType, tuning v1alpha1.TuningSpec) v1alpha1.MemoryProfileSpec {
	return v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: r}, Tuning: tuning}
}

// TestCapFollows: whose heap cap grows with the limit.
func TestCapFollows(t *testing.T) {
	env := func(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }
	secret := func(name string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: name}}}
	}
	none, percent := v1alpha1.TuningSpec{}, v1alpha1.TuningSpec{HeapPercent: new(int32(60))}
	off := v1alpha1.TuningSpec{Mode: v1alpha1.TuningOff}
	literal := v1alpha1.TuningSpec{HeapLimit: new(resource.MustParse("256Mi"))}
	for name, tc := range map[string]struct {
		in              Input
		follows, frozen bool
	}{
		"a JVM's own quarter":  {nodePod("512Mi", of("JVM", none)), true, false},
		"a JVM with our share": {nodePod("512Mi", of("JVM", percent)), true, false},
		"a JVM with the user's share": {
			nodePod("512Mi", of("JVM", none), env("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=75 -XX:InitialRAMPercentage=75")),
			true, false,
		},
		"the same, and we would set one": {
			nodePod("512Mi", of("JVM", percent), env("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=75")), true, false,
		},
		"a JVM with -Xmx": {
			nodePod("512Mi", of("JVM", percent), env("JAVA_OPTS", "-Xms64m -Xmx300m")), false, false,
		},
		"a JVM with -Xmx, nothing asked": {
			nodePod("512Mi", of("JVM", none), env("JAVA_TOOL_OPTIONS", "-Xmx300m")), false, false,
		},
		"a JVM with -Xmx, tuning off": {
			nodePod("512Mi", of("JVM", off), env("JAVA_TOOL_OPTIONS", "-Xmx300m")), false, false,
		},
		"a JVM with -Xms alone": {
			nodePod("512Mi", of("JVM", percent), env("JAVA_TOOL_OPTIONS", "-Xms64m")), true, false,
		},
		"a JVM whose options are a secret": {nodePod("512Mi", of("JVM", none), secret("JAVA_TOOL_OPTIONS")), false, false},
		"a JVM without a limit":            {nodePod("", of("JVM", none)), false, false},
		"node with our number":             {nodePod("512Mi", of("NodeJS", none)), true, true},
		"node with heapLimit":              {nodePod("1Gi", of("NodeJS", literal)), false, true},
		"node with the user's number": {
			nodePod("512Mi", of("NodeJS", none), env("NODE_OPTIONS", "--max_old_space_size=300")), false, false,
		},
		"node with the user's share": {
			nodePod("512Mi", of("NodeJS", none), env("NODE_OPTIONS", "--max-old-space-size-percentage=60")), true, false,
		},
		".NET's own three quarters": {nodePod("512Mi", of("DotNet", none)), true, false},
		".NET with the user's share": {
			nodePod("512Mi", of("DotNet", percent), env("DOTNET_GCHeapHardLimitPercent", "0x32")), true, false,
		},
		".NET with the user's number": {
			nodePod("512Mi", of("DotNet", percent), env("DOTNET_GCHeapHardLimit", "0x10000000")), false, false,
		},
		"Python has no cap": {nodePod("512Mi", of("Python", none)), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Created = true
			if follows, frozen := MakePlan(tc.in).CapFollows("app"); follows != tc.follows || frozen != tc.frozen {
				t.Errorf("follows %t, frozen %t; want %t, %t", follows, frozen, tc.follows, tc.frozen)
			}
		})
	}
	if follows, _ := MakePlan(nodePod("512Mi", of("JVM", none))).CapFollows("nobody"); follows {
		t.Error("a container that is not there follows")
	}
}
