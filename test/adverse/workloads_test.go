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

// Sizing modes by short names, because the table below is read by people.
const (
	recommendOnly  = v1alpha1.SizingRecommend
	onCreate       = v1alpha1.SizingOnCreate
	inPlace        = v1alpha1.SizingInPlace
	inPlaceOrEvict = v1alpha1.SizingInPlaceOrEvict
)

// applying are the modes in which memfit gives sizes to pods.
var applying = []v1alpha1.SizingMode{onCreate, inPlace, inPlaceOrEvict}

// optIn is when a workload comes under memfit.
type optIn string

const (
	early      optIn = "early"         // from its first pod on
	late       optIn = "late"          // after it was killed twice
	afterPause optIn = "after a pause" // killed while memfit.dev/pause stood on the namespace
)

// workload is one odd workload and what memfit must hold to beside it.
type workload struct {
	name string
	// story describes what is odd about it, for the table.
	story string
	modes []v1alpha1.SizingMode
	optIn optIn
	// limit is what its template says, need what it can live with; need 0: no limit is enough.
	limit, need memory.Bytes
	objects     func(namespace string) []client.Object
	// profile changes the profile before it is created. Nil: runtime Native and defaults.
	profile func(*v1alpha1.MemoryProfileSpec)
	// replicas that must be ready; 0: 1.
	replicas int
	// within is how long it may take until the workload is well; for one that nothing helps, how long it is watched. A
	// node that is slow is given as much again where what is waited for has not happened there yet.
	within time.Duration
	// deaths are how often one that nothing helps must have died before it is judged: on a slow node, a leak leaks slowly.
	deaths int32

	// then is the second act: what happens to the workload after its creation, and the bounds of that. It replaces the
	// bounds of getting well. Nil: the workload is only observed.
	then func(context.Context, *testing.T, *trial)

	// limitAtMost bounds the highest limit asked for. 0: three times the need.
	limitAtMost memory.Bytes
	// otherAtMost bounds the limits of other containers. 0: they keep theirs.
	otherAtMost memory.Bytes
	// disturbedAtMost bounds the pods that memfit evicts.
	disturbedAtMost int
	// says is a part of what the recommendation's summary, reasons, advice or conditions must say at the end. Empty:
	// nothing.
	says string
	// untouched: no pod may have another limit than its template says.
	untouched bool
	// staysIll: it cannot get well, and is watched for as long as within says.
	staysIll bool
	// alone: it needs the node for itself.
	alone bool
	// failedBefore: memfit once failed here; CI runs these.
	failedBefore bool
}

func (w *workload) bound() memory.Bytes {
	if w.limitAtMost > 0 {
		return w.limitAtMost
	}
	return 3 * w.need
}

const mi = memory.MiB

