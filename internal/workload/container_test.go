// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/inject"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/profile"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/workloadkind"
	"github.com/memfit/memfit/test/build"
	"github.com/memfit/memfit/test/podplan"
)

// TestHeapAbortsOfALauncherRaiseNoLimit: a JVM that aborts at a cap from a variable of its start script aborts again
// under any limit. Seen on a node: each abort raised the limit, up to limit.max.
func TestHeapAbortsOfALauncherRaiseNoLimit(t *testing.T) {
	start := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	share := v1alpha1.TuningSpec{HeapPercent: new(int32(60))}
	for name, c := range map[string]struct {
		env    []string
		tuning v1alpha1.TuningSpec
		advice string // a part of it; empty: the limit is raised
	}{
		"Cassandra":            {env: []string{"MAX_HEAP_SIZE", "400m"}, advice: "MAX_HEAP_SIZE=400m sets the heap cap"},
		"ZooKeeper":            {env: []string{"ZOO_HEAP_SIZE", "400"}, advice: "ZOO_HEAP_SIZE=400 sets the heap cap"},
		"Kafka":                {env: []string{"KAFKA_HEAP_OPTS", "-Xmx400m"}, advice: "KAFKA_HEAP_OPTS has -Xmx400m"},
		"Spark, a share asked": {[]string{"SPARK_EXECUTOR_MEMORY", "400m"}, share, "SPARK_EXECUTOR_MEMORY=400m sets"},
		"nothing is known":     {advice: "raise -XX:MaxRAMPercentage or -Xmx (heapPercent in the profile)"},
		"memfit's share":       {tuning: share},
	} {
		t.Run(name, func(t *testing.T) {
			pod := build.Pod("shop", "web").Container("app", build.Limit("1Gi"), build.Env(c.env...)).Obj()
			p := &profile.Profile{Spec: &v1alpha1.MemoryProfileSpec{
				Runtime: v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM}, Tuning: c.tuning,
			}}
			podplan.Apply(pod, inject.MakePlan(inject.Input{Pod: pod, Profile: p}))
			plan := inject.MakePlan(inject.Input{Pod: pod, Profile: p, Created: true})
			m := Managed(p, pod)[0]
			q := containerInput{container: m, plan: plan.Container("app")}
			for i := range 3 {
				at := start.Add(time.Duration(i) * time.Minute)
				q.Kills = append(q.Kills, memory.OOMKill{
					Kind: memory.OOMHeapAbort, Time: at, Limit: q.container.current.Limit, Peak: 500 * memory.MiB,
					Uptime: 30 * time.Second,
				})
				q.Now = at.Add(time.Second)
				if r := q.result().recommendation; r.Size.Limit > 0 {
					q.container.current.Limit = r.Size.Limit
				}
			}
			if raised := q.container.current.Limit > memory.GiB; raised != (c.advice == "") {
				t.Errorf("after three aborts the limit is %s", q.container.current.Limit)
			}
			if advice := strings.Join(q.result().status.Advice, "\n"); !strings.Contains(advice, c.advice) {
				t.Errorf("the advice does not say %q:\n%s", c.advice, advice)
			}
		})
	}
}

// TestWhatMayBehaveAnotherWaySharesNoPrior: a tag or digest makes no difference; a command, an argument or another
// registry does.
func TestWhatMayBehaveAnotherWaySharesNoPrior(t *testing.T) {
	key := func(image string, command, args []string) string {
		return priorKey(&corev1.Container{Image: image, Command: command, Args: args})
	}
	script := key("busybox:1.37", []string{"sh"}, []string{"/a.sh"})
	for _, same := range []string{
		key("busybox", []string{"sh"}, []string{"/a.sh"}),
		key("busybox:1.36@sha256:"+strings.Repeat("0", 64), []string{"sh"}, []string{"/a.sh"}),
	} {
		if same != script {
			t.Errorf("%s and %s", same, script)
		}
	}
	seen := map[string]bool{script: true}
	for _, other := range []string{
		key("busybox", nil, nil), key("busybox", []string{"sh"}, nil), key("busybox", nil, []string{"sh", "/a.sh"}),
		key("busybox", []string{"sh"}, []string{"/b.sh"}), key("busybox", []string{"sh /a.sh"}, nil),
		key("mirror.test:5000/busybox:1.37", []string{"sh"}, []string{"/a.sh"}),
	} {
		if seen[other] {
			t.Errorf("%s twice", other)
		}
		seen[other] = true
	}
	if got := key("mirror.test:5000/library/redis:7", nil, nil); got != "mirror.test:5000/library/redis" {
		t.Errorf("without command and arguments: %s", got)
	}
}

// TestRunsOfAnIdentityShareNoPrior: each run has arguments of its own.
func TestRunsOfAnIdentityShareNoPrior(t *testing.T) {
	now := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	known := recommend.Priors{"busybox": {Hours: 60, Containers: math.MaxUint64, Day: period.DayOf(now)}}
	for ref, want := range map[memory.WorkloadRef]bool{
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ci", Name: "build"}:                                true,
		{APIVersion: workloadkind.IdentityAPIVersion, Kind: workloadkind.IdentityKind, Namespace: "ci", Name: "b"}: false,
	} {
		d := decider{s: &Snapshot{Owner: memory.Workload{Ref: ref}, Priors: known}, now: now}
		if got := d.prior(&managedContainer{Name: "step", priorKey: "busybox"}); (got.Containers > 0) != want {
			t.Errorf("%s: %+v", ref, got)
		}
	}
}
