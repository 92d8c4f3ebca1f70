// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memfit/memfit/internal/memory"
)

// TestTruthTable is the table of docs/design/ledger.md, row by row: one pod whose container "app" (limit 256Mi) is
// looked at once.
func TestTruthTable(t *testing.T) {
	const limit = "256Mi"
	app := func(cs corev1.ContainerStatus) *corev1.Pod {
		return makePod("web-1", "u1").container("app", limit, cs).pod
	}
	deleted := func(p *corev1.Pod, minute float64, grace int64) *corev1.Pod {
		when := metav1.NewTime(at(minute).Add(time.Duration(grace) * time.Second))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &when, &grace
		return p
	}
	evicted := func(p *corev1.Pod) *corev1.Pod { p.Status.Reason = "Evicted"; return p }
	says := func(cs corev1.ContainerStatus, message string) corev1.ContainerStatus {
		cs.State.Terminated.Message = message
		return cs
	}
	podLimited := func(p *corev1.Pod, limit string) *corev1.Pod {
		r := memoryLimit(limit)
		p.Spec.Resources = &r
		return p
	}
	summedUp := func(p *corev1.Pod, sum string) *corev1.Pod {
		r := memoryLimit(sum)
		p.Status.Resources = &r
		return p
	}

	podStatus := func(p *corev1.Pod, limit string) *corev1.Pod {
		r := memoryLimit(limit)
		p.Status.Resources = &r
		return p
	}

	debugged := func(p *corev1.Pod, from, to float64) *corev1.Pod { // to 0: it still runs
		s := running(0, from)
		if s.Name = "debug"; to > 0 {
			s.State = corev1.ContainerState{Terminated: end(0, "Error", 137, from, to)}
		}
		p.Status.EphemeralContainerStatuses = append(p.Status.EphemeralContainerStatuses, s)
		return p
	}
	// a container that is killed after 60 s and starts again, and a debug session from began until over
	killedBesideDebug := func(began, over float64) *corev1.Pod {
		return debugged(app(after(running(1, 61), end(0, "OOMKilled", 137, 0, 60))), began, over)
	}

	for name, tc := range map[string]struct {
		pod      *corev1.Pod
		runtime  string
		heapCap  memory.Bytes
		peak     map[string]memory.Bytes
		want     memory.OOMKind // "" is no OOM
		wantSure memory.Confidence
		wantSays string
		measured float64 // the minute from which memory is measured; -1: never
		pressed  float64 // the minute from which the node reports MemoryPressure; 0: it does not
		noLimit  bool    // none was reached
	}{
		"its node ran out of memory: no limit was reached": {
			pod:  app(after(running(1, 61), end(0, "OOMKilled", 137, 0, 60))),
			peak: map[string]memory.Bytes{"app": 150 * memory.MiB}, pressed: 60.2,
			want: memory.OOMMainProcess, wantSure: memory.Medium, noLimit: true,
			wantSays: "seen at 150Mi of its 256Mi, while its node was short of memory (MemoryPressure)",
		},
		"its node ran out of memory, and the kubelet evicts its pod": {
			pod:  evicted(app(ended(0, end(0, "OOMKilled", 137, 0, 60)))),
			peak: map[string]memory.Bytes{"app": 150 * memory.MiB}, pressed: 50,
			want: memory.OOMMainProcess, wantSure: memory.Medium, noLimit: true,
		},
		"it uses most of its limit on a node that is short of memory": {
			pod:  app(after(running(1, 61), end(0, "OOMKilled", 137, 0, 60))),
			peak: map[string]memory.Bytes{"app": 225 * memory.MiB}, pressed: 50,
			want: memory.OOMMainProcess, wantSure: memory.High,
		},
		"it was not measured on a node that is short of memory": {
			pod: app(after(running(1, 61), end(0, "OOMKilled", 137, 0, 60))), pressed: 50,
			want: memory.OOMMainProcess, wantSure: memory.High,
		},
		"its node was not short of memory yet": {
			pod:  app(after(running(1, 61), end(0, "OOMKilled", 137, 0, 60))),
			peak: map[string]memory.Bytes{"app": 150 * memory.MiB}, pressed: 61,
			want: memory.OOMMainProcess, wantSure: memory.High,
		},
		"lastState OOMKilled 137: the main process": {
			pod:  app(after(running(1, 61), end(0, "OOMKilled", 137, 0, 60))),
			peak: map[string]memory.Bytes{"app": 250 * memory.MiB},
			want: memory.OOMMainProcess, wantSure: memory.High, wantSays: "OOMKilled, exit 137, restart 0",
		},
		"OOMKilled 137 in CrashLoopBackOff, restartCount not yet raised": {
			pod: app(crashLoop(0, end(0, "OOMKilled", 137, 0, 60))), peak: map[string]memory.Bytes{"app": 250 * memory.MiB},
			want: memory.OOMMainProcess, wantSure: memory.High,
		},
		"OOMKilled 143: stopped normally, but a child was killed earlier": {
			pod:  app(ended(0, end(0, "OOMKilled", 143, 0, 60))),
			want: memory.OOMChildProcess, wantSure: memory.High, wantSays: "a child was killed earlier",
		},
		"OOMKilled 0: ended normally, but a child was killed earlier": {
			pod:  app(ended(0, end(0, "OOMKilled", 0, 0, 60))),
			want: memory.OOMChildProcess, wantSure: memory.High, wantSays: "OOMKilled, exit 0",
		},
		"OOMKilled 1: the main process gave up after its child was killed": {
			pod:  app(ended(0, end(0, "OOMKilled", 1, 0, 60))),
			want: memory.OOMChildProcess, wantSure: memory.High,
		},
		"Error 137 far below the limit: a liveness probe": {
			pod: app(after(running(1, 61), end(0, "Error", 137, 0, 60))), peak: map[string]memory.Bytes{"app": 100 * memory.MiB},
		},
		"Error 137 and nobody knows the usage: not an OOM": {
			pod: app(after(running(1, 61), end(0, "Error", 137, 0, 60))),
		},
		"Error 137 at 93 % of the limit: suspected": {
			pod: app(after(running(1, 61), end(0, "Error", 137, 0, 60))), peak: map[string]memory.Bytes{"app": 238 * memory.MiB},
			want: memory.OOMSuspected, wantSure: memory.Low, wantSays: "seen at 238Mi of its 256Mi",
		},
		"Error 137 at 99 % of the limit: suspected, and more so": {
			pod: app(after(running(1, 61), end(0, "Error", 137, 0, 60))), peak: map[string]memory.Bytes{"app": 254 * memory.MiB},
			want: memory.OOMSuspected, wantSure: memory.Medium,
		},
		"Error 137 at the limit, but the pod was deleted and did not stop in time": {
			pod:  deleted(app(ended(0, end(0, "Error", 137, 0, 60))), 59.5, 30),
			peak: map[string]memory.Bytes{"app": 254 * memory.MiB},
		},
		"Error 137 at the limit in an evicted pod: the node was short of memory": {
			pod: evicted(app(ended(0, end(0, "Error", 137, 0, 60)))), peak: map[string]memory.Bytes{"app": 254 * memory.MiB},
		},
		"OOMKilled 137, deleted right after: as sure as any": {
			pod:  deleted(app(ended(0, end(0, "OOMKilled", 137, 0, 60))), 61, 30),
			peak: map[string]memory.Bytes{"app": 254 * memory.MiB},
			want: memory.OOMMainProcess, wantSure: memory.High,
		},
		"OOMKilled 137 at the end of the grace period: maybe only a child": {
			pod:  deleted(app(ended(0, end(0, "OOMKilled", 137, 0, 60))), 59.5, 30),
			want: memory.OOMMainProcess, wantSure: memory.Medium, wantSays: "grace period",
		},
		"Error 143: stopped": {pod: app(ended(0, end(0, "Error", 143, 0, 60)))},
		"Completed":          {pod: app(ended(0, end(0, "Completed", 0, 0, 60)))},
		"Error 1":            {pod: app(ended(0, end(0, "Error", 1, 0, 60)))},
		"the kubelet lost track of the container": {
			pod:  app(after(running(1, 61), &corev1.ContainerStateTerminated{Reason: "ContainerStatusUnknown", ExitCode: 137})),
			peak: map[string]memory.Bytes{"app": 254 * memory.MiB},
		},
		"Job pod, restartPolicy Never: state.terminated is final": {
			pod: app(ended(0, end(0, "OOMKilled", 137, 0, 60))), peak: map[string]memory.Bytes{"app": 254 * memory.MiB},
			want: memory.OOMMainProcess, wantSure: memory.High,
		},
		"init container OOMKilled 137": {
			pod:  makePod("web-1", "u1").init("app", limit, false, ended(0, end(0, "OOMKilled", 137, 0, 5))).pod,
			want: memory.OOMMainProcess, wantSure: memory.High, wantSays: "init container",
		},
		"init container OOMKilled 0: the kubelet counts it as failed": {
			pod:  makePod("web-1", "u1").init("app", limit, false, ended(0, end(0, "OOMKilled", 0, 0, 5))).pod,
			want: memory.OOMChildProcess, wantSure: memory.High, wantSays: "counts the init container as failed",
		},
		"native sidecar OOMKilled 137": {
			pod:  makePod("web-1", "u1").init("app", limit, true, after(running(1, 61), end(0, "OOMKilled", 137, 0, 60))).pod,
			want: memory.OOMMainProcess, wantSure: memory.High, wantSays: "native sidecar",
		},
		"killed 4 seconds after its start, never measured": {
			pod:  app(crashLoop(0, end(0, "OOMKilled", 137, 0, 0.0667))),
			want: memory.OOMAtStart, wantSure: memory.High, wantSays: "killed 4s after its start",
		},
		"killed 4 seconds after its start, when memfit was not there yet": {
			pod: app(crashLoop(0, end(0, "OOMKilled", 137, 0, 0.0667))), measured: 1,
			want: memory.OOMMainProcess, wantSure: memory.High,
			wantSays: "killed 4s after its start, while memfit had no measurements",
		},
		"killed 4 seconds after its start, usage turned off": {
			pod: app(crashLoop(0, end(0, "OOMKilled", 137, 0, 0.0667))), measured: -1,
			want: memory.OOMMainProcess, wantSure: memory.High, wantSays: "while memfit had no measurements",
		},
		"killed within the second it started": {
			pod:  app(crashLoop(0, end(0, "OOMKilled", 137, 1, 1))),
			want: memory.OOMAtStart, wantSure: memory.High,
		},
		"killed early, but it was measured: an ordinary kill": {
			pod: app(crashLoop(0, end(0, "OOMKilled", 137, 0, 0.5))), peak: map[string]memory.Bytes{"app": 200 * memory.MiB},
			want: memory.OOMMainProcess, wantSure: memory.High,
		},
		"never measured, but it ran for an hour: memfit was not there": {
			pod:  app(crashLoop(0, end(0, "OOMKilled", 137, 0, 60))),
			want: memory.OOMMainProcess, wantSure: memory.High,
		},
		"Node.js 134": {
			pod: app(ended(0, end(0, "Error", 134, 0, 60))), runtime: "NodeJS", want: memory.OOMHeapAbort,
			wantSure: memory.Medium,
		},
		"Node.js 133": {
			pod: app(ended(0, end(0, "Error", 133, 0, 60))), runtime: "NodeJS", want: memory.OOMHeapAbort,
			wantSure: memory.Medium,
		},
		"JVM ExitOnOutOfMemoryError": {
			pod: app(ended(0, end(0, "Error", 3, 0, 60))), runtime: "JVM", want: memory.OOMHeapAbort, wantSure: memory.Medium,
		},
		"JVM ExitOnOutOfMemoryError for its heap": {
			pod: app(says(ended(0, end(0, "Error", 3, 0, 60)),
				"Terminating due to java.lang.OutOfMemoryError: Java heap space")),
			runtime: "JVM", want: memory.OOMHeapAbort, wantSure: memory.High,
		},
		"JVM ExitOnOutOfMemoryError for Metaspace": {
			pod:     app(says(ended(0, end(0, "Error", 3, 0, 60)), "Terminating due to java.lang.OutOfMemoryError: Metaspace")),
			runtime: "JVM",
		},
		"JVM ExitOnOutOfMemoryError for compressed class space": {
			pod: app(says(ended(0, end(0, "Error", 3, 0, 60)),
				"Terminating due to java.lang.OutOfMemoryError: Compressed class space")),
			runtime: "JVM",
		},
		"JVM CrashOnOutOfMemoryError for Metaspace, with its heap full": {
			pod:     app(says(ended(0, end(0, "Error", 134, 0, 60)), "Aborting due to java.lang.OutOfMemoryError: Metaspace")),
			runtime: "JVM", heapCap: 180 * memory.MiB, peak: map[string]memory.Bytes{"app": 240 * memory.MiB},
		},
		"JVM that is killed near its limit after it ran out of Metaspace once": {
			pod:     app(says(ended(0, end(0, "Error", 137, 0, 60)), "java.lang.OutOfMemoryError: Metaspace")),
			runtime: "JVM", peak: map[string]memory.Bytes{"app": 255 * memory.MiB},
			want: memory.OOMSuspected, wantSure: memory.Medium,
		},
		"JVM 134 with its heap full: CrashOnOutOfMemoryError": {
			pod: app(ended(0, end(0, "Error", 134, 0, 60))), runtime: "JVM", heapCap: 180 * memory.MiB,
			peak: map[string]memory.Bytes{"app": 200 * memory.MiB},
			want: memory.OOMHeapAbort, wantSure: memory.Low, wantSays: "seen at 200Mi with a heap cap of 180Mi",
		},
		"JVM 134 far below its heap cap: a crash in native code": {
			pod: app(ended(0, end(0, "Error", 134, 0, 60))), runtime: "JVM", heapCap: 180 * memory.MiB,
			peak: map[string]memory.Bytes{"app": 90 * memory.MiB},
		},
		"JVM 134 before anything was measured": {pod: app(ended(0, end(0, "Error", 134, 0, 1))), runtime: "JVM"},
		".NET 134 with its heap full": {
			pod: app(ended(0, end(0, "Error", 134, 0, 60))), runtime: "DotNet", heapCap: 180 * memory.MiB,
			peak: map[string]memory.Bytes{"app": 200 * memory.MiB}, want: memory.OOMHeapAbort, wantSure: memory.Low,
		},
		".NET 134 far below its heap cap: an exception that was not handled": {
			pod: app(ended(0, end(0, "Error", 134, 0, 60))), runtime: "DotNet", heapCap: 180 * memory.MiB,
			peak: map[string]memory.Bytes{"app": 90 * memory.MiB},
		},
		"Java ran out of Metaspace, which is not its heap": {
			pod: app(says(ended(0, end(0, "Error", 1, 0, 60)), "java.lang.OutOfMemoryError: Metaspace")),
		},
		"Java ran out of threads": {
			pod: app(says(ended(0, end(0, "Error", 1, 0, 60)),
				"java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory or process limits")),
		},
		"Java ran out of memory for buffers, of which it allows as much as of heap": {
			pod: app(says(ended(0, end(0, "Error", 1, 0, 60)),
				"java.lang.OutOfMemoryError: Cannot reserve 1048576 bytes of direct buffer memory (allocated: 9, limit: 9)")),
			want: memory.OOMHeapAbort, wantSure: memory.High,
		},
		"Node.js 139 with its heap full": {
			pod: app(ended(0, end(0, "Error", 139, 0, 60))), runtime: "NodeJS", heapCap: 180 * memory.MiB,
			peak: map[string]memory.Bytes{"app": 200 * memory.MiB},
			want: memory.OOMHeapAbort, wantSure: memory.Low, wantSays: "seen at 200Mi with a heap cap of 180Mi",
		},
		"Node.js 139 far below its heap cap: a bug": {
			pod: app(ended(0, end(0, "Error", 139, 0, 60))), runtime: "NodeJS", heapCap: 180 * memory.MiB,
			peak: map[string]memory.Bytes{"app": 90 * memory.MiB},
		},
		"Node.js 139 near the limit, heap cap not known": {
			pod: app(ended(0, end(0, "Error", 139, 0, 60))), runtime: "NodeJS",
			peak: map[string]memory.Bytes{"app": 240 * memory.MiB},
			want: memory.OOMSuspected, wantSure: memory.Low, wantSays: "may be a full heap of Node.js or a bug",
		},
		"139 of something else": {
			pod: app(ended(0, end(0, "Error", 139, 0, 60))), runtime: "Go", heapCap: 180 * memory.MiB,
			peak: map[string]memory.Bytes{"app": 250 * memory.MiB},
		},
		"139 and it said why": {
			pod:  app(says(ended(0, end(0, "Error", 139, 0, 60)), "FATAL ERROR: Reached heap limit Allocation failed")),
			want: memory.OOMHeapAbort, wantSure: memory.High, wantSays: "Reached heap limit",
		},
		"Deno 134": {
			pod: app(ended(0, end(0, "Error", 134, 0, 60))), runtime: "Deno", want: memory.OOMHeapAbort, wantSure: memory.Medium,
		},
		"Node.js 3 means something else": {pod: app(ended(0, end(0, "Error", 3, 0, 60))), runtime: "NodeJS"},
		"exit 3 of who knows what":       {pod: app(ended(0, end(0, "Error", 3, 0, 60)))},
		"Go 134: an abort of its own":    {pod: app(ended(0, end(0, "Error", 134, 0, 60))), runtime: "Go"},
		"134 of who knows what: a hint, and what to declare": {
			pod:  app(ended(0, end(0, "Error", 134, 0, 60))),
			want: memory.OOMSuspected, wantSure: memory.Low,
			wantSays: "a full heap in Node.js or Deno: declare the runtime",
		},
		"exit 134, and the last words say why": {
			pod: app(
				says(
					ended(0, end(0, "Error", 134, 0, 60)),
					"FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
				),
			),
			want: memory.OOMHeapAbort, wantSure: memory.High, wantSays: "JavaScript heap out of memory",
		},
		"exit 1, and the last words say why": {
			pod: app(
				says(ended(0, end(0, "Error", 1, 0, 60)), `Exception in thread "main" java.lang.OutOfMemoryError: Java heap space`),
			),
			want: memory.OOMHeapAbort, wantSure: memory.High,
		},
		"terminated with its pod, with such words in its log": {
			pod: deleted(
				app(says(ended(0, end(0, "Error", 143, 0, 60)), "recovered from java.lang.OutOfMemoryError: Java heap space")),
				59.5, 30,
			),
		},
		"exit 0 with such words in its log is no abort": {
			pod: app(says(ended(0, end(0, "Completed", 0, 0, 60)), "recovered from OutOfMemoryError: Java heap space")),
		},
		"pod-level limit, the container has none": {
			pod: podLimited(
				makePod("web-1", "u1").container("app", "", ended(0, end(0, "OOMKilled", 137, 0, 60))).pod, "512Mi",
			),
			want: memory.OOMPodLimit, wantSure: memory.High, wantSays: "the pod's is 512Mi",
		},
		"pod-level limit, the container's is as high: the pod is full first, however little of it was measured": {
			pod: podLimited(makePod("web-1", "u1").container("app", limit, ended(0, end(0, "OOMKilled", 137, 0, 60))).
				container("proxy", limit, running(0, 0)).pod, limit),
			peak: map[string]memory.Bytes{"app": 120 * memory.MiB, "proxy": 60 * memory.MiB},
			want: memory.OOMPodLimit, wantSure: memory.Medium, wantSays: "is not below the pod's 256Mi",
		},
		"no pod-level limit, though the kubelet puts the sum of the containers' into status.resources": {
			pod: summedUp(
				makePod("web-1", "u1").container("app", "96Mi", after(running(1, 61), end(0, "OOMKilled", 137, 0, 60))).pod, "96Mi",
			),
			want: memory.OOMMainProcess, wantSure: memory.High, wantSays: "OOMKilled, exit 137, restart 0",
		},
		"pod-level limit, the container far below its own and the pod full": {
			pod: podLimited(makePod("web-1", "u1").container("app", limit, ended(0, end(0, "OOMKilled", 137, 0, 60))).
				container("proxy", limit, running(0, 0)).pod, "320Mi"),
			peak: map[string]memory.Bytes{"app": 120 * memory.MiB, "proxy": 190 * memory.MiB},
			want: memory.OOMPodLimit, wantSure: memory.Medium, wantSays: "together were at 310Mi of the pod's 320Mi",
		},
		"no pod-level limit, though the kubelet fills in the sum of the containers' in status": {
			pod: podStatus(
				makePod("web-1", "u1").container("app", limit, ended(0, end(0, "OOMKilled", 137, 0, 60))).pod, "256Mi",
			),
			want: memory.OOMMainProcess, wantSure: memory.High,
		},
		"a debug session fills the pod": {
			pod:  killedBesideDebug(50, 0),
			peak: map[string]memory.Bytes{"app": 150 * memory.MiB},
			want: memory.OOMPodLimit, wantSure: memory.Medium,
			wantSays: "seen at 150Mi of its own 256Mi, while the ephemeral container \"debug\" ran in its pod",
		},
		"a debug session in its processes ends with it": {
			pod:  killedBesideDebug(50, 59.99),
			peak: map[string]memory.Bytes{"app": 150 * memory.MiB}, want: memory.OOMPodLimit, wantSure: memory.Medium,
		},
		"a debug session beside a container that fills its limit": {
			pod:  killedBesideDebug(50, 0),
			peak: map[string]memory.Bytes{"app": 240 * memory.MiB}, want: memory.OOMMainProcess, wantSure: memory.High,
		},
		"a debug session beside a container that uses most of its limit": {
			pod:  killedBesideDebug(50, 0),
			peak: map[string]memory.Bytes{"app": 225 * memory.MiB}, want: memory.OOMMainProcess, wantSure: memory.High,
		},
		"a debug session beside a container that was not measured": {
			pod:  killedBesideDebug(50, 0),
			want: memory.OOMMainProcess, wantSure: memory.High,
		},
		"a debug session that was over": {
			pod:  killedBesideDebug(50, 55),
			peak: map[string]memory.Bytes{"app": 150 * memory.MiB}, want: memory.OOMMainProcess, wantSure: memory.High,
		},
		"a debug session that began later": {
			pod:  killedBesideDebug(62, 0),
			peak: map[string]memory.Bytes{"app": 150 * memory.MiB}, want: memory.OOMMainProcess, wantSure: memory.High,
		},
		"a debug session in a pod whose cgroup has no limit": {
			pod: debugged(makePod("web-1", "u1").container("app", limit, after(running(1, 61), end(0, "OOMKilled", 137, 0, 60))).
				container("proxy", "", running(0, 0)).pod, 50, 0),
			peak: map[string]memory.Bytes{"app": 150 * memory.MiB}, want: memory.OOMMainProcess, wantSure: memory.High,
		},
		"pod-level limit, but the container was at its own": {
			pod: podLimited(makePod("web-1", "u1").container("app", limit, ended(0, end(0, "OOMKilled", 137, 0, 60))).
				container("proxy", limit, running(0, 0)).pod, "320Mi"),
			peak: map[string]memory.Bytes{"app": 250 * memory.MiB, "proxy": 60 * memory.MiB},
			want: memory.OOMMainProcess, wantSure: memory.High,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var l Ledger
			obs := Observe(tc.pod)
			for i := range obs {
				obs[i].Runtime, obs[i].HeapCap = tc.runtime, tc.heapCap
				if tc.measured >= 0 {
					obs[i].Measured = at(tc.measured)
				}
				if tc.pressed > 0 {
					obs[i].NodePressureSince = at(tc.pressed)
				}
			}
			kills := l.Update(obs, peaks(tc.peak), at(70))
			if tc.want == "" {
				if len(kills) > 0 {
					t.Fatalf("got %+v, want no OOM", kills)
				}
				return
			}
			if len(kills) != 1 {
				t.Fatalf("got %d kills, want one of kind %s: %+v", len(kills), tc.want, kills)
			}
			k := kills[0]
			if k.Kind != tc.want || k.Confidence != tc.wantSure {
				t.Errorf("got %s with %s confidence, want %s with %s (%s)", k.Kind, k.Confidence, tc.want, tc.wantSure, k.Why)
			}
			if !strings.Contains(k.Why, tc.wantSays) {
				t.Errorf("%q does not say %q", k.Why, tc.wantSays)
			}
			if tc.noLimit && k.Limit+k.Requested != 0 {
				t.Errorf("it counts as one at a limit of %s (%s asked)", k.Limit, k.Requested)
			}
			wantTotal := int64(1)
			if tc.want == memory.OOMSuspected {
				wantTotal = 0
			}
			if got := l.Total("app"); got != wantTotal {
				t.Errorf("Total is %d, want %d: a suspicion is no kill, all else is", got, wantTotal)
			}
		})
	}
}

// TestAPeakCountsOnceForItsPod: a pod that is observed several times at once uses no more than it uses.
func TestAPeakCountsOnceForItsPod(t *testing.T) {
	pod := makePod("web-1", "u1").container("app", "256Mi", ended(0, end(0, "OOMKilled", 137, 0, 60))).
		container("proxy", "256Mi", running(0, 0)).edit(func(p *corev1.Pod) {
		limit := memoryLimit("320Mi")
		p.Spec.Resources = &limit
	}).pod
	used := peaks(map[string]memory.Bytes{"app": 120 * memory.MiB, "proxy": 60 * memory.MiB})
	var l Ledger
	kills := l.Update(slices.Concat(Observe(pod), Observe(pod)), used, at(70))
	if len(kills) != 1 || kills[0].Kind != memory.OOMMainProcess {
		t.Errorf("got %+v, want one kill at the container's own limit", kills)
	}
}
