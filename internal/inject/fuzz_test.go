// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/budget"
)

// The models below are written from the descriptions of the runtimes' parsers (docs/reference/settings.md), not from
// the code under test.

// nodeModel is how Node.js reads NODE_OPTIONS: only the space separates, '"' quotes, and "\" escapes inside quotes.
// starts is false where Node.js exits with 9 before it looks at any option.
func nodeModel(text string) (args []string, starts bool) {
	const outside, inside, escaped = 0, 1, 2
	state, fresh := outside, true
	for _, c := range []byte(text) {
		switch {
		case state == inside && c == '\\':
			state = escaped
			continue
		case state == outside && c == ' ':
			fresh = true
			continue
		case state != escaped && c == '"':
			state = inside - state
			continue
		}
		if state == escaped {
			state = inside
		}
		if fresh {
			args, fresh = append(args, ""), false
		}
		args[len(args)-1] += string([]byte{c})
	}
	return args, state == outside
}

// javaModel is how HotSpot reads JAVA_TOOL_OPTIONS: white space separates, either quote quotes, nothing escapes. starts
// is false for a quote that is not closed.
func javaModel(text string) (args []string, starts bool) {
	for text != "" {
		text = strings.TrimLeft(text, " \t\n\v\f\r")
		if text == "" {
			break
		}
		word := ""
		for text != "" && !strings.ContainsAny(text[:1], " \t\n\v\f\r") {
			if quote := text[:1]; quote == "'" || quote == `"` {
				inside, rest, closed := strings.Cut(text[1:], quote)
				if !closed {
					return args, false
				}
				word, text = word+inside, rest
				continue
			}
			word, text = word+text[:1], text[1:]
		}
		args = append(args, word)
	}
	return args, true
}

// merged is what memfit makes of one variable of a container that runs runtime.
func merged(runtime v1alpha1.RuntimeType, name, value string) string {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "app", Env: []corev1.EnvVar{{Name: name, Value: value}},
		Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		},
	}}}}
	spec := v1alpha1.MemoryProfileSpec{
		Runtime: v1alpha1.RuntimeSpec{Type: runtime}, Tuning: v1alpha1.TuningSpec{HeapPercent: new(int32(60))},
	}
	MakePlan(Input{Pod: pod, Profile: &profile.Profile{Spec: &spec}}).Apply(pod)
	return pod.Spec.Containers[0].Env[0].Value
}

// checkMerge checks that a process that started with before starts with after, with every argument of the user's in its
// place and ours in front of them.
func checkMerge(t *testing.T, before, after string, model func(string) ([]string, bool), ours []string, stop string) {
	t.Helper()
	if after == before {
		return
	}
	had, started := model(before)
	has, starts := model(after)
	if !started {
		t.Errorf("%q does not start as it is, and was changed to %q", before, after)
	}
	if !starts {
		t.Errorf("%q starts, %q does not", before, after)
	}
	if !strings.HasSuffix(after, before) {
		t.Errorf("%q became %q: the user's text is not there byte for byte", before, after)
	}
	front := len(has) - len(had)
	if front < 0 || !slices.Equal(has[front:], had) {
		t.Errorf("%q is read as %q, and %q as %q: the user's words moved", before, had, after, has)
		return
	}
	for _, word := range has[:front] {
		if !slices.ContainsFunc(ours, func(prefix string) bool { return strings.HasPrefix(word, prefix) }) {
			t.Errorf("%q became %q: %q is no word of ours", before, after, word)
		}
	}
	for _, word := range had {
		if strings.Contains(strings.ReplaceAll(word, "_", "-"), stop) {
			t.Errorf("%q became %q, although the user has %q", before, after, word)
		}
	}
}

func FuzzNodeOptions(f *testing.F) {
	for _, s := range texts {
		f.Add(s)
	}
	merged(v1alpha1.RuntimeNodeJS, "NODE_OPTIONS", "") // what is made once per process is no part of the budget
	f.Fuzz(func(t *testing.T, value string) {
		var after string
		budget.Check(t, planBudget, len(value), func() { after = merged(v1alpha1.RuntimeNodeJS, "NODE_OPTIONS", value) })
		checkMerge(t, value, after, nodeModel, []string{"--max-old-space-size="}, "--max-old-space-size")
	})
}

