// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/memfit/memfit/internal/memory"
)

// TestAForgottenPastIsNotRead: each of a cluster's Jobs is a workload of its own, and most are gone before Prometheus
// answered for the ones before.
func TestAForgottenPastIsNotRead(t *testing.T) {
	job := func(i int) memory.WorkloadRef {
		return memory.WorkloadRef{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: fmt.Sprintf("job-%d", i)}
	}
	var p *HistoryBackfill
	reads := 0
	p = &HistoryBackfill{Clock: clock.RealClock{}, Read: func(
		_ context.Context, w memory.WorkloadRef, _, _ time.Time, _ func(memory.Sample),
	) error {
		reads++
		p.Forget(w) // its Job ends while it is read
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
		p.readNext(t.Context())
	}
	if reads != 1 {
		t.Errorf("%d reads of a monitoring system for the one Job that runs, want 1", reads)
	}
	if tries := p.queue().NumRequeues(job(jobs - 1)); len(p.requested)+p.queue().Len()+tries > 0 {
		t.Errorf("%d workloads and %d requests are still held, and %d tries", len(p.requested), p.queue().Len(), tries)
	}
}

// TestAPastThatCannotBeReadIsEmpty: after four tries, in which it is not forgotten.
func TestAPastThatCannotBeReadIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, reads := time.Now(), []time.Duration{}
		p := &HistoryBackfill{Clock: clock.RealClock{}, Read: func(
			context.Context, memory.WorkloadRef, time.Time, time.Time, func(memory.Sample),
		) error {
			reads = append(reads, time.Since(start))
			return errors.New("no answer")
		}}
		defer p.queue().ShutDown()
		p.Get(memory.WorkloadRef{Name: "web"})
		for range backfillTries {
			p.readNext(t.Context())
		}
		want := []time.Duration{0, time.Minute, 3 * time.Minute, 7 * time.Minute}
		if diff := cmp.Diff(want, reads); diff != "" {
			t.Errorf("reads (-want +got):\n%s", diff)
		}
		if containers, there := p.Get(memory.WorkloadRef{Name: "web"}); !there || containers != nil {
			t.Errorf("%v, %t, want an empty past", containers, there)
		}
	})
}
