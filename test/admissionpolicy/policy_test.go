// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpolicy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/hack/mapsample/admissionpolicy"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/expect"
	"github.com/memfit/memfit/test/podplan"
)

// profiles has profiles with every kind of formula. Each selects pods by its own label, so that all can be effective at
// the same time.
func profiles() map[string]v1alpha1.MemoryProfileSpec {
	return map[string]v1alpha1.MemoryProfileSpec{
		"go": {Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo}},
		"node20": {
			Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS, Version: "20"},
			Tuning:  v1alpha1.TuningSpec{ArenaMax: new(int32(2))},
		},
		"node24": {Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS, Version: "24"}},
		"jvm":    {Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM, Version: "17.0.15"}},
		"jvm60": {
			Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM, Version: "21.0.4"},
			Tuning:  v1alpha1.TuningSpec{HeapPercent: new(int32(60))},
		},
		"ruby": {Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeRuby}},
		"article": {Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS}, Tuning: v1alpha1.TuningSpec{
			HeapLimit: v1alpha1.NewMemoryQuantity(resource.MustParse("256Mi")), ArenaMax: new(int32(2)),
		}},
		"auto": {Tuning: v1alpha1.TuningSpec{ArenaMax: new(int32(2))}},
		"jvm40": {
			Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM}, Tuning: v1alpha1.TuningSpec{HeapPercent: new(int32(40))},
		},
		"mixed": {
			Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimePython},
			Tuning:  v1alpha1.TuningSpec{ArenaMax: new(int32(4))},
			Containers: []v1alpha1.ContainerPolicy{
				{Name: "side", Mode: "Managed", Runtime: &v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo}},
			},
		},
	}
}

func named(name string, spec v1alpha1.MemoryProfileSpec) *profile.Profile {
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"profile": name}}
	return &profile.Profile{
		Ref: v1alpha1.ProfileReference{Kind: profile.KindNamespaced, Name: name}, Namespace: "default", Generation: 1,
		Spec: &spec,
	}
}

