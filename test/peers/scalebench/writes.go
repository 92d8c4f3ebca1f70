// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"
)

// rate is how much one competitor wrote.
type rate struct {
	server    string
	workloads int
	over      time.Duration
	writes    writes
}

// perHour is the number of writes per workload and hour.
func (r rate) perHour(n int64) float64 { return float64(n) / float64(r.workloads) / r.over.Hours() }

func (r rate) String() string {
	return fmt.Sprintf("what=writes server=%s workloads=%d hours=%.0f status_per_hour=%.2f checkpoints_per_hour=%.2f "+
		"events_per_hour=%.2f api_writes_per_hour=%.2f per_second_for_10k_workloads=%.1f",
		r.server, r.workloads, r.over.Hours(), r.perHour(r.writes.status), r.perHour(r.writes.checkpoints),
		r.perHour(r.writes.events),
		r.perHour(r.writes.all()), r.perHour(r.writes.all())*10_000/3600)
}

// memfitWrites lets hours pass at memfit's defaults: a reading every 15 s, a look at what was read.
func memfitWrites(ctx context.Context, workloads, replicas int, over time.Duration) (rate, error) {
	o, err := newOperator(ctx, workloads, replicas)
	if err != nil {
		return rate{}, err
	}
	if err := o.meet(ctx); err != nil {
		return rate{}, err
	}
	if err := o.remember(ctx); err != nil {
		return rate{}, err
	}
	o.maps.writes = writes{}
	if err := o.run(ctx, over); err != nil {
		return rate{}, err
	}
	return rate{"memfit", workloads, over, o.maps.writes}, nil
}

// vpaWrites is the same for VPA's recommender at its defaults: a loop every minute.
func vpaWrites(ctx context.Context, workloads, replicas int, over time.Duration) (rate, error) {
	a, err := newAutoscaler(workloads, replicas)
	if err != nil {
		return rate{}, err
	}
	if err := a.remember(); err != nil {
		return rate{}, err
	}
	if err := a.once(ctx, epoch); err != nil { // the first status of all is no news
		return rate{}, err
	}
	a.writes = writes{}
	for at := epoch.Add(time.Minute); !at.After(epoch.Add(over)); at = at.Add(time.Minute) {
		if err := a.once(ctx, at); err != nil {
			return rate{}, err
		}
	}
	return rate{"vpa", workloads, over, a.writes}, nil
}
