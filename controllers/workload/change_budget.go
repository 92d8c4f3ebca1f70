// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/policy"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/workload"
)

// ChangeBudget keeps account of what is done to running pods of all workloads. What a workload spends is written to its
// MemoryCheckpoint before the change is made; [ChangeBudget.Start] adds those up when memfit becomes the leader. Until
// then no change is allowed that the budget has to pay for. Safe for concurrent use.
type ChangeBudget struct {
	// Limit is what the cluster's administrator allows.
	Limit rollout.ChangeBudget
	// APIReader reads the checkpoints from the API server.
	APIReader client.Reader
	// Clock tells the time.
	Clock clock.PassiveClock

	mu    sync.Mutex
	known bool
	spent map[client.ObjectKey][]rollout.Spent
	// version counts the changes of spent that leave others another allowance.
	version int
}

const (
	// checkpointPage is how many checkpoints are read at once: some 2 MB for workloads of one container.
	checkpointPage = 500
	// readAgain is when they are read again after the API server did not answer.
	readAgain = 10 * time.Second
	// reserveTries is how often a workload decides beside others before it decides while they wait.
	reserveTries = 3
)

// NeedLeaderElection is true: who does not lead changes nothing.
func (*ChangeBudget) NeedLeaderElection() bool { return true }

// Start reads what was spent before, and tries until it has.
func (b *ChangeBudget) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("change-budget")
	_ = wait.PollUntilContextCancel(ctx, readAgain, true, func(ctx context.Context) (bool, error) {
		err := b.Recall(logf.IntoContext(ctx, log))
		if err != nil && ctx.Err() == nil {
			log.Error(err, "Changes wait: what was taken of the change budget is not known", "again", readAgain.String())
		}
		return err == nil, nil
	})
	return nil
}

// Recall reads what was spent from all checkpoints. One that cannot be decoded counts nothing: its workload is not
// changed until its checkpoint is fixed.
func (b *ChangeBudget) Recall(ctx context.Context) error {
	found := map[client.ObjectKey][]rollout.Spent{}
	err := eachCheckpoint(ctx, b.APIReader, func(c *v1alpha1.MemoryCheckpoint) {
		spent, err := workload.SpentIn(&c.Status)
		if err != nil {
			logf.FromContext(ctx).Error(err, "Not counted in the change budget", "checkpoint", client.ObjectKeyFromObject(c))
		}
		if len(spent) > 0 {
			found[client.ObjectKeyFromObject(c)] = spent
		}
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.Copy(found, b.spent) // what a step has spent meanwhile is newer
	b.spent, b.known = found, true
	b.version++
	return nil
}

// eachCheckpoint reads all checkpoints from the API server, a page at a time.
func eachCheckpoint(ctx context.Context, from client.Reader, use func(*v1alpha1.MemoryCheckpoint)) error {
	page := &v1alpha1.MemoryCheckpointList{}
	for {
		if err := from.List(ctx, page, client.Limit(checkpointPage), client.Continue(page.Continue)); err != nil {
			return fmt.Errorf("listing MemoryCheckpoints: %w", err)
		}
		for i := range page.Items {
			use(&page.Items[i])
		}
		if page.Continue == "" {
			return nil
		}
	}
}

// reserve calls decide with what other workloads have spent, and keeps what it returns: all that its own workload has
// spent. Workloads decide at the same time; one that spends something while another did decides again, so that two
// cannot spend the same budget. decide must be free of side effects.
func (b *ChangeBudget) reserve(of memory.WorkloadRef, decide func(*rollout.Allowance) []rollout.Spent) {
	own := client.ObjectKey{Namespace: of.Namespace, Name: policy.RecordName(of)}
	for range reserveTries {
		b.mu.Lock()
		a, version := b.allowance(own), b.version
		b.mu.Unlock()
		spent := decide(a)
		b.mu.Lock()
		if version == b.version || b.same(own, spent) {
			b.commit(own, spent)
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
	}
	b.mu.Lock() // many workloads spend: in turn
	defer b.mu.Unlock()
	b.commit(own, decide(b.allowance(own)))
}

// allowance is what other workloads leave. The caller holds mu.
func (b *ChangeBudget) allowance(own client.ObjectKey) *rollout.Allowance {
	now := b.Clock.Now()
	a := &rollout.Allowance{Budget: b.Limit, Unknown: !b.known}
	for key, spent := range b.spent {
		switch recent := rollout.Recent(spent, now); {
		case len(recent) == 0 && b.known:
			delete(b.spent, key)
		case key != own:
			a.Others = append(a.Others, recent...)
		}
	}
	return a
}

// same reports whether a workload has spent nothing else than before. The caller holds mu.
func (b *ChangeBudget) same(own client.ObjectKey, spent []rollout.Spent) bool {
	return slices.EqualFunc(rollout.Recent(b.spent[own], b.Clock.Now()), spent, func(x, y rollout.Spent) bool {
		at := x.At.Equal(y.At)
		x.At, y.At = time.Time{}, time.Time{}
		return at && x == y
	})
}

// commit keeps what a workload has spent. The caller holds mu.
func (b *ChangeBudget) commit(own client.ObjectKey, spent []rollout.Spent) {
	if !b.same(own, spent) {
		b.version++
	}
	if b.spent == nil {
		b.spent = map[client.ObjectKey][]rollout.Spent{}
	}
	if len(spent) > 0 || !b.known {
		b.spent[own] = slices.Clone(spent)
	} else {
		delete(b.spent, own)
	}
}

// used is what all workloads took within the last hour.
func (b *ChangeBudget) used() (bytes memory.Bytes, pods int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, spent := range b.spent {
		moreBytes, morePods := rollout.SumOf(rollout.Recent(spent, b.Clock.Now()))
		bytes, pods = bytes.Plus(moreBytes), pods+morePods
	}
	return bytes, pods
}

// Register adds the metrics of the budget: its bounds, where there are any, and what was taken.
func (b *ChangeBudget) Register(r prometheus.Registerer) {
	gauge := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge("memfit_change_budget_bytes", "Limit of the total increase of running pods' sizes within an hour; 0: no limit.",
		func() float64 { return float64(b.Limit.Bytes) })
	gauge("memfit_change_budget_pods", "Limit of running pods evicted or restarted within an hour; 0: no limit.",
		func() float64 { return float64(b.Limit.Pods) })
	gauge("memfit_change_budget_used_bytes", "Total increase of running pods' sizes within the last hour.",
		func() float64 { bytes, _ := b.used(); return float64(bytes) })
	gauge("memfit_change_budget_used_pods", "Number of running pods evicted or restarted within the last hour.",
		func() float64 { _, pods := b.used(); return float64(pods) })
}