// TestAgainstTheWebhook creates pods on a real API server with effective policies, and compares the resulting variables
// with those that memfit's webhook would set: they must be equal, or unset where the policy is more careful.
func TestAgainstTheWebhook(t *testing.T) {
	ctx := t.Context()
	config := expect.APIServer(t)
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, spec := range profiles() {
		objects, err := admissionpolicy.For(named(name, spec))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []client.Object{objects.Policy, objects.Binding} {
			if err := c.Create(ctx, o); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	waitUntilEffective(ctx, t, c, slices.Collect(maps.Keys(profiles()))...)

	pods := 0
	for name, spec := range profiles() {
		for _, limit := range []string{
			"", "32Mi", "64Mi", "191Mi", "192Mi", "256Mi", "400Mi", "512Mi", "513Mi", "1Gi", "1G", "1500Mi", "2Gi", "3Gi", "4Gi",
			"8Gi", "32Gi", "128974848500m",
		} {
			pod := newPod(name, limit)
			want := pod.DeepCopy()
			podplan.Apply(want, inject.MakePlan(inject.Input{Pod: want, Profile: named(name, spec)}))
			if strings.HasSuffix(limit, "500m") { // not a whole number of bytes
				want = careful(pod, want)
			}
			compare(ctx, t, c, name+", limit "+limit, pod, want)
			pods++
		}
		for edited, edit := range users {
			pod := newPod(name, "512Mi")
			edit.edit(pod)
			want := pod.DeepCopy()
			podplan.Apply(want, inject.MakePlan(inject.Input{Pod: want, Profile: named(name, spec)}))
			if edit.careful || edit.unknown && spec.Runtime.Type == "" {
				want = pod
			}
			compare(ctx, t, c, name+", "+edited, pod, want, edit.less)
			pods++
		}
	}
	t.Logf("policies=%d pods=%d", len(profiles()), pods)
}

// TestNamespaceAnnotations: annotations of the Namespace have the same effect on a policy as on the webhook.
func TestNamespaceAnnotations(t *testing.T) {
	ctx := t.Context()
	c, err := client.New(expect.APIServer(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, annotations := range map[string]map[string]string{
		"plain": nil, "quiet": {v1alpha1.InjectAnnotation: "False"}, "elsewhere": {v1alpha1.ProfileAnnotation: "another"},
		"here": {v1alpha1.ProfileAnnotation: "everywhere"},
	} {
		if err := c.Create(
			ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}},
		); err != nil {
			t.Fatal(err)
		}
	}
	everywhere := named("everywhere", v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeGo}})
	everywhere.Ref.Kind, everywhere.Namespace = profile.KindCluster, ""
	objects, err := admissionpolicy.For(everywhere)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{objects.Policy, objects.Binding} {
		if err := c.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	waitUntilEffective(ctx, t, c, "everywhere")
	for namespace, want := range map[string]int{"plain": 1, "quiet": 0, "elsewhere": 0, "here": 1} {
		pod := newPod("everywhere", "1Gi")
		pod.Namespace = namespace
		if err := c.Create(ctx, pod, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		if got := len(app(pod).Env); got != want {
			t.Errorf("namespace %s: %d variables, want %d", namespace, got, want)
		}
	}
}

// users are possible settings of a pod's owner. careful: the policy does not change the pod, while the webhook may.
var users = map[string]struct {
	edit    func(*corev1.Pod)
	careful bool
	unknown bool   // careful where the profile does not declare the runtime
	less    string // a variable that only the webhook may set
}{
	"user: GOMEMLIMIT":       {edit: setEnv("GOMEMLIMIT", "100MiB")},
	"user: AUTOMEMLIMIT":     {edit: setEnv("AUTOMEMLIMIT", "0.8")},
	"user: MALLOC_ARENA_MAX": {edit: setEnv("MALLOC_ARENA_MAX", "1")},
	// the tunable wins anyway
	"user: GLIBC_TUNABLES": {edit: setEnv("GLIBC_TUNABLES", "glibc.malloc.arena_max=1"), less: "app MALLOC_ARENA_MAX"},
	"user: jemalloc":       {edit: setEnv("LD_PRELOAD", "/usr/lib/libjemalloc.so.2")},
	"user: a secret's value": {edit: func(p *corev1.Pod) {
		app(p).Env = []corev1.EnvVar{{Name: "GOMEMLIMIT", ValueFrom: secret()}, {Name: "NODE_OPTIONS", ValueFrom: secret()}}
	}},
	"user: flag on the command": {
		edit: func(p *corev1.Pod) { app(p).Command = []string{"node", "--max_old_space_size=300", "app.js"} }, unknown: true,
	},
	"user: opted out":            {edit: annotate(v1alpha1.InjectAnnotation, "false"), careful: true},
	"user: opted out, oddly":     {edit: annotate(v1alpha1.InjectAnnotation, " False\n"), careful: true},
	"user: another profile":      {edit: annotate(v1alpha1.ProfileAnnotation, "another"), careful: true},
	"user: declares the runtime": {edit: annotate(v1alpha1.RuntimeAnnotation, "Ruby"), unknown: true},
	"user: a command that shows the runtime": {
		edit: func(p *corev1.Pod) { app(p).Command = []string{"/usr/bin/node", "app.js"} }, unknown: true,
	},
	"user: a shell sets it": {edit: func(p *corev1.Pod) {
		app(p).Args = []string{"GOMEMLIMIT=1GiB NODE_OPTIONS= MALLOC_ARENA_MAX=1 JAVA_TOOL_OPTIONS=-Xmx1g exec /app"}
	}},
	"a mesh's proxy": {edit: func(p *corev1.Pod) {
		p.Spec.Containers = append(
			p.Spec.Containers, corev1.Container{Name: "istio-proxy", Image: "example.test/proxy", Resources: limits("256Mi")},
		)
	}, less: "istio-proxy GOMEMLIMIT"},
	"injected before": {edit: annotate(v1alpha1.InjectedAnnotation, `{"v":1}`), careful: true},
	"a limit of the whole pod": {edit: func(p *corev1.Pod) {
		p.Spec.Resources = &corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
		}
	}, careful: true},
	"a volume in memory": {edit: func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{
			{Name: "shm", VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory},
			}},
		}
	}, careful: true},
	"a native sidecar": {edit: func(p *corev1.Pod) {
		side := corev1.Container{
			Name: "side", Image: "example.test/side", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
			Resources: limits("128Mi"),
		}
		p.Spec.InitContainers = []corev1.Container{side}
	}},
	"a plain init container": {edit: func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{
			{Name: "prepare", Image: "example.test/prepare", Resources: limits("128Mi")},
		}
	}},
	"another container": {edit: func(p *corev1.Pod) {
		p.Spec.Containers = append(
			p.Spec.Containers, corev1.Container{Name: "side", Image: "example.test/side", Resources: limits("256Mi")},
		)
	}},
	"variables stay": {edit: func(p *corev1.Pod) {
		app(p).Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)"}}
	}},
}

