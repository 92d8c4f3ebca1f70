// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"strings"
	"testing"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/shape"
)

// TestMaxPerDayCountsOverACompressedDay: it must not run in parallel with other tests.
func TestMaxPerDayCountsOverACompressedDay(t *testing.T) {
	if err := period.Compress(144); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = period.Compress(1) })
	retains := shape.Shape{Kind: shape.StepRetention, Confidence: memory.High}
	in := Input{
		Pods: []Pod{pod("a", 240), pod("b", 10)}, Shapes: map[string]shape.Shape{"app": retains}, Now: now,
		Policy: Policy{MaxPerDay: 1, MinReplicas: 1, Cooldown: time.Minute},
	}
	var s State
	s.Add(restarted(9 * time.Minute))
	in.Done = s.Restarts(now)
	if got := Choose(in); !strings.Contains(got.Held, "1 pods were restarted in the last 10m, and drift.maxPerDay is 1") {
		t.Errorf("nine minutes later: %+v", got)
	}
	in.Now = now.Add(time.Minute)
	in.Pods[0].Containers[0].At = in.Now
	in.Done = s.Restarts(in.Now)
	if got := Choose(in); got.Pod != "a" || len(in.Done) != 0 {
		t.Errorf("ten minutes later: %+v, done %v", got, in.Done)
	}
}
