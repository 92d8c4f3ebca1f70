// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/oom"
	"github.com/memfit/memfit/internal/workloadkind"
	"github.com/memfit/memfit/test/build"
)

// runOnce lets one pod of a workload run for some minutes with a demand, and end.
func runOnce(
	t *testing.T, st *State, of memory.WorkloadRef, n int, demand memory.Bytes, at time.Time,
) (*State, Effects) {
	t.Helper()
	name := fmt.Sprintf("run-%d", n)
	pod := build.Pod("ci", name).On("n1").Phase(corev1.PodRunning).
		Container("step", build.Limit("1Gi"), build.Request("64Mi"), build.Started(at)).Obj()
	pod.UID = types.UID(name)
	p := build.Profile("ci", "steps", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingOnCreate))
	var e Effects
	for i := range 10 {
		now := at.Add(time.Duration(i+1) * time.Minute)
		s := &Snapshot{
			Owner:   memory.Workload{Ref: of, UID: "steps"},
			Profile: governing(p),
			Pods:    []*corev1.Pod{pod}, Governed: []*corev1.Pod{pod}, Template: pod,
			Events: PendingEvents{Observations: oom.Observe(pod), Source: "kubelet"},
		}
		s.Events.AddSamples(memory.Sample{
			Container: memory.ContainerRef{Namespace: "ci", Pod: name, UID: pod.UID, Container: "step"},
			Time:      now, Started: at, RSS: demand, HasRSS: true, WorkingSet: demand,
		}.WithDemand(demand))
		st, e = Step(st, s, now)
	}
	return st, e
}

// TestRunsThatDifferByInput: a step of a pipeline that needs 480Mi for one input in four has the distribution in its
// evidence, also after memfit has restarted; a Deployment has none.
func TestRunsThatDifferByInput(t *testing.T) {
	step := memory.WorkloadRef{
		APIVersion: workloadkind.IdentityAPIVersion, Kind: workloadkind.IdentityKind, Namespace: "ci", Name: "tekton-build-1",
	}
	for name, c := range map[string]struct {
		of   memory.WorkloadRef
		runs bool
	}{
		"an identity":  {step, true},
		"a CronJob":    {memory.WorkloadRef{APIVersion: "batch/v1", Kind: "CronJob", Namespace: "ci", Name: "report"}, true},
		"a Deployment": {memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ci", Name: "web"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			st, now := NewState(), began
			var last Effects
			for n := range 12 {
				demand := 110 * memory.MiB
				if n%4 == 1 {
					demand = 480 * memory.MiB
				}
				st, last = runOnce(t, st, c.of, n, demand, now)
				now = now.Add(2 * time.Hour)
				if n == 6 {
					st = afterRestart(t, st)
				}
			}
			got := last.Status.Containers[0]
			const want = "9 of 12 runs used at most 110Mi, 3 up to 480Mi"
			if slices.Contains(got.Reasons, want) != c.runs {
				t.Errorf("the reasons %q have %q: want %t", got.Reasons, want, c.runs)
			}
			if !c.runs {
				return
			}
			if got.Recommended == nil || memory.FromQuantity(*got.Recommended.Limit) < 480*memory.MiB {
				t.Errorf("recommended %+v, and a run with 480Mi comes several times a day", got.Recommended)
			}
		})
	}
}

// TestOwnersForbidToDisturbAPod as they do to autoscalers.
func TestOwnersForbidToDisturbAPod(t *testing.T) {
	const karpenter, autoscaler = "karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict"
	for _, c := range []struct{ key, value, want string }{
		{karpenter, "true", karpenter + `: "true"`},
		{karpenter, "false", ""},
		{autoscaler, "false", autoscaler + `: "false"`},
		{autoscaler, "true", ""},
		{"team", "shop", ""},
	} {
		pod := build.Pod("shop", "web-1").On("n1").Annotate(c.key, c.value).Container("app", build.Limit("2Gi")).Obj()
		s := &Snapshot{
			Owner: memory.Workload{Ref: memory.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
			Pods:  []*corev1.Pod{pod}, Governed: []*corev1.Pod{pod}, Template: pod, Profile: governing(
				build.Profile("shop", "web", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingInPlaceOrEvict)),
			),
		}
		if in := rolloutInput(s, NewState(), nil, &plans{}, began); in.Pods[0].DoNotDisrupt != c.want {
			t.Errorf("%s: %s: got %q", c.key, c.value, in.Pods[0].DoNotDisrupt)
		}
	}
}

// TestTheJobsOfACustomResourceAreRuns: what owns a Job may be of any kind, and its pod loses its work all the same.
func TestTheJobsOfACustomResourceAreRuns(t *testing.T) {
	ref := memory.WorkloadRef{APIVersion: "keda.sh/v1alpha1", Kind: "ScaledJob", Namespace: "ci", Name: "import"}
	for policy, want := range map[corev1.RestartPolicy]bool{
		corev1.RestartPolicyNever: true, corev1.RestartPolicyOnFailure: true, corev1.RestartPolicyAlways: false,
	} {
		pod := build.Pod("ci", "import-x7k2p").On("n1").RestartPolicy(policy).
			Container("step", build.Limit("2Gi"), build.Request("1Gi")).Obj()
		s := &Snapshot{
			Owner: memory.Workload{Ref: ref, UID: "import"}, Pods: []*corev1.Pod{pod}, Governed: []*corev1.Pod{pod},
			Template: pod, Profile: governing(
				build.Profile("ci", "steps", v1alpha1.RuntimeNative, build.Sizing(v1alpha1.SizingInPlaceOrEvict)),
			),
		}
		if in := rolloutInput(s, NewState(), nil, &plans{}, began); len(in.Pods) != 1 || in.Pods[0].Completes != want {
			t.Errorf("%s: the pods are %+v, want one run: %t", policy, in.Pods, want)
		}
		if got := restartHint(s) == "the next run gets the change"; got != want {
			t.Errorf("%s: the next run is named: %t, want %t", policy, got, want)
		}
	}
}

func TestARunThatWasKilledNeededItsLimit(t *testing.T) {
	var runs []run
	for n := range runsKept + 5 {
		runs = withRun(runs, runID(types.UID(fmt.Sprint(n))), memory.Bytes(n)*memory.MiB)
	}
	if len(runs) != runsKept || runs[0].Peak != 5*memory.MiB {
		t.Fatalf("%d runs, the oldest with %s, want the last %d", len(runs), runs[0].Peak, runsKept)
	}
	killed := func(pod string, limit memory.Bytes, kind memory.OOMKind) memory.OOMKill {
		return memory.OOMKill{Container: memory.ContainerRef{UID: types.UID(pod)}, Limit: limit, Kind: kind}
	}
	got := peaks(runs, []memory.OOMKill{
		killed("7", 64*memory.MiB, memory.OOMMainProcess), killed("8", 64*memory.MiB, memory.OOMHeapAbort),
		killed("unmeasured", 64*memory.MiB, memory.OOMMainProcess),
	})
	if len(got) != runsKept || got[1] != 64*memory.MiB || got[2] != 8*memory.MiB || got[runsKept-1] != 64*memory.MiB {
		t.Errorf("peaks are %v", got)
	}
	if runs[2].Peak != 7*memory.MiB {
		t.Errorf("the stored peak became %s", runs[2].Peak)
	}
}
