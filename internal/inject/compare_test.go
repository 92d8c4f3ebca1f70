// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/runtimes"
)

// nodePod is a pod with one Node.js container and its profile.
func nodePod(limit string, spec v1alpha1.MemoryProfileSpec, env ...corev1.EnvVar) Input {
	if spec.Runtime.Type == "" {
		spec.Runtime.Type = v1alpha1.RuntimeNodeJS
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Env: env}}}}
	if limit != "" {
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
	}
	return Input{
		Pod: pod,
		Profile: &profile.Profile{
			Ref: v1alpha1.ProfileReference{Kind: profile.KindNamespaced, Name: "web"}, Namespace: "shop", Spec: &spec,
		},
	}
}

func TestCompare(t *testing.T) {
	mode := func(m v1alpha1.TuningMode) v1alpha1.MemoryProfileSpec {
		return v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{Mode: m}}
	}
	injected := func(in Input) Input { in.Pod = inject(in); return in }
	resized := func(in Input, limit string) Input {
		in.Pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse(limit)
		return in
	}
	reprofiled := func(in Input, spec v1alpha1.MemoryProfileSpec) Input {
		in.Profile = nodePod("", spec).Profile
		return in
	}
	withSettings := func(in Input, keys map[string]map[string]bool) Input {
		in.Pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		}
		in.ConfigMapKeys = keys
		return in
	}
	port := map[string]map[string]bool{"settings": {"PORT": true}}
	python := v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimePython}}

	for name, tc := range map[string]struct {
		in        Input
		wantState State
		wantWhy   string
	}{
		"injected": {
			in: injected(nodePod("512Mi", mode(""))), wantState: UpToDate, wantWhy: "all settings are in place (1)",
		},
		"injected knowing its ConfigMap": {
			in:        injected(withSettings(nodePod("512Mi", mode("")), port)),
			wantState: UpToDate, wantWhy: "all settings are in place (1)",
		},
		"injected not knowing it": {
			in: injected(withSettings(nodePod("512Mi", mode("")), nil)), wantState: Skipped,
			wantWhy: "may come from ConfigMap settings",
		},
		"created before the profile": {
			in: nodePod("512Mi", mode("")), wantState: NotInjected,
			wantWhy: "it should have NODE_OPTIONS=--max-old-space-size=381 in container app",
		},
		"resized since": {
			in: resized(injected(nodePod("512Mi", mode(""))), "1Gi"), wantState: Stale,
			wantWhy: "it should have NODE_OPTIONS=--max-old-space-size=720",
		},
		"profile changed since": {
			in: reprofiled(
				injected(nodePod("512Mi", mode(""))),
				v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{ArenaMax: new(int32(2))}},
			),
			wantState: Stale, wantWhy: "MALLOC_ARENA_MAX=2 in container app",
		},
		"no longer set": {
			in: reprofiled(injected(nodePod("512Mi", mode(""))), python), wantState: Stale,
			wantWhy: "no NODE_OPTIONS in container app",
		},
		"the user decided": {
			in: injected(
				nodePod("512Mi", mode(""), corev1.EnvVar{Name: "NODE_OPTIONS", Value: "--max-old-space-size=300"}),
			),
			wantState: Skipped, wantWhy: "container app: --max-old-space-size skipped: NODE_OPTIONS has",
		},
		"the user decided, never seen": {
			in: nodePod("128Mi", mode("")), wantState: Skipped, wantWhy: "128Mi is below 192Mi",
		},
		"nothing to set": {
			in: injected(nodePod("512Mi", python)), wantState: UpToDate, wantWhy: "there is nothing to set",
		},
		"off": {
			in: nodePod("512Mi", mode(v1alpha1.TuningDisabled)), wantState: Disabled, wantWhy: `tuning.mode is Disabled`,
		},
		"dry run": {
			in: nodePod("512Mi", mode(v1alpha1.TuningDryRun)), wantState: Disabled, wantWhy: "tuning.mode is DryRun",
		},
		"no container of the pod is ours": {
			in: nodePod(
				"512Mi", v1alpha1.MemoryProfileSpec{Containers: []v1alpha1.ContainerPolicy{{Name: "*", Mode: "Ignored"}}},
			),
			wantState: Disabled, wantWhy: "manages no container",
		},
	} {
		t.Run(name, func(t *testing.T) {
			state, why := Compare(tc.in.Pod, tc.in.Profile, tc.in.Observed)
			if state != tc.wantState || !strings.Contains(why, tc.wantWhy) {
				t.Errorf("%s: %s\nwant %s: %s", state, why, tc.wantState, tc.wantWhy)
			}
		})
	}
}

// A size set at creation is not part of the comparison, and must not be taken for the user's limit either.
func TestCompareKeepsTheSizeOfCreation(t *testing.T) {
	in := nodePod("256Mi", v1alpha1.MemoryProfileSpec{})
	in.Sizes = map[string]Offer{"app": {Size: memory.Size{Limit: 512 * memory.MiB}}}
	if state, why := Compare(inject(in), in.Profile, nil); state != UpToDate {
		t.Errorf("%s: %s, want UpToDate", state, why)
	}
}

