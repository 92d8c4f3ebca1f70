// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/budget"
)

// planBudget is what a plan may take, per byte of the pod as JSON. The webhook has 2 s, and etcd takes pods of up to
// 1.5 MiB.
var planBudget = budget.Budget{Bytes: 256 << 10, PerByte: 64, CPU: time.Second}

const largest = 3 << 19 // 1.5 MiB

// hostile are pods of about 1.5 MiB, or records that anybody can write, each of which once took seconds, minutes or
// gigabytes.
func hostile() map[string]*corev1.Pod {
	repeated := func(text string, size int) string { return strings.Repeat(text, size/len(text)) }
	pod := func(record string, change func(*corev1.Pod, *corev1.Container)) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
		c := &p.Spec.Containers[0]
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}
		if record != "" {
			p.Annotations = map[string]string{v1alpha1.InjectedAnnotation: `{"v":1,"containers":{"app":` + record + `}}`}
		}
		change(p, c)
		return p
	}
	nothing := func(*corev1.Pod, *corev1.Container) {}
	options := func(text string) func(*corev1.Pod, *corev1.Container) {
		return func(_ *corev1.Pod, c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "NODE_OPTIONS", Value: text}} }
	}
	var taken, names []string
	for i := range 20_000 {
		taken = append(taken, strconv.Quote("A"+strconv.Itoa(99_999-i)))
		names = append(names, "VARIABLE_"+strconv.Itoa(i))
	}
	return map[string]*corev1.Pod{
		"limit":          pod(`{"limit":"1e-999999999"}`, nothing),
		"limit of a pod": pod(`{"limit":"1e999999999","limitFrom":"the pod's limit"}`, nothing),
		"size": pod(
			`{"size":{"limit":"512Mi","wasLimit":"1e-999999999","request":"","wasRequest":"9e-999999999"}}`, nothing,
		),
		"taken": pod(`{"taken":[`+strings.Join(taken, ",")+`]}`, nothing),
		"words": pod(
			`{"set":{"NODE_OPTIONS":"`+repeated("a ", 100<<10)+`b"}}`, options(repeated("a ", largest)),
		),
		"letters":            pod(`{"set":{"NODE_OPTIONS":"`+repeated("a", 100<<10)+`b"}}`, options(repeated("a", largest))),
		"quotes":             pod("", options(repeated(`"\" `, largest))),
		"flags":              pod("", options(repeated("--max_old ", largest))),
		"control characters": pod("", options(repeated("\x01", largest/6))),
		"variables": pod("", func(_ *corev1.Pod, c *corev1.Container) {
			for _, name := range names {
				c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: "some text"})
			}
		}),
		"variables after ours": pod(`{"set":{"MALLOC_ARENA_MAX":"2"}}`, func(_ *corev1.Pod, c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "MALLOC_ARENA_MAX", Value: "2"})
			for range largest / len(`{"name":""},`) {
				c.Env = append(c.Env, corev1.EnvVar{})
			}
		}),
		"command": pod(
			"", func(_ *corev1.Pod, c *corev1.Container) { c.Command = []string{"sh", "-c", repeated("a ", largest)} },
		),
		"arguments": pod("", func(_ *corev1.Pod, c *corev1.Container) {
			for range largest / 4 {
				c.Args = append(c.Args, "a")
			}
		}),
		"volumes and mounts": pod("", func(p *corev1.Pod, c *corev1.Container) {
			size := resource.MustParse("1")
			for i := range 10_000 {
				p.Spec.Volumes = append(p.Spec.Volumes,
					corev1.Volume{Name: strconv.Itoa(i), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
						Medium: corev1.StorageMediumMemory, SizeLimit: &size}}})
			}
			for i := range 40_000 {
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: strconv.Itoa(10_000 + i)})
			}
		}),
		"containers": pod("", func(p *corev1.Pod, _ *corev1.Container) {
			for i := range 20_000 {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "c" + strconv.Itoa(i)})
			}
		}),
		"many containers and volumes": pod("", func(p *corev1.Pod, _ *corev1.Container) {
			for i := range maxContainers - 1 {
				p.Spec.Containers = append(
					p.Spec.Containers, corev1.Container{Name: "c" + strconv.Itoa(i), Command: []string{"node"}},
				)
			}
			for i := range 15_000 {
				p.Spec.Volumes = append(p.Spec.Volumes,
					corev1.Volume{Name: strconv.Itoa(i), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
						Medium: corev1.StorageMediumMemory}}})
			}
		}),
		"a ConfigMap named often": pod("", func(_ *corev1.Pod, c *corev1.Container) {
			for range 20_000 {
				c.EnvFrom = append(
					c.EnvFrom,
					corev1.EnvFromSource{
						ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "large"}},
					},
				)
			}
		}),
		"long names": pod("", func(_ *corev1.Pod, c *corev1.Container) {
			long := repeated("a", largest/2)
			c.Env = []corev1.EnvVar{
				{Name: "NODE_OPTIONS", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: long}}},
			}
			c.EnvFrom = []corev1.EnvFromSource{
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: long}}},
			}
		}),
		"record of the largest size": pod(`{"set":{`+repeated(`"a":"",`, annotationsMax-100)+`"b":""}}`, nothing),
		"record beyond":              pod(`{"limit":"`+repeated("1", largest)+`"}`, nothing),
	}
}

