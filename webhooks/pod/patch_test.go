// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/budget"
	"github.com/memfit/memfit/test/goldenpods"
)

// patched is what the API server makes of raw with our patch.
func patched(t *testing.T, raw []byte, before, after *corev1.Pod) []byte {
	t.Helper()
	encoded, err := patchOf(t, raw, before, after)
	if err != nil {
		t.Fatal(err)
	}
	if len(encoded) == 0 {
		return raw
	}
	return applied(t, raw, encoded)
}

func applied(t *testing.T, raw, encoded []byte) []byte {
	t.Helper()
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		t.Fatal(err)
	}
	result, err := patch.Apply(raw)
	if err != nil {
		t.Fatalf("%s does not apply to %s: %v", encoded, raw, err)
	}
	return result
}

func decode(t *testing.T, raw []byte) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	if err := json.Unmarshal(raw, &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// TestPatchKeepsWhatWeDoNotKnow: fields of newer Kubernetes versions, here all called "new", are lost by no edit of
// their neighbors.
func TestPatchKeepsWhatWeDoNotKnow(t *testing.T) {
	const raw = `{"metadata":{"name":"web","new":1},"spec":{"new":[1],"containers":[{"name":"app","new":{"a":1},
		"env":[{"name":"A","value":"1","new":true},{"name":"NODE_OPTIONS","value":"-r x"},{"name":"F","valueFrom":{"newKeyRef":{"key":"k"}}}],
		"resources":{"limits":{"cpu":"1","new.example/x":"2"},"new":[]}}]}}`
	before := decode(t, []byte(raw))
	after := before.DeepCopy()
	after.Annotations = map[string]string{"memfit.dev/injected": "{}"}
	c := &after.Spec.Containers[0]
	c.Env[1].Value = "-r x --max-old-space-size=100"
	c.Env = append(c.Env, corev1.EnvVar{Name: "MALLOC_ARENA_MAX", Value: "2"})
	c.ResizePolicy = []corev1.ContainerResizePolicy{
		{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
	}
	c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("512Mi")
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}

	const want = `{"metadata":{"name":"web","new":1,"annotations":{"memfit.dev/injected":"{}"}},"spec":{"new":[1],"containers":[{"name":"app","new":{"a":1},
		"env":[{"name":"A","value":"1","new":true},{"name":"NODE_OPTIONS","value":"-r x --max-old-space-size=100"},{"name":"F","valueFrom":{"newKeyRef":{"key":"k"}}},{"name":"MALLOC_ARENA_MAX","value":"2"}],
		"resizePolicy":[{"resourceName":"memory","restartPolicy":"RestartContainer"}],
		"resources":{"limits":{"cpu":"1","new.example/x":"2","memory":"512Mi"},"requests":{"memory":"256Mi"},"new":[]}}]}}`
	var gotTree, wantTree any
	if err := json.Unmarshal(patched(t, []byte(raw), before, after), &gotTree); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &wantTree); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantTree, gotTree); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
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
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	after := pod.DeepCopy()
	if patch, err := patchOf(t, raw, pod, after); err != nil || len(patch) != 0 {
		t.Errorf("no change makes %s (%v), want nothing", patch, err)
	}
	after.Spec.Containers[7].Env = append(after.Spec.Containers[7].Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: "1"})
	const want = `[{"op":"add","path":"/spec/containers/7/env/2","value":{"name":"GOMEMLIMIT","value":"1"}}]`
	if patch, err := patchOf(t, raw, pod, after); err != nil || string(patch) != want {
		t.Errorf("one new variable makes %s (%v), want %s", patch, err, want)
	}
}

