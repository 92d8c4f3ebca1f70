// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/memfit/memfit/internal/memory"
)

// TestAForgottenPastIsNotRead: each of a cluster's Jobs is a workload of its own, and most are gone before Prometheus
// answered for the ones before.
func TestAForgottenPastIsNotRead(t *testing.T) {
	job := func(i int) memory.WorkloadRef {
		return memory.WorkloadRef{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: fmt.Sprintf("job-%d", i)}
	}
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	var p *HistoryBackfill
	reads := 0
	p = &HistoryBackfill{Clock: clock, Read: func(
		_ context.Context, w memory.WorkloadRef, _, _ time.Time, _ func(memory.Sample),
	) error {
		reads++
		p.Forget(w) // its Job ends while it is read
		go func() { // the pause before the next try
			for !clock.HasWaiters() {
				time.Sleep(time.Millisecond)
			}
			clock.Step(backfillPause)
		}()
		return errors.New("no answer")
	}}
	const jobs = 100
	for i := range jobs {
		p.Get(job(i))
	}
	for i := range jobs - 1 {
		p.Forget(job(i))
	}
	for range jobs {
		a, found := p.next()
		if !found {
			break
		}
		p.finish(a, p.read(t.Context(), a))
	}
	if reads != 1 {
		t.Errorf("%d reads of a monitoring system for the one Job that runs, want 1", reads)
	}
	if len(p.asked)+len(p.queue) > 0 {
		t.Errorf("%d workloads and %d requests are still held", len(p.asked), len(p.queue))
	}
}