func TestGrowth(t *testing.T) {
	percent := v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{HeapPercent: new(int32(60))}}
	fixed := v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{HeapLimit: quantity("256Mi")}}
	atLimit := v1alpha1.MemoryProfileSpec{Tuning: v1alpha1.TuningSpec{Go: &v1alpha1.GoTuning{GC: "OnlyAtLimit"}}}
	fromSecret := func(name string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: name}}}
	}
	of := func(r v1alpha1.RuntimeType, spec v1alpha1.MemoryProfileSpec) v1alpha1.MemoryProfileSpec {
		spec.Runtime.Type = r
		return spec
	}
	for name, tc := range map[string]struct {
		in   Input
		want runtimes.Growth
	}{
		"node fills what we give it": {
			nodePod("512Mi", v1alpha1.MemoryProfileSpec{}),
			runtimes.Growth{FollowsLimit: true, HeapPercent: 75, Overhead: 63 * memory.MiB, Name: "Node.js"},
		},
		"node, a share asked for": {
			nodePod("512Mi", percent),
			runtimes.Growth{FollowsLimit: true, HeapPercent: 60, Overhead: 63 * memory.MiB, Name: "Node.js"},
		},
		"node, a fixed heap": {
			nodePod("1Gi", fixed), runtimes.Growth{Overhead: 108 * memory.MiB, Name: "Node.js"},
		},
		"node, the user's heap": {
			nodePod(
				"512Mi", v1alpha1.MemoryProfileSpec{}, corev1.EnvVar{Name: "NODE_OPTIONS", Value: "--max-old-space-size=100"},
			),
			runtimes.Growth{
				Overhead: 63 * memory.MiB, Name: "Node.js",
				OwnHeap: 100 * memory.MiB, OwnHeapBy: "NODE_OPTIONS: --max-old-space-size=100",
			},
		},
		"node too small to cap may have half": {
			nodePod("128Mi", v1alpha1.MemoryProfileSpec{}),
			runtimes.Growth{MayFollow: true, HeapPercent: 50, Overhead: 63 * memory.MiB, Name: "Node.js"},
		},
		"a JVM may have its own quarter": {
			nodePod("512Mi", of("JVM", v1alpha1.MemoryProfileSpec{})),
			runtimes.Growth{MayFollow: true, HeapPercent: 25, Name: "Java"},
		},
		"a JVM with a share": {
			nodePod("512Mi", of("JVM", percent)), runtimes.Growth{FollowsLimit: true, HeapPercent: 60, Name: "Java"},
		},
		"Go at 90 %": {
			nodePod("512Mi", of("Go", v1alpha1.MemoryProfileSpec{})),
			runtimes.Growth{FollowsLimit: true, HeapPercent: 90, Soft: true, Name: "Go"},
		},
		"Go that collects at the limit": {
			nodePod("512Mi", of("Go", atLimit)), runtimes.Growth{FollowsLimit: true, HeapPercent: 90, Name: "Go"},
		},
		"Go, the user's GOGC=off": {
			nodePod("512Mi", of("Go", v1alpha1.MemoryProfileSpec{}), corev1.EnvVar{Name: "GOGC", Value: "off"}),
			runtimes.Growth{FollowsLimit: true, HeapPercent: 90, Name: "Go"},
		},
		"Go, the user's GOGC wins": {
			nodePod("512Mi", of("Go", atLimit), corev1.EnvVar{Name: "GOGC", Value: "50"}),
			runtimes.Growth{FollowsLimit: true, HeapPercent: 90, Soft: true, Name: "Go"},
		},
		"Go, a GOGC that cannot be read": {
			nodePod("512Mi", of("Go", atLimit), fromSecret("GOGC")),
			runtimes.Growth{FollowsLimit: true, HeapPercent: 90, Soft: true, Name: "Go"},
		},
		"Go without a limit follows none": {
			nodePod("", of("Go", v1alpha1.MemoryProfileSpec{})), runtimes.Growth{Name: "Go"},
		},
		".NET may take three quarters itself": {
			nodePod("512Mi", of("DotNet", v1alpha1.MemoryProfileSpec{})),
			runtimes.Growth{MayFollow: true, HeapPercent: 75, Name: ".NET"},
		},
		"Python has no cap": {
			nodePod("512Mi", of("Python", v1alpha1.MemoryProfileSpec{})), runtimes.Growth{Name: "Python"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MakePlan(tc.in).Container("app").Growth(); got != tc.want {
				t.Errorf("got %+v\nwant %+v", got, tc.want)
			}
		})
	}
	if got := MakePlan(nodePod("512Mi", percent)).Container("nobody").Growth(); got != (runtimes.Growth{Name: "unknown"}) {
		t.Errorf("a container that is not there: %+v, want nothing", got)
	}
}

func TestWarningsAreFew(t *testing.T) {
	in := nodePod("", v1alpha1.MemoryProfileSpec{})
	for _, name := range []string{"b", "c", "d", "e"} {
		in.Pod.Spec.Containers = append(in.Pod.Spec.Containers, corev1.Container{Name: name})
	}
	got := MakePlan(in).Warnings()
	if len(got) != 4 || !strings.Contains(got[3], "and 2 more; kubectl memfit inject shows them all") {
		t.Errorf("got %d warnings %q, want three and a count", len(got), got)
	}
	if all := MakePlan(in).EveryWarning(); len(all) != 5 {
		t.Errorf("%d warnings in all, want 5: %q", len(all), all)
	}
}