// workloads is the suite. What each needs is what its program takes, and some 10 MiB for its runtime: an
// estimate, not a measurement.
func workloads() []workload {
	return []workload{
		{
			name: "crash-loop-late", story: "needs 310Mi at start, has 32Mi, opted in after two kills",
			modes: applying, optIn: late, limit: 32 * mi, need: 310 * mi, within: 5 * time.Minute,
			objects: deployment("32Mi", holds("300Mi")), disturbedAtMost: 3, failedBefore: true,
		},
		{
			name: "one-off-runs", story: "steps of a pipeline that need 100Mi and have 64Mi, each run with an owner of its own",
			modes: []v1alpha1.SizingMode{onCreate, inPlace}, limit: 64 * mi, need: 95 * mi, within: 5 * time.Minute,
			objects: func(string) []client.Object { return nil }, then: oneOffRuns, disturbedAtMost: 0,
			limitAtMost: 400 * mi, failedBefore: true,
		},
		{
			name: "crash-loop-early", story: "needs 310Mi at start, has 32Mi",
			modes: []v1alpha1.SizingMode{recommendOnly, onCreate, inPlace, inPlaceOrEvict}, limit: 32 * mi, need: 310 * mi,
			within: 5 * time.Minute, objects: deployment("32Mi", holds("300Mi")), disturbedAtMost: 3,
		},
		{
			name: "crash-loop-paused", story: "needs 310Mi at start, has 32Mi; killed during a pause, which then ends",
			modes: []v1alpha1.SizingMode{inPlace, inPlaceOrEvict}, optIn: afterPause, limit: 32 * mi, need: 310 * mi,
			within: 5 * time.Minute, objects: deployment("32Mi", holds("300Mi")), disturbedAtMost: 3, failedBefore: true,
		},
		{
			name: "leak-fast", story: "leaks 6Mi/s steadily from 64Mi",
			modes: []v1alpha1.SizingMode{recommendOnly, inPlace, inPlaceOrEvict}, limit: 64 * mi, staysIll: true,
			within: 5 * time.Minute, deaths: 4,
			objects: deployment("64Mi", leaks("6Mi")), limitAtMost: 600 * mi, disturbedAtMost: 2, says: "leak",
			failedBefore: true,
		},
		{
			name: "leak-slow", story: "leaks 1Mi/s steadily from 64Mi",
			modes: []v1alpha1.SizingMode{inPlace}, limit: 64 * mi, staysIll: true, within: 7 * time.Minute,
			objects: deployment("64Mi", leaks("1Mi")), limitAtMost: 600 * mi, disturbedAtMost: 2,
		},
		{
			name: "spike-at-start", story: "needs 220Mi for three seconds at start and 40Mi afterwards, has 128Mi",
			modes: applying, limit: 128 * mi, need: 230 * mi, within: 4 * time.Minute,
			objects: deployment("128Mi", python(spike)), disturbedAtMost: 3,
		},
		{
			name: "child-killed", story: "a shell lives, its child is killed each time it works",
			modes: []v1alpha1.SizingMode{inPlace}, limit: 128 * mi, need: 230 * mi, within: 5 * time.Minute,
			objects: deployment(
				"128Mi", shell(`while true; do python3 -c "`+grow+`" && touch /tmp/ready; sleep 5; done`), readyFile,
			),
		},
		{
			name: "page-cache-reader", story: "reads a file twice the size of its limit all day with 10Mi of its own",
			modes: applying, limit: 64 * mi, need: 64 * mi, within: 90 * time.Second,
			objects: deployment(
				"64Mi", shell(`head -c 134217728 /dev/zero > /scratch/f; while true; do cat /scratch/f > /dev/null; sleep 1; done`),
				scratch,
			), untouched: true,
		},
		{
			name: "stalled",
			story: "fills 90 % of its limit and reads a mapped file of a fifth of it: it stalls, and the kernel does not kill " +
				"it",
			modes: []v1alpha1.SizingMode{inPlace, inPlaceOrEvict}, limit: 128 * mi, need: 150 * mi, within: 6 * time.Minute,
			objects: deployment("128Mi", python(stall), scratch, readyFile), says: "stalled at 128Mi",
		},
		{
			name: "three-replicas", story: "three replicas need 90Mi each and have 64Mi",
			modes: applying, limit: 64 * mi, need: 90 * mi, replicas: 3, within: 4 * time.Minute,
			objects: deployment("64Mi", holds("80Mi"), replicas(3)), disturbedAtMost: 5, failedBefore: true,
		},
		{
			name: "jvm-share", story: "a JVM aborts at MaxRAMPercentage=50 of 160Mi and needs 120Mi of heap",
			modes: []v1alpha1.SizingMode{onCreate, inPlace}, limit: 160 * mi, need: 300 * mi, within: 6 * time.Minute,
			objects: deployment("160Mi", java(120, "-XX:MaxRAMPercentage=50", "-XX:+ExitOnOutOfMemoryError"), jdk),
			profile: func(p *v1alpha1.MemoryProfileSpec) {
				p.Runtime = v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM, Version: "17"}
			},
		},
		{
			name:  "jvm-launcher-heap",
			story: "a JVM aborts at the 64m that MAX_HEAP_SIZE gives it and has 256Mi: no limit helps",
			modes: []v1alpha1.SizingMode{inPlace}, limit: 256 * mi, staysIll: true, within: 2 * time.Minute, deaths: 3,
			objects: deployment("256Mi", java(90, "-Xmx$MAX_HEAP_SIZE", "-XX:+ExitOnOutOfMemoryError"), jdk, maxHeapSize("64m")),
			profile: func(p *v1alpha1.MemoryProfileSpec) {
				p.Runtime = v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM, Version: "17"}
			},
			limitAtMost: 256 * mi, untouched: true, says: "MAX_HEAP_SIZE",
		},
		{
			name: "one-of-two", story: "two containers: app needs 120Mi and has 64Mi, side is well with its 64Mi",
			modes: []v1alpha1.SizingMode{onCreate, inPlace, inPlaceOrEvict}, limit: 64 * mi, need: 120 * mi,
			within:  4 * time.Minute,
			objects: deployment("64Mi", holds("110Mi"), sidecar("side", "64Mi", holds("20Mi"))), disturbedAtMost: 3,
		},
		{
			name: "cron-job", story: "a CronJob that dies in each run: needs 110Mi, has 64Mi",
			modes: []v1alpha1.SizingMode{onCreate, inPlace}, limit: 64 * mi, need: 110 * mi, within: 6 * time.Minute,
			objects: cronJob("64Mi", "100Mi"),
		},
		{
			name: "tight-runtime", story: "an idle JVM in 16Mi: less than it needs to start",
			modes: applying, limit: 16 * mi, need: 45 * mi, within: 5 * time.Minute,
			objects: deployment("16Mi", registry, jdk), limitAtMost: 300 * mi, disturbedAtMost: 3, // a step is 64Mi at least
			profile: func(p *v1alpha1.MemoryProfileSpec) {
				p.Runtime = v1alpha1.RuntimeSpec{Type: v1alpha1.RuntimeJVM, Version: "17"}
			},
		},
		{
			name: "stateful-of-one", story: "a StatefulSet of one replica needs 110Mi and has 64Mi",
			modes: applying, limit: 64 * mi, need: 110 * mi, within: 4 * time.Minute,
			objects: statefulSet("64Mi", holds("100Mi")), disturbedAtMost: 2,
		},
		{
			name: "quota-full", story: "needs 110Mi, has 64Mi, and a ResourceQuota leaves space for two pods of that",
			modes: applying, limit: 64 * mi, need: 110 * mi, staysIll: true, within: 2 * time.Minute, limitAtMost: 330 * mi,
			objects: with(deployment("64Mi", holds("100Mi")), quota("140Mi")), failedBefore: true,
		},
		{
			name: "limit-range", story: "needs 310Mi, has 64Mi, and a LimitRange allows 100Mi",
			modes: applying, limit: 64 * mi, staysIll: true, within: 3 * time.Minute, limitAtMost: 330 * 3 * mi,
			objects: with(deployment("64Mi", holds("300Mi")), limitRange("100Mi")), disturbedAtMost: 3, failedBefore: true,
		},
		{
			name: "guaranteed", story: "needs 110Mi, has request and limit 64Mi: its QoS class may not change",
			modes: applying, limit: 64 * mi, need: 110 * mi, within: 4 * time.Minute,
			objects: deployment("64Mi", holds("100Mi"), guaranteed), disturbedAtMost: 3,
		},
		{
			name: "beside-hpa", story: "needs 110Mi, has 64Mi, and an HPA scales on its memory",
			modes: []v1alpha1.SizingMode{inPlace, inPlaceOrEvict}, limit: 64 * mi, need: 110 * mi, staysIll: true,
			within:  90 * time.Second,
			objects: with(deployment("64Mi", holds("100Mi")), memoryHPA()), untouched: true, says: "HorizontalPodAutoscaler",
		},
		{
			name: "node-full", story: "needs 310Mi as request and limit, has 64Mi, on a node with 100Mi left",
			modes: []v1alpha1.SizingMode{inPlace, inPlaceOrEvict}, limit: 64 * mi, need: 310 * mi, staysIll: true,
			within:  3 * time.Minute,
			objects: with(deployment("64Mi", holds("300Mi"), guaranteed), filler(100*mi)), disturbedAtMost: 1, alone: true,
			profile: func(p *v1alpha1.MemoryProfileSpec) { p.Sizing.RequestPolicy = v1alpha1.RequestEqualsLimit },
		},
		{
			name:  "release-raises-limit",
			story: "v1 needs 58Mi and has 32Mi; after its OOM kill v2 needs 610Mi, with limit 1Gi and request 640Mi",
			modes: []v1alpha1.SizingMode{inPlace}, limit: 32 * mi, need: 610 * mi, replicas: 2, within: 3 * time.Minute,
			objects: deployment("32Mi", fills(48, 0), replicas(2)), then: releaseRaisesLimit, failedBefore: true,
		},
		{
			name: "simultaneous-20", story: "20 running replicas exceed 32Mi in the same second and need 58Mi",
			modes: []v1alpha1.SizingMode{inPlace}, limit: 32 * mi, need: 58 * mi, replicas: 20, within: 3 * time.Minute,
			objects: deployment("32Mi", python(burst), burstVolume, replicas(20)), then: simultaneous,
			limitAtMost: 300 * mi, alone: true, failedBefore: true, // a step is 64Mi at least
		},
		{
			name:  "pause-then-reschedule",
			story: "a StatefulSet needs 102Mi and has 64Mi; memfit raises it, then is paused, and a pod is deleted",
			modes: []v1alpha1.SizingMode{inPlace}, limit: 64 * mi, need: 102 * mi, replicas: 2, within: 3 * time.Minute,
			objects: pair(statefulSet("64Mi", fills(92, 0))), then: pauseThenReschedule, failedBefore: true,
		},
		{
			name:  "two-containers",
			story: "two containers of a pod need 80Mi each, have 32Mi and are OOM-killed 15 s apart",
			modes: []v1alpha1.SizingMode{inPlace}, limit: 32 * mi, need: 80 * mi, within: 3 * time.Minute,
			objects: deployment("32Mi", fills(70, 25), sidecar(secondContainer, "32Mi", fills(70, 40))),
			then:    eventsNameSecond, limitAtMost: 300 * mi, otherAtMost: 300 * mi, failedBefore: true,
		},
		{
			name:  "debug-session",
			story: "kubectl exec of a program that takes 150Mi in one of two replicas, which use 28Mi of 64Mi",
			modes: []v1alpha1.SizingMode{inPlace}, limit: 64 * mi, need: 38 * mi, replicas: 2, within: 2 * time.Minute,
			objects: deployment("64Mi", fills(18, 0), replicas(2)), then: debugSession, untouched: true,
		},
		{
			name:  "memory-volume",
			story: "a pod is raised in place, and its volume of medium Memory without sizeLimit is full at 64Mi from then on",
			modes: []v1alpha1.SizingMode{inPlace}, limit: 64 * mi, need: 110 * mi, within: 4 * time.Minute,
			objects: deployment("64Mi", python(spool), spoolVolume), then: volumeKeepsSize,
		},
	}
}