// TestPatchIsThePlan: the patch makes of each pod of the golden pairs what applying the plan makes of it, with and
// without a new size.
func TestPatchIsThePlan(t *testing.T) {
	inputs, err := goldenpods.Inputs()
	if err != nil {
		t.Fatal(err)
	}
	outputs, err := goldenpods.Outputs()
	if err != nil {
		t.Fatal(err)
	}
	empty := 0
	for _, file := range slices.Concat(inputs, outputs) {
		raw, p := golden(t, strings.TrimSuffix(file, ".injected"))
		if strings.HasSuffix(file, ".injected") { // what was injected before, with a profile that has nothing to say any more
			raw, _ = golden(t, file)
			p.Spec.Tuning.Mode = v1alpha1.TuningDisabled
		}
		for _, size := range []memory.Size{{}, {Request: 200 * memory.MiB, Limit: 300 * memory.MiB}} {
			pod := decode(t, raw)
			sizes := map[string]inject.Offer{}
			for _, c := range pod.Spec.Containers {
				sizes[c.Name] = inject.Offer{Size: size}
			}
			plan := inject.MakePlan(
				inject.Input{
					Pod: pod, Sizes: sizes,
					Profile: &profile.Profile{Ref: v1alpha1.ProfileReference{Kind: "MemoryProfile", Name: p.Name}, Spec: &p.Spec},
				},
			)
			patch, err := podPatch(sent(t, raw, pod), plan, "")
			if err != nil {
				t.Fatal(err)
			}
			if plan.Changes() != (len(patch) > 0) {
				t.Errorf("%s: the plan changes something: %t, patch %s", file, plan.Changes(), patch)
			}
			if len(patch) == 0 {
				empty++
				continue
			}
			want := pod.DeepCopy()
			plan.Apply(want)
			if diff := cmp.Diff(normal(want), normal(decode(t, applied(t, raw, patch)))); diff != "" {
				t.Errorf("%s, size %s: -applied +patched\n%s", file, size, diff)
			}
		}
	}
	if empty == 0 || empty > len(inputs)+len(outputs) {
		t.Errorf("%d of %d patches are empty", empty, 2*(len(inputs)+len(outputs)))
	}
}

// FuzzPatch: whatever pod there is and whatever is changed in the fields memfit writes, the patched pod is the changed
// one, and the patch is made within its budget.
func FuzzPatch(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 7))
		before := randomPod(rng)
		raw, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		after := before.DeepCopy()
		changed := difference{before, after, change(rng, after)}
		asSent := sent(t, raw, before)
		var patch []byte
		budget.Check(t, patchBudget, len(raw), func() {
			if patch, err = podPatch(asSent, changed, ""); err != nil {
				t.Fatal(err)
			}
		})
		got := decode(t, raw)
		if len(patch) > 0 {
			got = decode(t, applied(t, raw, patch))
		}
		want, err := json.Marshal(after)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(normal(decode(t, want)), normal(got)); diff != "" {
			t.Errorf("seed %d, -want +got:\n%s", seed, diff)
		}
	})
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

func randomPod(rng *rand.Rand) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Annotations = randomMap(rng)
	for i := range rng.IntN(3) {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, randomContainer(rng, "init-"+strconv.Itoa(i)))
	}
	for i := range 1 + rng.IntN(3) {
		pod.Spec.Containers = append(pod.Spec.Containers, randomContainer(rng, "app-"+strconv.Itoa(i)))
	}
	return pod
}

func randomMap(rng *rand.Rand) map[string]string {
	var m map[string]string
	for range rng.IntN(4) {
		if m == nil {
			m = map[string]string{}
		}
		m[pick(rng, v1alpha1.InjectedAnnotation, "other")] = someText(rng)
	}
	return m
}

func randomContainer(rng *rand.Rand, name string) corev1.Container {
	c := corev1.Container{Name: name, Env: randomEnv(rng)}
	if rng.IntN(2) == 0 {
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	}
	if rng.IntN(2) == 0 {
		setMemory(rng, &c.Resources.Limits)
	}
	if rng.IntN(2) == 0 {
		setMemory(rng, &c.Resources.Requests)
	}
	return c
}

func randomEnv(rng *rand.Rand) []corev1.EnvVar {
	var env []corev1.EnvVar
	for range rng.IntN(6) {
		env = append(env, corev1.EnvVar{Name: pick(rng, "A", "B", "GOGC", "NODE_OPTIONS"), Value: pick(rng, "", "1", "$(A)")})
	}
	return env
}

func setMemory(rng *rand.Rand, list *corev1.ResourceList) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[corev1.ResourceMemory] = resource.MustParse(pick(rng, "128Mi", "512Mi", "1Gi"))
}

