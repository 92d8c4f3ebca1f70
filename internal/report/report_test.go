// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

func TestKill(t *testing.T) {
	app := memory.ContainerRef{Container: "app"}
	for want, k := range map[string]memory.OOMKill{
		"Container app was OOM-killed at its limit of 256Mi (peak demand 251Mi, up 4m10s): OOMKilled, exit 137; no data": {
			Container: app, Limit: 256 * memory.MiB, Peak: 251 * memory.MiB, Uptime: 250 * time.Second,
			Why: "OOMKilled, exit 137", Account: "no data",
		},
		"Container app was OOM-killed at its limit of 64Mi (a limit of 96Mi was requested, but was not effective)": {
			Container: app, Limit: 64 * memory.MiB, Requested: 96 * memory.MiB,
		},
		"Container app exited because its heap reached the runtime's heap cap (the limit is 64Mi)": {
			Container: app, Kind: memory.OOMHeapAbort, Limit: 64 * memory.MiB,
		},
	} {
		if got := Kill(&k); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestStall(t *testing.T) {
	since := time.Date(2026, 11, 20, 8, 20, 13, 0, time.UTC)
	s := memory.Stall{Container: memory.ContainerRef{Container: "app"}, Since: since, Limit: 256 * memory.MiB}
	going := "Container app has been stalled at its limit of 256Mi since 2026-11-20T08:20:13Z: " + s.Why()
	if got := Stall(&s); got != going {
		t.Errorf("got %q, want %q", got, going)
	}
	s.Ended, s.NotRelieved, s.RaisedTo = since.Add(time.Minute), true, 512*memory.MiB
	want := "Container app stalled at its limit of 256Mi from 2026-11-20T08:20:13Z to 2026-11-20T08:21:13Z: " + s.Why() +
		"; raising the limit from 256Mi to 512Mi did not reduce memory pressure: memory is not the bottleneck"
	if got := Stall(&s); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEveryKindHasAdvice(t *testing.T) {
	for _, kind := range []memory.OOMKind{
		memory.OOMMainProcess, memory.OOMChildProcess, memory.OOMAtStart, memory.OOMPodLimit, memory.OOMHeapAbort,
		memory.OOMStall, memory.OOMSuspected,
	} {
		for _, runtime := range []string{"", "JVM", "Go"} {
			if Advice(kind, runtime, "") == "" {
				t.Errorf("no advice for %s of %q", kind, runtime)
			}
		}
	}
}

func TestAdviceForAHeapAbortIsAboutTheCap(t *testing.T) {
	for runtime, want := range map[string]string{
		"NodeJS": "--max-old-space-size", "JVM": "MaxRAMPercentage", "DotNet": "HeapHardLimitPercent",
		"Deno": "DENO_V8_FLAGS", "PHP": "memory_limit in php.ini",
	} {
		got := Advice(memory.OOMHeapAbort, runtime, "")
		if !strings.Contains(got, want) || !strings.Contains(got, "not the limit") {
			t.Errorf("%s: %q should name %s and say that it is not the limit", runtime, got, want)
		}
	}
	own := Advice(memory.OOMHeapAbort, "JVM", "KAFKA_HEAP_OPTS has -Xmx2g: raise the heap cap there")
	if !strings.Contains(own, "not the limit: KAFKA_HEAP_OPTS has -Xmx2g: ") || strings.Contains(own, "heapPercent") {
		t.Errorf("%q should name the variable and not the profile", own)
	}
}
