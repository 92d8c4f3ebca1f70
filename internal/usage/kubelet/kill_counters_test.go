// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/usage"
)

// TestKillCountersAreThoseThatAreReported: a container without the series has not counted nothing.
func TestKillCountersAreThoseThatAreReported(t *testing.T) {
	now := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	other := `container="other",id="/kubepods/pod` + uid + `/c2",namespace="shop",pod="web-0"`
	k := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "container_oom_events_total{"+app+"} 3\ncontainer_start_time_seconds{"+other+"} 1000\n")
	})
	s := source(t, k.config(), Options{}).KillCounters(func() time.Time { return now })
	got, err := s.Read(t.Context(), k.node)
	if err != nil {
		t.Fatal(err)
	}
	want := usage.Reading{Source: "kubelet-counters", Counters: []memory.KillCounter{
		{Container: web, ContainerID: "c1", Count: 3, Time: now},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reading (-want +got):\n%s", diff)
	}
}
