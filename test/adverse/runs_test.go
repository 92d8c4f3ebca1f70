// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package adverse

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

const (
	// step allocates 85 MiB (about 95 with its interpreter), keeps them for three seconds and exits.
	step = `import time; x = bytearray(85<<20); time.sleep(3)`
	// runsInARow and runsAtOnce are the numbers of runs of a step.
	runsInARow = 5
	runsAtOnce = 10
)

// oneOffRuns starts runs of a pipeline's step, each with its own owner: first one after the other, like retries, then
// runs of another step in parallel.
func oneOffRuns(ctx context.Context, t *testing.T, s *trial) {
	kills := 0
	for run := range runsInARow {
		r := startRun(ctx, t, s.namespace, "row", run)
		if r.await(ctx, t) {
			kills++
		}
		t.Logf("run %d in a row: created with %s, killed: %t", run, r.limit, r.killed)
		s.read(ctx, t)
	}
	if kills > 1 {
		s.fail("%d of %d runs in a row were killed, at most 1 allowed", kills, runsInARow)
	}
	var firstKill time.Time
	var mu sync.Mutex
	var all sync.WaitGroup
	for run := range runsAtOnce {
		before := time.Now()
		r := startRun(ctx, t, s.namespace, "once", run)
		mu.Lock()
		seen := !firstKill.IsZero() && firstKill.Before(before)
		mu.Unlock()
		if seen && r.limit < s.workload.need {
			s.fail("run %d was created with %s, %s after a kill", run, r.limit, before.Sub(firstKill))
		}
		t.Logf("run %d in parallel: created with %s, after a kill: %t", run, r.limit, seen)
		all.Go(func() {
			if r.await(ctx, t) {
				mu.Lock()
				defer mu.Unlock()
				if firstKill.IsZero() {
					firstKill = time.Now()
				}
			}
		})
		time.Sleep(1500 * time.Millisecond) // so that the first run is killed before the last is created
	}
	all.Wait()
	s.read(ctx, t)
}

// oneOffRun is a run of a step.
type oneOffRun struct {
	key    client.ObjectKey
	limit  memory.Bytes
	killed bool
}

// startRun creates the pod of a run, with the labels of Tekton's TaskRun controller.
func startRun(ctx context.Context, t *testing.T, namespace, task string, run int) *oneOffRun {
	t.Helper()
	taskRun := fmt.Sprintf("ci-%d-%s", run, task)
	spec := podSpec("64Mi", python(step))
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.Containers[0].Env = []corev1.EnvVar{{Name: "RUN", Value: taskRun}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: taskRun + "-pod",
		Labels: map[string]string{
			"app": appName, "tekton.dev/pipeline": "build", "tekton.dev/pipelineTask": task, "tekton.dev/taskRun": taskRun,
		},
		Annotations: map[string]string{v1alpha1.ProfileAnnotation: profileName},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "tekton.dev/v1", Kind: "TaskRun", Name: taskRun, UID: types.UID("uid-of-" + taskRun),
			Controller: new(true),
		}},
	}, Spec: spec}
	if err := k8s.Create(ctx, pod); err != nil {
		t.Fatalf("creating pod %s: %v", pod.Name, err)
	}
	return &oneOffRun{key: client.ObjectKeyFromObject(pod), limit: sizeOf(pod).Limit}
}

// await waits until the run has ended, and reports whether it was OOM-killed.
func (r *oneOffRun) await(ctx context.Context, t *testing.T) bool {
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var pod corev1.Pod
		if err := k8s.Get(ctx, r.key, &pod); err != nil {
			t.Errorf("reading pod %s: %v", r.key, err)
			return false
		}
		switch pod.Status.Phase {
		case corev1.PodFailed:
			r.killed = true
			return true
		case corev1.PodSucceeded:
			return false
		case corev1.PodPending, corev1.PodRunning, corev1.PodUnknown:
		}
	}
	t.Errorf("pod %s did not end within three minutes", r.key)
	return false
}