func setEnv(name, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { app(p).Env = []corev1.EnvVar{{Name: name, Value: value}} }
}

func annotate(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
}

func secret() *corev1.EnvVarSource {
	return &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "value",
		},
	}
}

func app(p *corev1.Pod) *corev1.Container { return &p.Spec.Containers[0] }

func limits(memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
}

func newPod(profile, limit string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", GenerateName: "web-", Labels: map[string]string{"profile": profile},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.test/app"}}},
	}
	if limit != "" {
		app(pod).Resources = limits(limit)
	}
	return pod
}

// careful returns a policy's result for a limit that is not a whole number of bytes: only variables that need no limit.
func careful(pod, webhook *corev1.Pod) *corev1.Pod {
	out := pod.DeepCopy()
	for _, v := range app(webhook).Env {
		if v.Name == "MALLOC_ARENA_MAX" || v.Name == "JAVA_TOOL_OPTIONS" && !strings.Contains(v.Value, "RAMPercentage") {
			app(out).Env = append(app(out).Env, v)
		}
	}
	return out
}

// compare creates pod and compares the variables of its containers by name: a policy cannot choose their order.
func compare(ctx context.Context, t *testing.T, c client.Client, name string, pod, want *corev1.Pod, less ...string) {
	t.Helper()
	got := pod.DeepCopy()
	if err := c.Create(ctx, got, client.DryRunAll); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	webhook, policy := environment(want), environment(got)
	for _, variable := range less {
		if policy[variable] == "" {
			delete(webhook, variable)
		}
	}
	if diff := cmp.Diff(webhook, policy); diff != "" {
		t.Errorf("%s: -webhook +policy\n%s", name, diff)
	}
}

func environment(p *corev1.Pod) map[string]string {
	all := map[string]string{}
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for _, c := range list {
			for _, v := range c.Env {
				all[c.Name+" "+v.Name] = fmt.Sprint(v.Value, v.ValueFrom != nil)
			}
		}
	}
	return all
}

// waitUntilEffective creates pods in dry runs until every policy is effective: API servers load new policies within
// about a second.
func waitUntilEffective(ctx context.Context, t *testing.T, c client.Client, names ...string) {
	t.Helper()
	deadline, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for _, name := range names {
		for {
			pod := newPod(name, "1Gi")
			if err := c.Create(deadline, pod, client.DryRunAll); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(app(pod).Env) > 0 {
				break
			}
			select {
			case <-deadline.Done():
				t.Fatalf("the policy for %s is not effective within a minute", name)
			case <-tick.C:
			}
		}
	}
}
