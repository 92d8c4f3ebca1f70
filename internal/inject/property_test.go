// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
)

// drawn is how many random cases each property sees; all together they take about a second.
const drawn = 2000

// same is equality as the API server means it; cmp, which can also say what differs, takes a hundred times as long.
func same(a, b *corev1.Pod) bool { return equality.Semantic.DeepEqual(a, b) }

// difference is cmp's, of what is not equal to the last bit.
func difference(a, b any) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return cmp.Diff(a, b)
}

func inject(in Input) *corev1.Pod {
	pod := in.Pod.DeepCopy()
	in.Pod = pod
	MakePlan(in).Apply(pod)
	return pod
}

// checkOwn checks that after differs from before only where memfit may write: what it does not own is neither dropped,
// nor changed, nor reordered.
func checkOwn(t *testing.T, before, after *corev1.Pod) {
	t.Helper()
	neutral := func(pod *corev1.Pod) *corev1.Pod {
		out := pod.DeepCopy()
		delete(out.Annotations, v1alpha1.InjectedAnnotation)
		if len(out.Annotations) == 0 {
			out.Annotations = nil
		}
		if whole := out.Spec.Resources; whole != nil {
			for _, r := range []*corev1.ResourceList{&whole.Limits, &whole.Requests} {
				delete(*r, corev1.ResourceMemory)
			}
		}
		for _, list := range [][]corev1.Container{out.Spec.InitContainers, out.Spec.Containers} {
			for i := range list {
				c := &list[i]
				c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { _, ours := variables[v.Name]; return ours })
				c.ResizePolicy = slices.DeleteFunc(c.ResizePolicy, ofMemory)
				for _, r := range []*corev1.ResourceList{&c.Resources.Limits, &c.Resources.Requests} {
					delete(*r, corev1.ResourceMemory)
					if len(*r) == 0 {
						*r = nil
					}
				}
				if len(c.Env) == 0 {
					c.Env = nil
				}
				if len(c.ResizePolicy) == 0 {
					c.ResizePolicy = nil
				}
			}
		}
		return out
	}
	if b, a := neutral(before), neutral(after); !same(b, a) {
		t.Errorf("something that memfit does not own changed (-before +after):\n%s", cmp.Diff(b, a))
	}
	for _, c := range append(slices.Clone(before.Spec.InitContainers), before.Spec.Containers...) {
		now := container(after, c.Name)
		for _, v := range c.Env {
			i := slices.IndexFunc(now.Env, func(n corev1.EnvVar) bool { return n.Name == v.Name })
			if i < 0 {
				t.Errorf("container %s lost %s", c.Name, v.Name)
			} else if v.ValueFrom != nil && countOf(c.Env, v.Name) == 1 && now.Env[i].ValueFrom == nil {
				t.Errorf("container %s: %s lost its valueFrom", c.Name, v.Name)
			}
		}
		for _, v := range now.Env {
			if countOf(now.Env, v.Name) > max(1, countOf(c.Env, v.Name)) {
				t.Errorf("container %s: %s was duplicated", c.Name, v.Name)
			}
		}
	}
}

func countOf(env []corev1.EnvVar, name string) int {
	n := 0
	for _, v := range env {
		if v.Name == name {
			n++
		}
	}
	return n
}

func TestNothingElseIsTouchedAndTwiceIsOnce(t *testing.T) {
	changed := 0
	for seed := range uint64(drawn) {
		in := newChance(seed).input()
		before := in.Pod.DeepCopy()
		once := inject(in)
		if !same(before, in.Pod) {
			t.Fatalf("seed %d: making a plan changed the pod:\n%s", seed, cmp.Diff(before, in.Pod))
		}
		checkOwn(t, before, once)
		checkValid(t, once)
		in.Pod = once
		if p := MakePlan(in); p.Changes() {
			t.Errorf("seed %d: the second plan would change something", seed)
		}
		if twice := inject(in); !same(once, twice) {
			t.Errorf("seed %d: twice differs from once (-once +twice):\n%s", seed, cmp.Diff(once, twice))
		}
		if !same(before, once) {
			changed++
		}
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, in.Profile.Spec)
		}
	}
	if changed < drawn/2 {
		t.Errorf("only %d of %d pods were changed: the generator does not reach the code", changed, drawn)
	}
}

