//go:build runtimes

// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/test/podplan"
)

// trial is one pod: the owner's settings, the profile's settings, and the facts that the process must then report.
type trial struct {
	name string
	// limit is the container's memory limit; empty: none. shm is a memory-backed volume that it mounts.
	limit, shm string
	// runtime overrides the declared runtime, for profiles with a wrong one or none.
	runtime *v1alpha1.RuntimeSpec
	tuning  v1alpha1.TuningSpec
	// env has the user's variables; fromConfigMap those with valueFrom.
	env           []corev1.EnvVar
	fromConfigMap map[string]string
	// args are the user's arguments on the command line.
	args []string
	// machine has variables that simulate the node: they are not in the pod.
	machine []string
	// want are facts the process must report; "" means that it must not report that fact.
	want map[string]string
	// unchanged: facts and exit code must be the same as without memfit, also if the process does not start.
	unchanged bool
}

// try runs the program with the environment of the pod after memfit's changes, and compares the facts.
func (p *program) try(t *testing.T, tr trial) {
	t.Helper()
	pod := p.pod(tr)
	before := kubelet(pod.Spec.Containers[0].Env, tr.fromConfigMap)
	plan := inject.MakePlan(inject.Input{Pod: pod, Profile: p.profile(tr)})
	podplan.Apply(pod, plan)
	after := kubelet(pod.Spec.Containers[0].Env, tr.fromConfigMap)
	got := p.run(t, append(after, tr.machine...), tr.args)
	if tr.unchanged {
		was := p.run(t, append(before, tr.machine...), tr.args)
		if diff := cmp.Diff(was.facts, got.facts); was.exit != got.exit || diff != "" {
			t.Errorf("memfit must change nothing here: exit code %d without it, %d with\n%s\nenvironment: %q\n%s",
				was.exit, got.exit, diff, after, tail(got.output))
		}
		if tr.want == nil {
			return
		}
	}
	if got.exit != 0 {
		t.Fatalf(
			"exit code %d\nenvironment: %q\ncommand: %q\n%s", got.exit, after, pod.Spec.Containers[0].Command, tail(got.output),
		)
	}
	for fact, want := range tr.want {
		if got.facts[fact] != want {
			t.Errorf(
				"%s is %q, want %q\nenvironment: %q\nwhy: %s", fact, got.facts[fact], want, after,
				pod.Annotations[v1alpha1.InjectedAnnotation],
			)
		}
	}
}

func (p *program) pod(tr trial) *corev1.Pod {
	c := corev1.Container{
		Name: "app", Image: "example.test/app", Command: append(append([]string{p.path}, tr.args...), p.probe...),
	}
	if tr.limit != "" {
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(tr.limit)}
	}
	c.Env = append(c.Env, tr.env...)
	for name := range maps.Keys(tr.fromConfigMap) {
		ref := &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: name}
		c.Env = append(c.Env, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: ref}})
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}
	if tr.shm != "" {
		size := resource.MustParse(tr.shm)
		pod.Spec.Volumes = []corev1.Volume{{Name: "shm", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &size},
		}}}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "shm", MountPath: "/dev/shm"}}
	}
	pod.Spec.Containers = []corev1.Container{c}
	return pod
}

func (p *program) profile(tr trial) *profile.Profile {
	spec := &v1alpha1.MemoryProfileSpec{
		Tuning: tr.tuning, Runtime: v1alpha1.RuntimeSpec{Type: p.runtime, Version: p.version},
	}
	if tr.runtime != nil {
		spec.Runtime = *tr.runtime
	}
	return &profile.Profile{
		Ref: v1alpha1.ProfileReference{Kind: profile.KindNamespaced, Name: "web"}, Namespace: "shop", Generation: 1,
		Spec: spec,
	}
}

var reference = regexp.MustCompile(`\$(\$|\([A-Za-z_.-][A-Za-z0-9_.-]*\))`)

// kubelet returns the environment of a container as a kubelet creates it: in order, the last of two variables of the
// same name wins, $(NAME) is replaced if NAME is defined earlier and otherwise unchanged, and $$ is $.
func kubelet(vars []corev1.EnvVar, fromConfigMap map[string]string) []string {
	values := map[string]string{}
	var order []string
	for _, v := range vars {
		value := v.Value
		if v.ValueFrom != nil {
			value = fromConfigMap[v.ValueFrom.ConfigMapKeyRef.Key]
		} else {
			value = reference.ReplaceAllStringFunc(value, func(ref string) string {
				if ref == "$$" {
					return "$"
				}
				if known, ok := values[strings.Trim(ref, "$()")]; ok {
					return known
				}
				return ref
			})
		}
		if _, twice := values[v.Name]; !twice {
			order = append(order, v.Name)
		}
		values[v.Name] = value
	}
	out := make([]string, len(order))
	for i, name := range order {
		out[i] = fmt.Sprintf("%s=%s", name, values[name])
	}
	return out
}