func TestARecordStaysSmall(t *testing.T) {
	in := nodePod("128Mi", v1alpha1.MemoryProfileSpec{})
	for i := range 2000 {
		c := *in.Pod.Spec.Containers[0].DeepCopy()
		c.Name = fmt.Sprintf("container-%d", i)
		in.Pod.Spec.Containers = append(in.Pod.Spec.Containers, c)
	}
	checkValid(t, inject(in))
}

// TestARecordThatDoesNotFit: the API server refuses a pod with more than 256 KiB of annotations, and then it would not
// start.
func TestARecordThatDoesNotFit(t *testing.T) {
	for used, want := range map[int]string{
		1 << 10:              "with reasons",
		annotationsMax - 480: "without reasons",
		annotationsMax - 100: "nothing",
		annotationsMax:       "nothing",
	} {
		in := readCase(t, "testdata/nodejs/node-keeps-require.yaml")
		in.Pod.Spec.Containers = append(in.Pod.Spec.Containers, *in.Pod.Spec.Containers[0].DeepCopy())
		in.Pod.Spec.Containers[1].Name, in.Pod.Spec.Containers[1].Resources.Limits = "b", nil
		in.Pod.Annotations = map[string]string{"note": strings.Repeat("x", used-len("note"))}
		before := in.Pod.DeepCopy()
		plan := MakePlan(in)
		plan.Apply(in.Pod)
		checkValid(t, in.Pod)
		record := in.Pod.Annotations[v1alpha1.InjectedAnnotation]
		got := "with reasons"
		switch {
		case equality.Semantic.DeepEqual(before, in.Pod):
			got = "nothing"
		case !strings.Contains(record, "skipped"):
			got = "without reasons"
		}
		if got != want || (want == "nothing") != strings.Contains(strings.Join(plan.Warnings(), ""), "exceed 256 KiB") {
			t.Errorf("%d bytes of annotations: %s, want %s; record %q, warnings %q", used, got, want, record, plan.Warnings())
		}
	}
}

func TestEmptyInputsGiveEmptyPlans(t *testing.T) {
	full := nodePod("512Mi", v1alpha1.MemoryProfileSpec{})
	for name, in := range map[string]Input{
		"nothing": {}, "no profile": {Pod: full.Pod}, "no pod": {Profile: full.Profile},
		"no spec": {Pod: full.Pod, Profile: &profile.Profile{}},
	} {
		p := MakePlan(in)
		p.Apply(nil)
		c := p.Container("app")
		if p.Changes() || p.Warnings() != nil || c.Settings() != nil || c.Identity() != nil || len(c.Advice()) > 0 ||
			c.Mode() != "" || c.Growth().HeapPercent != 0 || c.CapsHeap() || c.StartHeapCap() != (StartHeapCap{}) {
			t.Errorf("%s: the plan is not empty: %+v", name, p)
		}
	}
}

// TestTheLimitInTheRecordIsExact: a cap is computed from it again when the limit is resized.
func TestTheLimitInTheRecordIsExact(t *testing.T) {
	for limit, want := range map[string]string{
		"512Mi": "512Mi", "1500Mi": "1500Mi", "1536Mi": "1.5Gi", "2Gi": "2Gi", "1G": "954Mi", "1023": "1023",
		"100000Ki": "100000Ki", "1025Mi": "1025Mi", "0": "0", "12Ti": "12288Gi",
	} {
		if got := exactText(parseQuantity(limit)); got != want {
			t.Errorf("%s is written %s, want %s", limit, got, want)
		}
	}
	in := nodePod(
		"", v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS, Version: "20"}},
	)
	whole := func(limit string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}}
	}
	in.Pod.Spec.Resources = whole("1500Mi")
	created := inject(in)
	created.Spec.Resources = whole("1000Mi")
	plan := OfRunning(created, in.Profile, nil)
	if got, want := plan.Container("app").StartHeapCap().Cap, parseQuantity("1500Mi").Percent(75); got != want {
		t.Errorf("after the pod's limit shrank the cap is %s, want %s of the creation", got, want)
	}
}

// TestFrozenCapIsKnownWithoutTheConfigMap: a cap that was set at creation is one, also for those who cannot read the
// ConfigMaps.
func TestFrozenCapIsKnownWithoutTheConfigMap(t *testing.T) {
	in := nodePod("512Mi", v1alpha1.MemoryProfileSpec{})
	want := OfRunning(inject(in), in.Profile, in.Observed).Container("app").StartHeapCap()
	in.Pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
	}
	in.ConfigMapKeys = map[string]map[string]bool{"settings": {"PORT": true}}
	if got := OfRunning(inject(in), in.Profile, in.Observed).Container("app").StartHeapCap(); got != want || got.Cap == 0 {
		t.Errorf("the cap is %+v, want %+v", got, want)
	}
}
