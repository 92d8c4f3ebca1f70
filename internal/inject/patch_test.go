// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/budget"
	"github.com/memfit/memfit/test/goldenpods"
)

// patched is what the API server makes of raw with a patch.
func patched(t *testing.T, raw []byte, patch Patch) []byte {
	t.Helper()
	text, err := json.Marshal(patch)
	must(t, err)
	decoded, err := jsonpatch.DecodePatch(text)
	must(t, err)
	result, err := decoded.Apply(raw)
	if err != nil {
		t.Fatalf("%s does not apply to %s: %v", text, raw, err)
	}
	return result
}

func decode(t *testing.T, raw []byte) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	must(t, json.Unmarshal(raw, &pod))
	return &pod
}

// TestPatchKeepsWhatWeDoNotKnow: fields of newer Kubernetes versions, here all called "new", are lost by no edit of
// their neighbors.
func TestPatchKeepsWhatWeDoNotKnow(t *testing.T) {
	const raw = `{"metadata":{"name":"web","new":1},"spec":{"new":[1],"containers":[{"name":"app","new":{"a":1},
		"env":[{"name":"A","value":"1","new":true},{"name":"NODE_OPTIONS","value":"-r x","new":2},
			{"name":"F","valueFrom":{"newKeyRef":{"key":"k"}}}],
		"resources":{"limits":{"cpu":"1","new.example/x":"2"},"new":[]}}]}}`
	const want = `{"metadata":{"name":"web","new":1,"annotations":{"memfit.dev/injected":"{}"}},
		"spec":{"new":[1],"containers":[{"name":"app","new":{"a":1},
		"env":[{"name":"A","value":"1","new":true},{"name":"NODE_OPTIONS","value":"-r x --max-old-space-size=100","new":2},
			{"name":"F","valueFrom":{"newKeyRef":{"key":"k"}}},{"name":"MALLOC_ARENA_MAX","value":"2"}],
		"resizePolicy":[{"resourceName":"memory","restartPolicy":"RestartContainer"}],
		"resources":{"limits":{"cpu":"1","new.example/x":"2","memory":"512Mi"},"requests":{"memory":"256Mi"},"new":[]}}]}}`
	pod := decode(t, []byte(raw))
	env := variablesOf(pod.Spec.Containers[0].Env)
	env[1].Value += " --max-old-space-size=100"
	env = append(env, Variable{EnvVar: corev1.EnvVar{Name: "MALLOC_ARENA_MAX", Value: "2"}})
	plan := Plan{
		annotation: "{}", annotated: true, containers: []ContainerPlan{{name: "app", edit: Edit{
			Env: env, ResizePolicy: new(corev1.RestartContainer), Memory: &memory.Size{Limit: mib(512), Request: mib(256)},
		}}},
	}
	var gotTree, wantTree any
	must(t, json.Unmarshal(patched(t, []byte(raw), plan.Patch(pod)), &gotTree))
	must(t, json.Unmarshal([]byte(want), &wantTree))
	if diff := cmp.Diff(wantTree, gotTree); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func variablesOf(env []corev1.EnvVar) []Variable {
	all := make([]Variable, len(env))
	for i := range env {
		all[i].EnvVar = env[i]
	}
	return all
}

// TestPatchIsSmall: what does not change is not mentioned.
func TestPatchIsSmall(t *testing.T) {
	pod := &corev1.Pod{}
	for i := range 40 {
		pod.Spec.Containers = append(
			pod.Spec.Containers,
			corev1.Container{Name: strings.Repeat("c", i+1), Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B"}}},
		)
	}
	if patch := (Plan{}).Patch(pod); patch != nil {
		t.Errorf("no change makes %v, want nothing", patch)
	}
	c := pod.Spec.Containers[7]
	for _, tc := range []struct {
		change func([]Variable) []Variable
		want   string
	}{
		{
			func(env []Variable) []Variable {
				return append(env, Variable{EnvVar: corev1.EnvVar{Name: "GOMEMLIMIT", Value: "1"}})
			},
			`[{"op":"add","path":"/spec/containers/7/env/2","value":{"name":"GOMEMLIMIT","value":"1"}}]`,
		},
		{
			func(env []Variable) []Variable {
				env[0].Value = ""
				return env
			},
			`[{"op":"add","path":"/spec/containers/7/env/0/value","value":""}]`,
		},
		{
			func(env []Variable) []Variable {
				env[0].Absent = true
				return env
			},
			`[{"op":"remove","path":"/spec/containers/7/env/0"}]`,
		},
	} {
		plan := Plan{containers: []ContainerPlan{{name: c.Name, edit: Edit{Env: tc.change(variablesOf(c.Env))}}}}
		if got, err := json.Marshal(plan.Patch(pod)); err != nil || string(got) != tc.want {
			t.Errorf("%s (%v), want %s", got, err, tc.want)
		}
	}
}

// TestPatchIsThePlan: the patch makes of each pod of the golden pairs what applying the plan makes of it, with and
// without a new size.
func TestPatchIsThePlan(t *testing.T) {
	inputs, err := goldenpods.Inputs()
	must(t, err)
	outputs, err := goldenpods.Outputs()
	must(t, err)
	empty := 0
	for _, file := range slices.Concat(inputs, outputs) {
		pair, err := goldenpods.Read(strings.TrimSuffix(file, ".injected"))
		must(t, err)
		raw, p := pair.Pod, pair.Profile
		if strings.HasSuffix(file, ".injected") { // what was injected before, with a profile that sets nothing any more
			before, err := goldenpods.Read(file)
			must(t, err)
			raw = before.Pod
			p.Spec.Tuning.Mode = v1alpha1.TuningDisabled
		}
		for _, size := range []memory.Size{{}, {Request: mib(200), Limit: mib(300)}} {
			pod := decode(t, raw)
			sizes := map[string]Offer{}
			for _, c := range pod.Spec.Containers {
				sizes[c.Name] = Offer{Size: size}
			}
			plan := MakePlan(Input{
				Pod: pod, Sizes: sizes,
				Profile: &profile.Profile{Ref: v1alpha1.ProfileReference{Kind: "MemoryProfile", Name: p.Name}, Spec: &p.Spec},
			})
			patch := plan.Patch(pod)
			if plan.Changes() != (len(patch) > 0) {
				t.Errorf("%s: the plan changes something: %t, patch %v", file, plan.Changes(), patch)
			}
			if len(patch) == 0 {
				empty++
				continue
			}
			want := pod.DeepCopy()
			plan.Apply(want)
			if diff := unlike(want, decode(t, patched(t, raw, patch))); diff != "" {
				t.Errorf("%s, size %s: -applied +patched\n%s", file, size, diff)
			}
		}
	}
	if empty == 0 || empty > len(inputs)+len(outputs) {
		t.Errorf("%d of %d patches are empty", empty, 2*(len(inputs)+len(outputs)))
	}
}

// unlike is the difference of two pods for the API server, to which an empty map or list and none are the same.
func unlike(want, got *corev1.Pod) string {
	if equality.Semantic.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

// patchBudget is what a patch may take, per byte of the pod.
var patchBudget = budget.Budget{Bytes: 64 << 10, PerByte: 32, CPU: time.Second}

// FuzzPatch: whatever pod there is and whatever is changed in the fields memfit writes, the patched pod is the changed
// one, and the patch is made within its budget.
func FuzzPatch(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		c := newChance(seed)
		pod := c.pod()
		if c.one(2) {
			pod.Annotations = map[string]string{v1alpha1.InjectedAnnotation: pick(c, texts...), "other": "1"}
		}
		plan := c.plan(pod)
		raw, err := json.Marshal(pod)
		must(t, err)
		var patch Patch
		budget.Check(t, patchBudget, len(raw), func() {
			patch = plan.Patch(pod)
			if _, err := json.Marshal(patch); err != nil {
				t.Fatal(err)
			}
		})
		want := pod.DeepCopy()
		plan.Apply(want)
		if diff := unlike(want, decode(t, patched(t, raw, patch))); diff != "" {
			t.Errorf("seed %d, -applied +patched:\n%s", seed, diff)
		}
	})
}

// plan changes what a plan may change.
func (c chance) plan(pod *corev1.Pod) Plan {
	var p Plan
	have, found := pod.Annotations[v1alpha1.InjectedAnnotation]
	p.annotation = pick(c, "", have, `{"a":"b"}`, "two\nlines, é, <&> and \\")
	p.annotated = p.annotation != have && (p.annotation != "" || found)
	if c.one(3) && pod.Spec.Resources != nil {
		p.whole = &memory.Size{Limit: mib(700), Request: pick(c, 0, mib(700))}
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			one := ContainerPlan{name: list[i].Name}
			if c.one(2) {
				one.edit.Env = c.changed(list[i].Env)
			}
			if c.one(2) {
				one.edit.ResizePolicy = new(pick(c, "", corev1.NotRequired, corev1.RestartContainer))
			}
			if c.one(2) {
				one.edit.Memory = &memory.Size{Limit: pick(c, 0, mib(512)), Request: pick(c, 0, mib(256))}
			}
			p.containers = append(p.containers, one)
		}
	}
	return p
}

