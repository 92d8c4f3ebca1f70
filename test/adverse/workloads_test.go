// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package adverse

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// Short names of sizing modes, for the table below.
const (
	recommendOnly  = v1alpha1.SizingRecommend
	onCreate       = v1alpha1.SizingOnCreate
	inPlace        = v1alpha1.SizingInPlace
	inPlaceOrEvict = v1alpha1.SizingInPlaceOrEvict
)

// applying are the modes in which memfit changes pods.
var applying = []v1alpha1.SizingMode{onCreate, inPlace, inPlaceOrEvict}

// optIn is when a workload is opted in to memfit.
type optIn string

const (
	early      optIn = "early"         // before its first pod
	late       optIn = "late"          // after it was killed twice
	afterPause optIn = "after a pause" // killed while its namespace has memfit.dev/pause
)

// workload is one difficult workload with the bounds for memfit.
type workload struct {
	name string
	// scenario describes the difficulty, for the table.
	scenario string
	modes    []v1alpha1.SizingMode
	optIn    optIn
	// limit is the limit of its template, need the limit that it needs; need 0: no limit is sufficient.
	limit, need memory.Bytes
	objects     func(namespace string) []client.Object
	// profile changes the profile before it is created. Nil: runtime Native and defaults.
	profile func(*v1alpha1.MemoryProfileSpec)
	// replicas that must be ready; 0: 1.
	replicas int
	// within is the time for the workload to become healthy, which a slow node may double; for a workload that stays
	// unhealthy, how long it is watched.
	within time.Duration
	// deaths is the minimum of kills before a workload that stays unhealthy is judged: on a slow node, leaks are slow.
	deaths int32

	// then does something to the workload after its creation and checks its own bounds, instead of whether the workload
	// becomes healthy. Nil: the workload is only observed.
	then func(context.Context, *testing.T, *trial)

	// maxLimit bounds the highest limit that memfit requests. 0: three times the need.
	maxLimit memory.Bytes
	// maxOtherLimit bounds the limits of other containers. 0: the limit of the template.
	maxOtherLimit memory.Bytes
	// maxDisrupted bounds the pods that memfit evicts.
	maxDisrupted int
	// wantText must occur in the recommendation's summary, reasons, advice or conditions at the end.
	wantText string
	// untouched: no pod may have a higher limit than its template.
	untouched bool
	// staysUnhealthy: it cannot become healthy, and is watched for the time within.
	staysUnhealthy bool
	// alone: it needs the node for itself.
	alone bool
	// failedBefore: memfit once failed here; CI runs these.
	failedBefore bool
}

func (w *workload) bound() memory.Bytes {
	if w.maxLimit > 0 {
		return w.maxLimit
	}
	return 3 * w.need
}

const mi = memory.MiB

