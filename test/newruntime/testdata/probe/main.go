// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe prints memfit's decisions about the synthetic runtime in this tree as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/report"
)

func main() {
	results := map[string]any{}
	if declared, err := profile.ParseRuntime("brook:3.1"); err != nil {
		results["annotation"] = err.Error()
	} else {
		results["annotation"] = declared.Type
	}

	heapLimit := v1alpha1.NewMemoryQuantity(resource.MustParse("256Mi"))
	asked := &v1alpha1.MemoryProfileSpec{
		Runtime: v1alpha1.RuntimeSpec{Type: "Brook"}, Tuning: v1alpha1.TuningSpec{HeapLimit: heapLimit},
	}
	results["refused"] = profile.Invalid(asked)

	// The profile does not declare the runtime; the command identifies it.
	byCommand := plan(&v1alpha1.MemoryProfileSpec{}).Container("app")
	results["by command"], results["settings"] = byCommand.RuntimeName(), byCommand.Settings()
	results["growth"] = byCommand.Growth()

	old := plan(&v1alpha1.MemoryProfileSpec{Runtime: v1alpha1.RuntimeSpec{Type: "Brook", Version: "1.9"}}).Container("app")
	results["skipped"], results["advice"], results["advisories"] = old.Skipped(), old.Advice(), old.Advisories()

	results["exit 99"] = killed("Brook", 99, "")
	results["exit 99 of another"] = killed("Go", 99, "")
	results["log"] = killed("", 1, "working\nbrook: the heap is full\n")
	results["OOM advice"] = report.Advice(memory.OOMHeapAbort, "Brook", "")

	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// plan returns the injection plan for a pod with limit 512Mi that starts Brook with an init program.
func plan(spec *v1alpha1.MemoryProfileSpec) inject.Plan {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}
	pod.Spec.Containers = []corev1.Container{{
		Name: "app", Command: []string{"tini", "--", "/opt/brook/bin/brook", "serve"},
		Resources: corev1.ResourceRequirements{Limits: limits},
	}}
	named := &profile.Profile{
		Ref: v1alpha1.ProfileReference{Kind: profile.KindNamespaced, Name: "web"}, Namespace: "shop", Spec: spec,
	}
	return inject.MakePlan(inject.Input{Pod: pod, Profile: named})
}

// killed returns the kind of OOM kill that the ledger records for a terminated container, or "".
func killed(runs string, exit int32, log string) memory.OOMKind {
	began := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	ended := began.Add(time.Hour)
	state := &corev1.ContainerStateTerminated{
		ContainerID: "containerd://1", Reason: "Error", ExitCode: exit, Message: log,
		StartedAt: metav1.NewTime(began), FinishedAt: metav1.NewTime(ended),
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "1", CreationTimestamp: metav1.NewTime(began)}}
	pod.Spec.Containers = []corev1.Container{{Name: "app"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", ContainerID: "containerd://1", State: corev1.ContainerState{Terminated: state},
	}}
	seen := oom.Observe(pod)
	for i := range seen {
		seen[i].Runtime, seen[i].Measured = runs, began
	}
	var ledger oom.Ledger
	for _, kill := range ledger.Update(seen, nil, ended.Add(time.Second)) {
		return kill.Kind
	}
	return ""
}