// changed is a list in which some variables are removed, some changed, and some new.
func (c chance) changed(have []corev1.EnvVar) (all []Variable) {
	some := func() corev1.EnvVar { return corev1.EnvVar{Name: pick(c, names...), Value: pick(c, texts...)} }
	for _, v := range have {
		one := Variable{EnvVar: v, Absent: c.one(4)}
		switch {
		case c.one(4):
			one.EnvVar = some()
		case c.one(4) && v.ValueFrom == nil:
			one.Value = pick(c, texts...)
		}
		all = append(all, one)
	}
	for range c.IntN(3) {
		all = append(all, Variable{EnvVar: some()})
	}
	return all
}

// TestPatchIsLinear: 25,000 variables, of which nothing at either end stays as it is. A table of both lists would have
// 625 million cells.
func TestPatchIsLinear(t *testing.T) {
	const many = 25_000
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	c := &pod.Spec.Containers[0]
	for i := range many {
		c.Env = append(c.Env, corev1.EnvVar{Name: "VARIABLE_" + strconv.Itoa(i), Value: "some text"})
	}
	raw, err := json.Marshal(pod)
	must(t, err)
	for name, edit := range map[string]func([]Variable) []Variable{
		"first and last changed": func(env []Variable) []Variable {
			env[0].Value, env[many-1].Value = "a", "b"
			return env
		},
		"first gone, one added": func(env []Variable) []Variable {
			env[0].Absent = true
			return append(env, Variable{EnvVar: corev1.EnvVar{Name: "NEW"}})
		},
		"all changed": func(env []Variable) []Variable {
			for i := range env {
				env[i].Value = "other"
			}
			return env
		},
		"the same item all over": func(env []Variable) []Variable {
			for i := range env {
				env[i].EnvVar = corev1.EnvVar{Name: "A"}
			}
			return env
		},
	} {
		plan := Plan{containers: []ContainerPlan{{name: "app", edit: Edit{Env: edit(variablesOf(c.Env))}}}}
		t.Run(name, func(t *testing.T) {
			var patch Patch
			budget.Check(t, patchBudget, len(raw), func() {
				patch = plan.Patch(pod)
				if _, err := json.Marshal(patch); err != nil {
					t.Fatal(err)
				}
			})
			if most := many; len(patch) > most || (name[:5] == "first" && len(patch) != 2) {
				t.Errorf("%d operations for %s", len(patch), name)
			}
		})
	}
}
