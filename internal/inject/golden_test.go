// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/goldenpods"
)

var update = flag.Bool("update", false, "write *.yaml.injected of testdata and its folders anew")

// TestGolden injects every NAME.yaml of testdata and its folders and compares with NAME.yaml.injected: the pod, and
// below it, as comments, what status and warnings say about it. A NAME.yaml holds the objects that matter: a profile
// (default: one that says nothing), the pod, ConfigMaps whose keys are known, and a MemoryRecommendation for sizing
// modes that size new pods.
func TestGolden(t *testing.T) {
	inputs, err := goldenpods.Inputs()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			in := readCase(t, file)
			before := in.Pod.DeepCopy()
			plan := MakePlan(in)
			if diff := cmp.Diff(before, in.Pod); diff != "" {
				t.Fatalf("making the plan changed the pod (-before +after):\n%s", diff)
			}
			plan.Apply(in.Pod)
			checkValid(t, in.Pod)
			checkGolden(t, file+".injected", render(t, in.Pod, plan))
			checkTwice(t, in)
		})
	}
	stale(t, inputs)
}

// checkTwice applies again what was just applied, with and without the sizes, as reinvocation and as a later look
// would.
func checkTwice(t *testing.T, in Input) {
	t.Helper()
	for name, again := range map[string]Input{
		"reinvoked": in,
		"looked at": {Pod: in.Pod, Profile: in.Profile, ConfigMapKeys: in.ConfigMapKeys, Observed: in.Observed},
	} {
		pod := in.Pod.DeepCopy()
		again.Pod = pod
		plan := MakePlan(again)
		if plan.Changes() {
			t.Errorf("%s: the second plan would change something", name)
		}
		plan.Apply(pod)
		if diff := cmp.Diff(in.Pod, pod); diff != "" {
			t.Errorf("%s: applying twice differs from applying once (-once +twice):\n%s", name, diff)
		}
	}
}

func checkGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test ./internal/inject -run TestGolden -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// stale fails on outputs without an input.
func stale(t *testing.T, inputs []string) {
	t.Helper()
	outputs, err := goldenpods.Outputs()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range outputs {
		if slices.Contains(inputs, strings.TrimSuffix(file, ".injected")) {
			continue
		}
		if *update {
			if err := os.Remove(file); err != nil {
				t.Error(err)
			}
			continue
		}
		t.Errorf("%s has no input: remove it", file)
	}
}

// render is the pod as YAML and what memfit says about it as comments.
func render(t *testing.T, pod *corev1.Pod, p Plan) string {
	t.Helper()
	out, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(out), "status: {}\n", "", 1)
	comment := func(label string, lines []string) {
		for _, line := range lines {
			text += fmt.Sprintf("# %s: %s\n", label, line)
		}
	}
	for i := range p.containers {
		c := &p.containers[i]
		comment(c.name+" runs", []string{c.Runtime()})
		comment(c.name+" gets", c.Settings())
		comment(c.name+" skips", c.Skipped())
		comment(c.name+" advice", c.Advice())
	}
	comment("warning", p.Warnings())
	return text
}

// readCase reads the objects of one case.
func readCase(t *testing.T, file string) Input {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in := Input{
		Profile: &profile.Profile{
			Ref: v1alpha1.ProfileReference{Kind: profile.KindNamespaced, Name: "web"}, Namespace: "shop", Generation: 1,
			Spec: &v1alpha1.MemoryProfileSpec{},
		},
	}
	for doc := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var kind struct{ Kind string }
		must(t, yaml.Unmarshal(doc, &kind))
		switch kind.Kind {
		case "MemoryProfile":
			var p v1alpha1.MemoryProfile
			must(t, yaml.UnmarshalStrict(doc, &p))
			in.Profile.Ref.Name, in.Profile.Spec = p.Name, &p.Spec
		case "Pod":
			in.Pod = &corev1.Pod{}
			must(t, yaml.UnmarshalStrict(doc, in.Pod))
		case "ConfigMap":
			var m corev1.ConfigMap
			must(t, yaml.UnmarshalStrict(doc, &m))
			if in.ConfigMapKeys == nil {
				in.ConfigMapKeys = make(map[string]map[string]bool)
			}
			in.ConfigMapKeys[m.Name] = make(map[string]bool)
			for key := range m.Data {
				in.ConfigMapKeys[m.Name][key] = true
			}
		case "MemoryRecommendation":
			var r v1alpha1.MemoryRecommendation
			must(t, yaml.UnmarshalStrict(doc, &r))
			in.Sizes, in.Observed = OffersIn(r.Status.Containers), ObservedIn(r.Status.Containers)
		default:
			t.Fatalf("%s: kind %q has no place in a golden case", file, kind.Kind)
		}
	}
	if in.Pod == nil {
		t.Fatalf("%s has no Pod", file)
	}
	return in
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
