// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package adverse

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestAdverseJudgesInTime: on a node where it took ten minutes to get well, crash-loop-paused was judged 50 s after its
// last kill, when its time was over, and memfit had not had the four readings yet that it raises a request for.
func TestAdverseJudgesInTime(t *testing.T) {
	w := &workload{within: 5 * time.Minute}
	const over = 11*time.Minute + 16*time.Second // twice within, and after
	measured := map[types.UID]map[time.Time]bool{"p": {}}
	for i := range measurements {
		measured["p"][time.Unix(int64(i), 0)] = true
	}
	long := record{wellAfter: time.Minute, measured: measured, worst: "p"}
	bursts := long
	bursts.request, bursts.use = 16<<20, 223<<20
	for name, tc := range map[string]struct {
		r     record
		since time.Duration
		want  bool
	}{
		"never well, and its time is over": {record{}, over, true},
		"well 30 s ago":                    {record{wellAfter: over - 30*time.Second}, over, false},
		"well for as long as any other":    {record{wellAfter: over, measured: measured, worst: "p"}, over + after + 1, true},
		"well, and never measured":         {record{wellAfter: over}, over + 2*after + 1, true},
		"killed again after its time":      {record{}, over + after, true},
		"well early, and measured":         {long, 3 * time.Minute, true},
		"a burst that nobody had seen":     {bursts, time.Minute + after + 1, false},
		"what its request never covers":    {bursts, time.Minute + 3*after + 1, true},
	} {
		if got := tc.r.seenEnough(w, tc.since); got != tc.want {
			t.Errorf("%s: judged: %t, want %t", name, got, tc.want)
		}
	}
}
