// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package adverse

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestAdverseJudgesInTime checks when a workload is judged. On a slow node, crash-loop-paused was once judged 50 s
// after its last kill, before memfit had the four readings that it needs to raise a request.
func TestAdverseJudgesInTime(t *testing.T) {
	w := &workload{within: 5 * time.Minute}
	const over = 11*time.Minute + 16*time.Second // just above twice within, plus after
	measured := map[types.UID]map[time.Time]bool{"p": {}}
	for i := range measurements {
		measured["p"][time.Unix(int64(i), 0)] = true
	}
	long := record{healthyAfter: time.Minute, measured: measured, worst: "p"}
	bursts := long
	bursts.request, bursts.use = 16<<20, 223<<20
	for name, tc := range map[string]struct {
		r     record
		since time.Duration
		want  bool
	}{
		"never healthy within its time": {record{}, over, true},
		"healthy for 30 s":              {record{healthyAfter: over - 30*time.Second}, over, false},
		"healthy late, and measured": {
			record{healthyAfter: over, measured: measured, worst: "p"}, over + after + 1, true,
		},
		"healthy, but never measured": {record{healthyAfter: over}, over + 2*after + 1, true},
		"killed again after its time": {record{}, over + after, true},
		"healthy early, and measured": {long, 3 * time.Minute, true},
		"use above the request":       {bursts, time.Minute + after + 1, false},
		"use long above the request":  {bursts, time.Minute + 3*after + 1, true},
	} {
		if got := tc.r.done(w, tc.since); got != tc.want {
			t.Errorf("%s: done: %t, want %t", name, got, tc.want)
		}
	}
}