// webhooks are what others typically do to a pod, before or after memfit. Each is idempotent, as the real ones are.
var webhooks = map[string]func(*corev1.Pod){
	"a mesh adds a sidecar": func(pod *corev1.Pod) {
		if container(pod, "istio-proxy") == nil {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
				Name: "istio-proxy",
				Env: []corev1.EnvVar{
					{Name: "GOMEMLIMIT", ValueFrom: &corev1.EnvVarSource{
						ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"},
					}},
				},
			})
		}
	},
	"a mesh adds a native sidecar in front": func(pod *corev1.Pod) {
		if container(pod, "linkerd-proxy") == nil {
			pod.Spec.InitContainers = slices.Insert(
				pod.Spec.InitContainers, 0,
				corev1.Container{Name: "linkerd-proxy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
			)
		}
	},
	"OpenTelemetry appends to NODE_OPTIONS": func(pod *corev1.Pod) {
		appendWord(pod, "NODE_OPTIONS",
			" --require /otel/autoinstrumentation.js")
	},
	"OpenTelemetry appends to JAVA_TOOL_OPTIONS": func(pod *corev1.Pod) {
		appendWord(pod, "JAVA_TOOL_OPTIONS",
			" -javaagent:/otel/javaagent.jar")
	},
	"VPA sets other resources": func(pod *corev1.Pod) {
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2500Mi")}
			pod.Spec.Containers[i].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}
		}
	},
	"somebody sorts new variables to the front": func(pod *corev1.Pod) {
		c := &pod.Spec.Containers[0]
		if countOf(c.Env, "FIRST") == 0 {
			c.Env = slices.Insert(c.Env, 0, corev1.EnvVar{Name: "FIRST", Value: "x"})
		}
	},
}

// appendWord appends to a literal of the first container, or adds the variable, as the OpenTelemetry operator does.
func appendWord(pod *corev1.Pod, name, words string) {
	c := &pod.Spec.Containers[0]
	i := slices.IndexFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == name })
	switch {
	case i < 0:
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: words})
	case c.Env[i].ValueFrom == nil && !strings.Contains(c.Env[i].Value, strings.TrimSpace(words)):
		c.Env[i].Value += words
	}
}

// meaning is what a pod's containers get to see: variables by name, those that carry words as words.
func meaning(pod *corev1.Pod) map[string]any {
	out := map[string]any{"annotation": pod.Annotations[v1alpha1.InjectedAnnotation]}
	for _, c := range append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...) {
		env := make(map[string]any)
		for _, v := range c.Env {
			if g := variables[v.Name]; g != nil && v.ValueFrom == nil {
				env[v.Name], _ = g.Split(v.Value)
			} else {
				env[v.Name] = v
			}
		}
		out[c.Name] = map[string]any{"env": env, "resize": c.ResizePolicy, "resources": c.Resources}
	}
	return out
}

func TestTheOrderOfWebhooksDoesNotMatter(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(webhooks)) {
		other := webhooks[name]
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(drawn / len(webhooks)) {
				in := newChance(seed).input()
				in.Sizes = nil // with them memfit and VPA both set resources, and the last one is right

				first := inject(in)
				other(first)
				in2 := in
				in2.Pod = first
				memfitFirst := inject(in2) // reinvocationPolicy IfNeeded

				second := in.Pod.DeepCopy()
				other(second)
				in2.Pod = second
				otherFirst := inject(in2)

				if diff := difference(meaning(otherFirst), meaning(memfitFirst)); diff != "" {
					t.Fatalf("seed %d (-other first +memfit first):\n%s", seed, diff)
				}
			}
		})
	}
}

func TestWithoutTheRecordNothingIsTakenAway(t *testing.T) {
	for seed := range uint64(drawn) {
		in := newChance(seed).input()
		once := inject(in)
		delete(once.Annotations, v1alpha1.InjectedAnnotation)
		in.Pod, in.Sizes = once, nil
		again := inject(in)
		for i := range once.Spec.Containers {
			if diff := difference(once.Spec.Containers[i].Env, again.Spec.Containers[i].Env); diff != "" {
				t.Fatalf("seed %d: what was there became the user's, and must stay (-had +has):\n%s", seed, diff)
			}
		}
	}
}

func TestWhatTheUserTookBackStaysAway(t *testing.T) {
	fought := 0
	for seed := range uint64(drawn) {
		in := newChance(seed).input()
		once := inject(in)
		rec := readRecord(once.Annotations[v1alpha1.InjectedAnnotation]).of("app")
		app := container(once, "app")
		if rec == nil || rec.DryRun || len(rec.Set) == 0 {
			continue
		}
		name := slices.Sorted(maps.Keys(rec.Set))[0]
		app.Env = slices.DeleteFunc(app.Env, func(v corev1.EnvVar) bool { return v.Name == name })
		for range 3 { // and it stays away, however often memfit is called
			in.Pod = once
			once = inject(in)
			if countOf(container(once, "app").Env, name) > 0 {
				t.Fatalf("seed %d: %s was set again after the user had removed it", seed, name)
			}
		}
		fought++
	}
	if fought < drawn/20 {
		t.Errorf("only %d pods had something to remove", fought)
	}
}

// TestForgedSizesSettle: whatever sizes a copied or forged record claims to have written, the second plan finds nothing
// to change.
func TestForgedSizesSettle(t *testing.T) {
	taken := 0
	for seed := range uint64(5 * drawn) {
		c := newChance(seed)
		in := c.input()
		metav1.SetMetaDataAnnotation(&in.Pod.ObjectMeta, v1alpha1.InjectedAnnotation, c.forged(in.Pod).encode())
		once := inject(in)
		for i := range in.Pod.Spec.Containers {
			before, after := &in.Pod.Spec.Containers[i].Resources, &once.Spec.Containers[i].Resources
			if constraints.SizeOf(before) != constraints.SizeOf(after) {
				taken++
			}
		}
		in.Pod = once
		if MakePlan(in).Changes() {
			t.Fatalf("seed %d: the second plan would change something (-once +twice):\n%s", seed, cmp.Diff(once, inject(in)))
		}
	}
	if taken < drawn/20 {
		t.Errorf("only %d containers got another size: too few to mean anything", taken)
	}
}