// TestPlansOfHostilePodsAreBounded: what the webhook and the controllers ask about each pod.
func TestPlansOfHostilePodsAreBounded(t *testing.T) {
	spec := v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeNodeJS}}
	spec.Tuning = v1alpha1.TuningSpec{
		HeapPercent: new(int32(60)), ArenaMax: new(int32(2)), ConflictPolicy: v1alpha1.Replace,
		Replace: []v1alpha1.Setting{"--max-old-space-size"},
	}
	n := &profile.Profile{Spec: &spec}
	profile.Inherit([]*profile.Profile{n})
	keys := make(map[string]bool)
	for i := range 20_000 {
		keys["key-"+strconv.Itoa(i)] = true
	}
	observed := map[string]Observed{"app": {LiveSet: 100 * memory.MiB}}
	for name, pod := range hostile() {
		raw, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		in := Input{
			Pod: pod, Profile: n, Observed: observed, Sizes: map[string]Offer{"app": {Size: memory.Size{Limit: memory.GiB}}},
			ConfigMapKeys: map[string]map[string]bool{"large": keys},
		}
		t.Run(name, func(t *testing.T) {
			for what, f := range map[string]func(){
				"MakePlan": func() {
					p := MakePlan(in)
					p.Apply(pod.DeepCopy())
					texts := fmt.Sprint(p.Warnings())
					for i := range p.containers {
						texts += fmt.Sprint(p.containers[i].Settings(), p.containers[i].Skipped())
					}
					if len(texts) > 64<<10 && p.Refused() == "" && name[:4] != "many" {
						t.Errorf("%d bytes of reasons: %.300s", len(texts), texts)
					}
				},
				"Compare": func() { Compare(pod, n, observed) },
				"HeapCap": func() { HeapCap(pod, "app") },
				"Frozen":  func() { OfRunning(pod, n, observed).Container("app").StartHeapCap() },
			} {
				t.Run(what, func(t *testing.T) { budget.Check(t, planBudget, len(raw), f) })
			}
		})
	}
	if why := MakePlan(
		Input{Pod: hostile()["containers"], Profile: n},
	).Refused(); !strings.Contains(why, "20001 containers") {
		t.Errorf("a pod of 20,001 containers: %q", why)
	}
	if state, why := Compare(hostile()["containers"], n, nil); state != Skipped ||
		!strings.Contains(why, "20001 containers") {
		t.Errorf("a pod of 20,001 containers is %s: %s", state, why)
	}
}

// TestIndexWords: where words stand, whatever else looks like them.
func TestIndexWords(t *testing.T) {
	for _, c := range []struct {
		value, words string
		start        int
	}{
		{"a b", "a", 0}, {"xa a", "a", 3}, {"aa aab aa", "aa", 0}, {"aab aa", "aa", 4}, {"b\ta\nc", "a", 2},
		{"aba abab ab", "ab", 9},
		{strings.Repeat("a ", 3) + "b", "a b", 4},
		{"a", "a b", -1}, {"ab", "a", -1}, {"", "a", -1}, {"aaaa", "aa", -1},
	} {
		if start, ok := indexWords(c.value, c.words); ok != (c.start >= 0) || ok && start != c.start {
			t.Errorf("%q in %q: %d (%t), want %d", c.words, c.value, start, ok, c.start)
		}
	}
}
