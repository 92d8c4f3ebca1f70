// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/test/budget"
)

// patchBudget is what a patch may take, per byte of the pod.
var patchBudget = budget.Budget{Bytes: 64 << 10, PerByte: 32, CPU: time.Second}

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
	if err != nil {
		t.Fatal(err)
	}
	asSent := sent(t, raw, pod)
	for name, edit := range map[string]func([]inject.Variable) []inject.Variable{
		"first and last changed": func(env []inject.Variable) []inject.Variable {
			env[0].Value, env[many-1].Value = "a",
				"b"
			return env
		},
		"first gone, one added": func(env []inject.Variable) []inject.Variable {
			env[0].Absent = true
			return append(env, inject.Variable{EnvVar: corev1.EnvVar{Name: "NEW"}})
		},
		"all changed": func(env []inject.Variable) []inject.Variable {
			for i := range env {
				env[i].Value = "other"
			}
			return env
		},
		"the same item all over": func(env []inject.Variable) []inject.Variable {
			for i := range env {
				env[i].EnvVar = corev1.EnvVar{Name: "A"}
			}
			return env
		},
	} {
		var env []inject.Variable
		for _, v := range pod.Spec.Containers[0].Env {
			env = append(env, inject.Variable{EnvVar: v})
		}
		changed := difference{pod, pod, map[string][]inject.Variable{"app": edit(env)}}
		var patch []byte
		t.Run(name, func(t *testing.T) {
			budget.Check(t, patchBudget, len(raw), func() {
				if patch, err = podPatch(asSent, changed, ""); err != nil {
					t.Fatal(err)
				}
			})
			var operations []struct{ Op string }
			if err := json.Unmarshal(patch, &operations); err != nil {
				t.Fatal(err)
			}
			if most := many; len(operations) > most || (name[:5] == "first" && len(operations) != 2) {
				t.Errorf("%d operations for %s", len(operations), name)
			}
		})
	}
}
