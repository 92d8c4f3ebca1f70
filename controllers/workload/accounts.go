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
	"github.com/memfit/memfit/internal/rescue"
	"github.com/memfit/memfit/internal/rollout"
	"github.com/memfit/memfit/internal/workload"
)

// Accounts keep the totals of all workloads: changes of running pods, which the change budget bounds, and memory on
// loan. Each workload's part is stored in its MemoryCheckpoint first; [Accounts.Start] adds these up when memfit
// becomes the leader. Until then the budget allows no change, and nothing is lent. Safe for concurrent use; create it
// with Limit, APIReader and Clock.
type Accounts struct {
	// Limit is the administrator's budget. The zero value is unlimited.
	Limit     rollout.ChangeBudget
	APIReader client.Reader // of the API server
	Clock     clock.PassiveClock

	// lending is held while a loan is decided. It is locked before mu.
	lending sync.Mutex

	mu    sync.Mutex
	known bool
	spent map[client.ObjectKey][]rollout.Spent
	loans map[client.ObjectKey][]rescue.Loan
	// version counts the changes of spent that affect other workloads' allowance.
	version int
}

const (
	checkpointPage = 500         // in one request: some 2 MB for workloads of one container
	retryInterval  = time.Second // after the API server did not respond
	// reserveTries bounds optimistic attempts of a workload; after that it decides while others wait.
	reserveTries = 3
)

// Start reads all checkpoints, with retries, on the leader.
func (b *Accounts) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("accounts")
	_ = wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		err := b.Recall(logf.IntoContext(ctx, log))
		if err != nil && ctx.Err() == nil {
			log.Error(err, "Could not read all checkpoints; until then no change and no loan", "retryAfter",
				retryInterval.String())
		}
		return err == nil, nil
	})
	return nil
}

// Recall adds up all checkpoints. It ignores an unreadable one, whose workload is not changed until the checkpoint is
// fixed.
func (b *Accounts) Recall(ctx context.Context) error {
	spent, loans := map[client.ObjectKey][]rollout.Spent{}, map[client.ObjectKey][]rescue.Loan{}
	page := &v1alpha1.MemoryCheckpointList{}
	for more := true; more; more = page.Continue != "" {
		if err := b.APIReader.List(ctx, page, client.Limit(checkpointPage), client.Continue(page.Continue)); err != nil {
			return fmt.Errorf("listing MemoryCheckpoints: %w", err)
		}
		for i := range page.Items {
			key := client.ObjectKeyFromObject(&page.Items[i])
			state, err := workload.RolloutIn(&page.Items[i])
			if err != nil {
				logf.FromContext(ctx).Error(err, "Ignored an unreadable checkpoint in change budget and loans", "checkpoint", key)
			}
			if len(state.Spent) > 0 {
				spent[key] = state.Spent
			}
			if len(state.Loans) > 0 {
				loans[key] = state.Loans
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.Copy(spent, b.spent) // entries written meanwhile are newer
	maps.Copy(loans, b.loans)
	b.spent, b.loans, b.known = spent, loans, true
	b.version++
	return nil
}

// reserve calls decide with the allowance that other workloads leave, and stores the returned total of its own
// workload. Workloads decide concurrently; one that spends while another did decides again, so that two cannot spend
// the same budget. decide must have no side effects. Its argument is nil without a budget.
func (b *Accounts) reserve(of memory.WorkloadRef, decide func(*rollout.Allowance) []rollout.Spent) {
	if !b.Limit.Bounds() {
		decide(nil)
		return
	}
	own := accountOf(of)
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
	b.mu.Lock() // too many conflicts: decide under the lock
	defer b.mu.Unlock()
	b.commit(own, decide(b.allowance(own)))
}

// allowance returns the budget that other workloads leave. The caller holds mu.
func (b *Accounts) allowance(own client.ObjectKey) *rollout.Allowance {
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

// same reports whether the spending of a workload is unchanged. The caller holds mu.
func (b *Accounts) same(own client.ObjectKey, spent []rollout.Spent) bool {
	return slices.EqualFunc(rollout.Recent(b.spent[own], b.Clock.Now()), spent, func(x, y rollout.Spent) bool {
		at := x.At.Equal(y.At)
		x.At, y.At = time.Time{}, time.Time{}
		return at && x == y
	})
}

// commit stores the spending of a workload. The caller holds mu.
func (b *Accounts) commit(own client.ObjectKey, spent []rollout.Spent) {
	if !b.same(own, spent) {
		b.version++
	}
	b.spent = noted(b.spent, own, slices.Clone(spent), b.known)
}

// used returns the spending of all workloads within the last hour.
func (b *Accounts) used() (bytes memory.Bytes, pods int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, spent := range b.spent {
		moreBytes, morePods := rollout.SumOf(rollout.Recent(spent, b.Clock.Now()))
		bytes, pods = bytes.Plus(moreBytes), pods+morePods
	}
	return bytes, pods
}

// Register adds the metrics of the budget: its bounds, if any, and its use.
func (b *Accounts) Register(r prometheus.Registerer) {
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

func (b *Accounts) lent(of memory.WorkloadRef, loans []rescue.Loan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loans = noted(b.loans, accountOf(of), loans, b.known)
}

// lend calls decide with the memory on loan on a node and its number of loans within the last hour, and stores the
// returned loans of the workload before they are written. Alarms are decided one at a time, so that two cannot take the
// same memory. It returns false without a decision until the checkpoints were read.
func (b *Accounts) lend(
	of memory.WorkloadRef, node string, decide func(onNode memory.Bytes, lastHour int) []rescue.Loan,
) (known bool) {
	b.lending.Lock()
	defer b.lending.Unlock()
	onNode, lastHour, known := b.loansOn(node)
	if known {
		b.lent(of, decide(onNode, lastHour))
	}
	return known
}

// loansOn returns the memory on loan on a node, and its number of loans within the last hour, returned or not.
func (b *Accounts) loansOn(node string) (onNode memory.Bytes, lastHour int, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.Clock.Now()
	for _, loans := range b.loans {
		for i := range loans {
			l := &loans[i]
			if l.Node != node {
				continue
			}
			if l.Returned.IsZero() {
				onNode = onNode.Plus(l.Extra())
			}
			if now.Sub(l.At) < rescue.Hold {
				lastHour++
			}
		}
	}
	return onNode, lastHour, b.known
}

func accountOf(w memory.WorkloadRef) client.ObjectKey {
	return client.ObjectKey{Namespace: w.Namespace, Name: policy.RecordName(w)}
}

// noted sets the entries of one workload. Until the checkpoints were read it also keeps an empty list, which replaces
// older entries.
func noted[T any](all map[client.ObjectKey][]T, of client.ObjectKey, entries []T, known bool) map[client.ObjectKey][]T {
	if all == nil {
		all = map[client.ObjectKey][]T{}
	}
	if all[of] = entries; len(entries) == 0 && known {
		delete(all, of)
	}
	return all
}
