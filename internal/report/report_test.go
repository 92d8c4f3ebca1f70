// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

func TestKill(t *testing.T) {
	app := memory.ContainerRef{Container: "app"}
	for want, k := range map[string]memory.OOMKill{
		"Container app was OOM killed at its limit of 256Mi (peak demand 251Mi, up 4m10s): OOMKilled, exit 137; no data": {
			Container: app, Limit: 256 * memory.MiB, Peak: 251 * memory.MiB, Uptime: 250 * time.Second,
			Why: "OOMKilled, exit 137", Account: "no data",
		},
		"Container app was OOM killed at its limit of 64Mi (a limit of 96Mi was requested and not in effect)": {
			Container: app, Limit: 64 * memory.MiB, Asked: 96 * memory.MiB,
		},
		"Container app exited because its runtime's heap was full (heap cap, under a limit of 64Mi)": {
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
	going := "Container app stalls at its limit of 256Mi since 2026-11-20T08:20:13Z: " + s.Why()
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
