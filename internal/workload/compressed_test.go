// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"testing"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// compress shortens periods of evidence until the test ends. Tests that call it must not be parallel.
func compress(t *testing.T, factor int) {
	t.Helper()
	before := period.Factor()
	if err := period.Compress(factor); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = period.Compress(before) })
}

// TestAHistoryOfAnotherFactorStartsAnew: its hours and days are of another length, so they cannot be continued.
func TestAHistoryOfAnotherFactorStartsAnew(t *testing.T) {
	written := func(factor int) *v1alpha1.MemoryCheckpoint {
		compress(t, factor)
		h := history.New()
		for i := range 20 {
			h.Add(memory.Sample{
				Container: memory.ContainerRef{Namespace: "shop", Pod: "web-1", UID: "1", Container: "app"},
				Time:      time.Unix(1_800_000_000+int64(i)*15, 0), RSS: memory.MiB, HasRSS: true, WorkingSet: memory.MiB,
			}, 0)
		}
		data, err := h.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		c := &v1alpha1.MemoryCheckpoint{}
		c.Status.Containers = []v1alpha1.CheckpointContainer{{Name: "app", History: data}}
		return c
	}
	plain, fast := written(1), written(144)
	for _, tc := range []struct {
		factor  int
		stored  *v1alpha1.MemoryCheckpoint
		samples int64
	}{{1, plain, 20}, {1, fast, 0}, {144, fast, 20}, {144, plain, 0}, {60, fast, 0}} {
		compress(t, tc.factor)
		st := &State{}
		lost, err := st.Unpack(tc.stored)
		if err != nil {
			t.Fatal(err)
		}
		if got := st.History("app").Samples(); got != tc.samples {
			t.Errorf("factor %d: %d samples, want %d", tc.factor, got, tc.samples)
		}
		if anew := tc.samples == 0; anew != (len(lost) == 1 && errors.Is(lost[0], period.ErrFactor)) {
			t.Errorf("factor %d: lost %v", tc.factor, lost)
		}
	}
}