func FuzzJavaToolOptions(f *testing.F) {
	for _, s := range texts {
		f.Add(s)
	}
	f.Add(strings.Repeat("-Dx=y ", 200))
	merged(v1alpha1.RuntimeJVM, "JAVA_TOOL_OPTIONS", "") // what is made once per process is no part of the budget
	f.Fuzz(func(t *testing.T, value string) {
		var after string
		budget.Check(t, planBudget, len(value), func() { after = merged(v1alpha1.RuntimeJVM, "JAVA_TOOL_OPTIONS", value) })
		checkMerge(t, value, after, javaModel, []string{
			"-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UnlockExperimentalVMOptions", "-XX:TrimNativeHeapInterval=60000",
			"-XX:MaxRAMPercentage=60.0", "-XX:MinRAMPercentage=60.0",
		}, "-XX:-IgnoreUnrecognizedVMOptions")
		if words, _ := javaModel(after); after != value && (len(after) > 1024 || len(words) > 64) {
			t.Errorf("%d bytes and %d words: JDK 8 would cut the user's off", len(after), len(words))
		}
	})
}

// FuzzMakePlan draws a whole pod and profile from a seed and puts free text where people write free text.
func FuzzMakePlan(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, "NODE_OPTIONS", texts[seed], "node", `{"v":1,"containers":{"app":{"set":{"NODE_OPTIONS":"x"}}}}`)
	}
	f.Add(uint64(9), "GOMEMLIMIT", "1", "", `{"v":1,"containers":{"app":null}}`)
	f.Add(
		uint64(10), "GOMEMLIMIT", "1", "",
		`{"v":1,"containers":{"app":{"set":{"PATH":""},"was":{"PATH":"x"},"taken":["A"],"size":{"limit":"x","wasLimit":"-1"},"resizePolicy":"NotRequired"}}}`,
	)
	f.Add(
		uint64(11), "NODE_OPTIONS", strings.Repeat("a ", 4), "sh",
		`{"v":1,"containers":{"app":{"limit":"1e-999999999","size":{"limit":"1","wasLimit":"9e-999999999"},"set":{"NODE_OPTIONS":"a a"}}}}`,
	)
	for seed := range uint64(8) {
		c := newChance(seed)
		f.Add(seed, "", "", "", c.forged(c.input().Pod).encode())
	}
	f.Fuzz(func(t *testing.T, seed uint64, name, value, command, record string) {
		in := newChance(seed).input()
		app := &in.Pod.Spec.Containers[0]
		if name != "" {
			app.Env = append(app.Env, corev1.EnvVar{Name: name, Value: value})
		}
		app.Command = append(app.Command, command)
		before := in.Pod.DeepCopy()
		once := inject(in)
		checkOwn(t, before, once)
		in.Pod = once
		if MakePlan(in).Changes() {
			t.Errorf("the second plan would change something")
		}

		// A record that another party wrote must not make it fall over, and it settles at once.
		if in.Pod.Annotations == nil {
			in.Pod.Annotations = map[string]string{}
		}
		in.Pod.Annotations[v1alpha1.InjectedAnnotation] = record
		var forged *corev1.Pod
		size := len(record) + len(name) + len(value) + len(command)
		budget.Check(t, planBudget, size, func() { forged = inject(in) })
		budget.Check(t, planBudget, size, func() { Compare(in.Pod, in.Profile, in.Observed) })
		for _, c := range in.Pod.Spec.Containers {
			budget.Check(t, planBudget, size, func() {
				HeapCap(in.Pod, c.Name)
				OfRunning(in.Pod, in.Profile, in.Observed).Container(c.Name).StartHeapCap()
			})
		}
		for _, c := range in.Pod.Spec.Containers { // whatever it claims, only names of the table may go
			for _, v := range c.Env {
				if _, ours := variables[v.Name]; !ours && countOf(container(forged, c.Name).Env, v.Name) != countOf(c.Env, v.Name) {
					t.Errorf("a forged record removed %s", v.Name)
				}
			}
		}
		in.Pod = forged
		if MakePlan(in).Changes() {
			t.Errorf(
				"after a forged record the second plan would change something (-once +twice):\n%s", cmp.Diff(forged, inject(in)),
			)
		}
		Compare(forged, in.Profile, in.Observed)
		MakePlan(in).Warnings()
	})
}