// TestOtherSizesSettle: a pod that got sizes and then, called again, others, is not changed a third time.
func TestOtherSizesSettle(t *testing.T) {
	for seed := range uint64(5 * drawn) {
		c := newChance(seed)
		in := c.input()
		in.Pod = inject(in)
		in.Sizes = c.sizes()
		once := inject(in)
		in.Pod = once
		if MakePlan(in).Changes() {
			t.Fatalf("seed %d: the third plan would change something (-twice +thrice):\n%s", seed, cmp.Diff(once, inject(in)))
		}
	}
}

func TestUndoGivesBackTheUsersPod(t *testing.T) {
	for seed := range uint64(drawn) {
		in := newChance(seed).input()
		in.Sizes = nil
		before := in.Pod.DeepCopy()
		once := inject(in)
		off := *in.Profile.Spec.DeepCopy()
		off.Tuning.Mode = v1alpha1.TuningDisabled
		for i := range off.Containers {
			off.Containers[i].Tuning.Mode = v1alpha1.TuningDisabled
		}
		named := *in.Profile
		named.Spec = &off
		after := inject(Input{Pod: once, Profile: &named})
		if diff := difference(meaning(before), meaning(after)); diff != "" {
			t.Fatalf("seed %d: switching off does not restore the pod (-before +after):\n%s", seed, diff)
		}
	}
}

// TestNoPodIsKeptOut: what LimitRanges, a quota and the nodes would take without memfit, they take with it.
func TestNoPodIsKeptOut(t *testing.T) {
	in, sized, short := 0, 0, 0
	for seed := range uint64(5 * drawn) {
		c := newChance(seed).input()
		if c.Facts == nil || len(c.Sizes) == 0 || refusedBy(c.Facts, c.Pod) != "" {
			continue
		}
		in++
		plan := MakePlan(c)
		after := inject(c)
		if why := refusedBy(c.Facts, after); why != "" {
			t.Fatalf(
				"seed %d: with the sizes %v the pod is refused: %s\n%s", seed, c.Sizes, why,
				cmp.Diff(c.Pod.Spec, after.Spec),
			)
		}
		if plan.Edit("app").Memory != nil {
			sized++
		}
		if slices.ContainsFunc(
			plan.EveryWarning(), func(w string) bool { return strings.Contains(w, "does not get the recommended size") },
		) {
			short++
		}
	}
	if in < drawn/5 || sized < in/10 || short < in/10 {
		t.Errorf(
			"of %d pods that are admitted %d were sized and %d did not get all: too few to mean anything", in, sized, short,
		)
	}
}

// refusedBy says why a pod would not be admitted or could not be scheduled. The sums are made anew here, the way
// Kubernetes documents them.
func refusedBy(f *constraints.Facts, pod *corev1.Pod) string {
	var running, most memory.Size
	add := func(s *memory.Size, c *corev1.Container) {
		have := constraints.SizeOf(&c.Resources)
		if _, set := c.Resources.Requests[corev1.ResourceMemory]; !set {
			have.Request = have.Limit
		}
		s.Request, s.Limit = s.Request.Plus(have.Request), s.Limit.Plus(have.Limit)
	}
	for i := range pod.Spec.InitContainers {
		now := running
		c := &pod.Spec.InitContainers[i]
		add(&now, c)
		if c.RestartPolicy != nil {
			running = now
		}
		most = most.Max(now)
	}
	for i := range pod.Spec.Containers {
		add(&running, &pod.Spec.Containers[i])
	}
	most = most.Max(running)
	if whole := pod.Spec.Resources; whole != nil {
		most.Limit = memory.FromQuantity(*whole.Limits.Memory())
		request := memory.FromQuantity(*whole.Requests.Memory())
		if request > 0 && most.Request > request || max(request, most.Request) > most.Limit {
			return "the containers request more than the pod"
		}
		most.Request = max(most.Request, request)
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if constraints.SizeOf(&c.Resources).Limit > most.Limit {
				return "container " + c.Name + " has a higher limit than the pod"
			}
		}
	}
	switch {
	case f.LargestNode > 0 && most.Request > f.LargestNode:
		return "no node has " + most.Request.String()
	case f.Quota.Limits > 0 && most.Limit > f.Quota.Limits:
		return "the quota has no " + most.Limit.String() + " of limits"
	case f.Quota.Requests > 0 && most.Request > f.Quota.Requests:
		return "the quota has no " + most.Request.String() + " of requests"
	}
	return f.Refusal(pod, nil)
}
