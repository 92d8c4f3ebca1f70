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
	for name, edit := range map[string]func([]corev1.EnvVar) []corev1.EnvVar{
		"first and last changed": func(env []corev1.EnvVar) []corev1.EnvVar {
			env[0].Value, env[many-1].Value = "a",
				"b"
			return env
		},
		"first gone, one added": func(env []corev1.EnvVar) []corev1.EnvVar {
			return append(env[1:],
				corev1.EnvVar{Name: "NEW"})
		},
		"all changed": func(env []corev1.EnvVar) []corev1.EnvVar {
			for i := range env {
				env[i].Value = "other"
			}
			return env
		},
		"the same item all over": func(env []corev1.EnvVar) []corev1.EnvVar {
			for i := range env {
				env[i] = corev1.EnvVar{Name: "A"}
			}
			return env
		},
	} {
		after := pod.DeepCopy()
		after.Spec.Containers[0].Env = edit(after.Spec.Containers[0].Env)
		change := difference{pod, after}
		edited := change.Edit("app")
		var patch []byte
		t.Run(name, func(t *testing.T) {
			budget.Check(t, patchBudget, len(raw), func() {
				if patch, err = podPatch(asSent, fixedEdit{change, edited}, ""); err != nil {
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

// fixedEdit knows its edit already, so that only the patch is measured.
type fixedEdit struct {
	difference

	edit inject.Edit
}

func (f fixedEdit) Edit(string) inject.Edit { return f.edit }