// workloads returns all workloads. Their needs are estimates: what the program allocates, plus about 10 MiB for its
// runtime.
func workloads() []workload {
	return []workload{
		{
			name: "crash-loop-late", scenario: "needs 310Mi at start, has 32Mi, opted in after two kills",
			modes: applying, optIn: late, limit: 32 * mi, need: 310 * mi, within: 5 * time.Minute,
			objects: deployment("32Mi", holds("300Mi")), maxDisrupted: 3, failedBefore: true,
		},
		{
			name:     "one-off-runs",
			scenario: "steps of a pipeline that need 100Mi and have 64Mi, each run with an owner of its own",
			modes:    []v1alpha1.SizingMode{onCreate, inPlace}, limit: 64 * mi, need: 95 * mi, within: 5 * time.Minute,
			objects: func(string) []client.Object { return nil }, then: oneOffRuns, maxDisrupted: 0,
			maxLimit: 400 * mi, failedBefore: true,
		},
		{
			name: "crash-loop-early", scenario: "needs 310Mi at start, has 32Mi",
			modes: []v1alpha1.SizingMode{recommendOnly, onCreate, inPlace, inPlaceOrEvict}, limit: 32 * mi, need: 310 * mi,
			within: 5 * time.Minute, objects: deployment("32Mi", holds("300Mi")), maxDisrupted: 3,
		},
		{
			name: "crash-loop-paused", scenario: "needs 310Mi at start, has 32Mi; killed during a pause, which then ends",
			modes: []v1alpha1.SizingMode{inPlace, inPlaceOrEvict}, optIn: afterPause, limit: 32 * mi, need: 310 * mi,
			within: 5 * time.Minute, objects: deployment("32Mi", holds("300Mi")), maxDisrupted: 3, failedBefore: true,
		},
		{
			name: "leak-fast", scenario: "leaks 6Mi/s steadily from 64Mi",
			modes: []v1alpha1.SizingMode{recommendOnly, inPlace, inPlaceOrEvict}, limit: 64 * mi, staysUnhealthy: true,
			within: 5 * time.Minute, deaths: 4,
			objects: deployment("64Mi", leaks("6Mi")), maxLimit: 600 * mi, maxDisrupted: 2, wantText: "leak",
			failedBefore: true,
		},
		{
			name: "leak-slow", scenario: "leaks 1Mi/s steadily from 64Mi",
			modes: []v1alpha1.SizingMode{inPlace}, limit: 64 * mi, staysUnhealthy: true, within: 7 * time.Minute,
			objects: deployment("64Mi", leaks("1Mi")), maxLimit: 600 * mi, maxDisrupted: 2,
		},
		{
			name: "spike-at-start", scenario: "needs 220Mi for three seconds at start and 40Mi afterwards, has 128Mi",
			modes: applying, limit: 128 * mi, need: 230 * mi, within: 4 * time.Minute,
			objects: deployment("128Mi", python(spike)), maxDisrupted: 3,
		},
		{
			name: "child-killed", scenario: "a shell lives, its child is killed each time it works",
			modes: []v1alpha1.SizingMode{inPlace}, limit: 128 * mi, need: 230 * mi, within: 5 * time.Minute,
			objects: deployment(
				"128Mi", shell(`while true; do python3 -c "`+grow+`" && touch /tmp/ready; sleep 5; done`), readyFile,
			),
		},
		{
			name: "page-cache-reader", scenario: "reads a file twice the size of its limit all day with 10Mi of its own",
			modes: applying, limit: 64 * mi, need: 64 * mi, within: 90 * time.Second,
			objects: deployment(
				"64Mi", shell(`head -c 134217728 /dev/zero > /scratch/f; while true; do cat /scratch/f > /dev/null; sleep 1; done`),
				scratch,
			), untouched: true,
		},
		{
			name: "stalled",
			scenario: "fills 90 % of its limit and reads a mapped file of a fifth of it: it stalls, and the kernel does not " +
				"kill it",
			modes: []v1alpha1.SizingMode{inPlace, inPlaceOrEvict}, limit: 128 * mi, need: 150 * mi, within: 6 * time.Minute,
			objects: deployment("128Mi", python(stall), scratch, readyFile), wantText: "stalled at 128Mi",
		},
		{
			name: "three-replicas", scenario: "three replicas need 90Mi each and have 64Mi",
			modes: applying, limit: 64 * mi, need: 90 * mi, replicas: 3, within: 4 * time.Minute,
			objects: deployment("64Mi", holds("80Mi"), replicas(3)), maxDisrupted: 5, failedBefore: true,
		},
		{
			name: "jvm-share", scenario: "a JVM aborts at MaxRAMPercentage=50 of 160Mi and needs 120Mi of heap",
			modes: []v1alpha1.SizingMode{onCreate, inPlace}, limit: 160 * mi, need: 300 * mi, within: 6 * time.Minute,
			objects: deployment("160Mi", java(120, "-XX:MaxRAMPercentage=50", "-XX:+ExitOnOutOfMemoryError"), jdk),
			profile: func(p *v1alpha1.MemoryProfileSpec) {
				p.Runtime = v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM, Version: "17"}
			},
		},
		{
			name:     "jvm-launcher-heap",
			scenario: "a JVM aborts at the 64m that MAX_HEAP_SIZE gives it and has 256Mi: no limit helps",
			modes:    []v1alpha1.SizingMode{inPlace}, limit: 256 * mi, staysUnhealthy: true, within: 2 * time.Minute, deaths: 3,
			objects: deployment("256Mi", java(90, "-Xmx$MAX_HEAP_SIZE", "-XX:+ExitOnOutOfMemoryError"), jdk, maxHeapSize("64m")),
			profile: func(p *v1alpha1.MemoryProfileSpec) {
				p.Runtime = v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM, Version: "17"}
			},
			maxLimit: 256 * mi, untouched: true, wantText: "MAX_HEAP_SIZE",
		},
		{
			name: "one-of-two", scenario: "two containers: app needs 120Mi and has 64Mi, side is well with its 64Mi",
			modes: []v1alpha1.SizingMode{onCreate, inPlace, inPlaceOrEvict}, limit: 64 * mi, need: 120 * mi,
			within:  4 * time.Minute,
			objects: deployment("64Mi", holds("110Mi"), sidecar("side", "64Mi", holds("20Mi"))), maxDisrupted: 3,
		},
		{
			name: "cron-job", scenario: "a CronJob that dies in each run: needs 110Mi, has 64Mi",
			modes: []v1alpha1.SizingMode{onCreate, inPlace}, limit: 64 * mi, need: 110 * mi, within: 6 * time.Minute,
			objects: cronJob("64Mi", "100Mi"),
		},
		{
			name: "tight-runtime", scenario: "an idle JVM in 16Mi: less than it needs to start",
			modes: applying, limit: 16 * mi, need: 45 * mi, within: 5 * time.Minute,
			objects: deployment("16Mi", registry, jdk), maxLimit: 300 * mi, maxDisrupted: 3, // a step is at least 64Mi
			profile: func(p *v1alpha1.MemoryProfileSpec) {
				p.Runtime = v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM, Version: "17"}
			},
		},
		{
			name: "stateful-of-one", scenario: "a StatefulSet of one replica needs 110Mi and has 64Mi",
			modes: applying, limit: 64 * mi, need: 110 * mi, within: 4 * time.Minute,
			objects: statefulSet("64Mi", holds("100Mi")), maxDisrupted: 2,
		},
		{
			name: "quota-full", scenario: "needs 110Mi, has 64Mi, and a ResourceQuota leaves space for two pods of that",
			modes: applying, limit: 64 * mi, need: 110 * mi, staysUnhealthy: true, within: 2 * time.Minute, maxLimit: 330 * mi,
			objects: with(deployment("64Mi", holds("100Mi")), quota("140Mi")), failedBefore: true,
		},
		{
			name: "limit-range", scenario: "needs 310Mi, has 64Mi, and a LimitRange allows 100Mi",
			modes: applying, limit: 64 * mi, staysUnhealthy: true, within: 3 * time.Minute, maxLimit: 330 * 3 * mi,
			objects: with(deployment("64Mi", holds("300Mi")), limitRange("100Mi")), maxDisrupted: 3, failedBefore: true,
		},
		{
			name: "guaranteed", scenario: "needs 110Mi, has request and limit 64Mi: its QoS class may not change",
			modes: applying, limit: 64 * mi, need: 110 * mi, within: 4 * time.Minute,
			objects: deployment("64Mi", holds("100Mi"), guaranteed), maxDisrupted: 3,
		},
		{
			name: "beside-hpa", scenario: "needs 110Mi, has 64Mi, and an HPA scales on its memory",
			modes: []v1alpha1.SizingMode{inPlace, inPlaceOrEvict}, limit: 64 * mi, need: 110 * mi, staysUnhealthy: true,
			within:  90 * time.Second,
			objects: with(deployment("64Mi", holds("100Mi")), memoryHPA()), untouched: true, wantText: "HorizontalPodAutoscaler",
		},
		{
			name: "node-full", scenario: "needs 310Mi as request and limit, has 64Mi, on a node with 100Mi left",
			modes: []v1alpha1.SizingMode{inPlace, inPlaceOrEvict}, limit: 64 * mi, need: 310 * mi, staysUnhealthy: true,
			within:  3 * time.Minute,
			objects: with(deployment("64Mi", holds("300Mi"), guaranteed), filler(100*mi)), maxDisrupted: 1, alone: true,
			profile: func(p *v1alpha1.MemoryProfileSpec) { p.Sizing.RequestPolicy = v1alpha1.RequestEqualsLimit },
		},
		{
			name:     "release-raises-limit",
			scenario: "v1 needs 58Mi and has 32Mi; after its OOM kill v2 needs 610Mi, with limit 1Gi and request 640Mi",
			modes:    []v1alpha1.SizingMode{inPlace}, limit: 32 * mi, need: 610 * mi, replicas: 2, within: 3 * time.Minute,
			objects: deployment("32Mi", fills(48, 0), replicas(2)), then: releaseRaisesLimit, failedBefore: true,
		},
		{
			name: "simultaneous-20", scenario: "20 running replicas exceed 32Mi in the same second and need 58Mi",
			modes: []v1alpha1.SizingMode{inPlace}, limit: 32 * mi, need: 58 * mi, replicas: 20, within: 3 * time.Minute,
			objects: deployment("32Mi", python(burst), burstVolume, replicas(20)), then: simultaneous,
			maxLimit: 300 * mi, alone: true, failedBefore: true, // a step is at least 64Mi
		},
		{
			name:     "pause-then-reschedule",
			scenario: "a StatefulSet needs 102Mi and has 64Mi; memfit raises it, then is paused, and a pod is deleted",
			modes:    []v1alpha1.SizingMode{inPlace}, limit: 64 * mi, need: 102 * mi, replicas: 2, within: 3 * time.Minute,
			objects: pair(statefulSet("64Mi", fills(92, 0))), then: pauseThenReschedule, failedBefore: true,
		},
		{
			name:     "two-containers",
			scenario: "two containers of a pod need 80Mi each, have 32Mi and are OOM-killed 15 s apart",
			modes:    []v1alpha1.SizingMode{inPlace}, limit: 32 * mi, need: 80 * mi, within: 3 * time.Minute,
			objects: deployment("32Mi", fills(70, 25), sidecar(secondContainer, "32Mi", fills(70, 40))),
			then:    eventsNameSecond, maxLimit: 300 * mi, maxOtherLimit: 300 * mi, failedBefore: true,
		},
		{
			name:     "debug-session",
			scenario: "kubectl exec of a program that takes 150Mi in one of two replicas, which use 28Mi of 64Mi",
			modes:    []v1alpha1.SizingMode{inPlace}, limit: 64 * mi, need: 38 * mi, replicas: 2, within: 2 * time.Minute,
			objects: deployment("64Mi", fills(18, 0), replicas(2)), then: debugSession, untouched: true,
		},
		{
			name:     "memory-volume",
			scenario: "a pod is raised in place, and its volume of medium Memory without sizeLimit is full at 64Mi from then on",
			modes:    []v1alpha1.SizingMode{inPlace}, limit: 64 * mi, need: 110 * mi, within: 4 * time.Minute,
			objects: deployment("64Mi", python(spool), spoolVolume), then: volumeKeepsSize,
		},
	}
}