// change edits what memfit may edit, and returns the variables by container.
func change(rng *rand.Rand, pod *corev1.Pod) map[string][]inject.Variable {
	env := map[string][]inject.Variable{}
	switch rng.IntN(3) {
	case 0:
		delete(pod.Annotations, v1alpha1.InjectedAnnotation)
	case 1:
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[v1alpha1.InjectedAnnotation] = someText(rng)
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			if rng.IntN(2) == 0 {
				env[c.Name] = changedEnv(rng, c.Env)
				c.Env = present(env[c.Name])
			}
			if rng.IntN(2) == 0 {
				c.ResizePolicy = []corev1.ContainerResizePolicy{
					{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
				}
			}
			if rng.IntN(2) == 0 {
				setMemory(rng, &c.Resources.Limits)
			}
			if rng.IntN(2) == 0 {
				setMemory(rng, &c.Resources.Requests)
			}
		}
	}
	return env
}

// changedEnv is a list in which some variables are removed, some changed, and some new.
func changedEnv(rng *rand.Rand, have []corev1.EnvVar) (all []inject.Variable) {
	some := func() corev1.EnvVar {
		return corev1.EnvVar{Name: pick(rng, "A", "C", "GOMEMLIMIT"), Value: pick(rng, "1", "2", "\"\t\u2028\\")}
	}
	for _, v := range have {
		one := inject.Variable{EnvVar: v, Absent: rng.IntN(4) == 0}
		if rng.IntN(4) == 0 {
			one.EnvVar = some()
		}
		all = append(all, one)
	}
	for range rng.IntN(3) {
		all = append(all, inject.Variable{EnvVar: some()})
	}
	return all
}

// present are the variables that are not removed.
func present(all []inject.Variable) (env []corev1.EnvVar) {
	for _, v := range all {
		if !v.Absent {
			env = append(env, v.EnvVar)
		}
	}
	return env
}

func someText(rng *rand.Rand) string {
	return pick(rng, "1", `{"a":"b"}`, "two\nlines, é, <&> and \\")
}

func pick(rng *rand.Rand, options ...string) string { return options[rng.IntN(len(options))] }

// patchOf makes the patch of the raw pod.
func patchOf(t testing.TB, raw []byte, before, after *corev1.Pod) ([]byte, error) {
	t.Helper()
	return podPatch(sent(t, raw, before), difference{before, after, nil}, "")
}

// sent is a pod with what the webhook reads of its text besides.
func sent(t testing.TB, raw []byte, pod *corev1.Pod) sentPod {
	t.Helper()
	asked, err := readReview(reviewOf(raw))
	if err != nil {
		t.Fatal(err)
	}
	p, err := asked.pod(&pod.ObjectMeta)
	if err != nil {
		t.Fatal(err)
	}
	p.Pod = pod
	return p
}

// difference is what became of a pod, as a plan would tell it, and of the variables of containers, where not each is in
// its place.
type difference struct {
	before, after *corev1.Pod
	env           map[string][]inject.Variable
}

func (d difference) Edit(name string) (e inject.Edit) {
	before, after := containerOf(d.before, name), containerOf(d.after, name)
	if e.Env = d.env[name]; e.Env == nil && !cmp.Equal(before.Env, after.Env) {
		for i, v := range after.Env {
			if i < len(before.Env) && cmp.Equal(v, before.Env[i]) {
				v = before.Env[i] // with the same source
			}
			e.Env = append(e.Env, inject.Variable{EnvVar: v})
		}
	}
	if !cmp.Equal(before.ResizePolicy, after.ResizePolicy) {
		e.ResizePolicy = &after.ResizePolicy[0].RestartPolicy
	}
	if !cmp.Equal(before.Resources, after.Resources) {
		e.Memory = &memory.Size{
			Request: memory.FromQuantity(*after.Resources.Requests.Memory()),
			Limit:   memory.FromQuantity(*after.Resources.Limits.Memory()),
		}
	}
	return e
}

func (d difference) Whole() *memory.Size {
	was, is := constraints.WholeSize(d.before), constraints.WholeSize(d.after)
	if was == is {
		return nil
	}
	return &is
}

func (d difference) Annotation() (string, bool) {
	text := d.after.Annotations[v1alpha1.InjectedAnnotation]
	return text, text != d.before.Annotations[v1alpha1.InjectedAnnotation]
}

func containerOf(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
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
