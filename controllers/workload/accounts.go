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

// Accounts keep account of what all workloads take of the cluster together: what is done to running pods, which the
// change budget bounds, and the memory that they have on loan. What a workload takes is written to its MemoryCheckpoint
// first; [Accounts.Start] adds that up when memfit becomes the leader. Until then no change is allowed that the budget
// has to pay for, and nothing is lent. Safe for concurrent use; create it with Limit, APIReader and Clock.
type Accounts struct {
	// Limit is what the cluster's administrator allows. The zero value allows everything.
	Limit rollout.ChangeBudget
	// APIReader reads the checkpoints from the API server.
	APIReader client.Reader
	// Clock tells the time.
	Clock clock.PassiveClock

	// lending is held while a loan is decided. It is locked before mu.
	lending sync.Mutex

	mu    sync.Mutex
	known bool
	spent map[client.ObjectKey][]rollout.Spent
	loans map[client.ObjectKey][]rescue.Loan
	// version counts the changes of spent that leave others another allowance.
	version int
}

const (
	// checkpointPage is how many checkpoints are read at once: some 2 MB for workloads of one container.
	checkpointPage = 500
	// readAgain is when they are read again after the API server did not answer.
	readAgain = time.Second
	// reserveTries is how often a workload decides beside others before it decides while they wait.
	reserveTries = 3
)

// Start reads what was taken before, and tries until it has, on the leader.
func (b *Accounts) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("accounts")
	_ = wait.PollUntilContextCancel(ctx, readAgain, true, func(ctx context.Context) (bool, error) {
		err := b.Recall(logf.IntoContext(ctx, log))
		if err != nil && ctx.Err() == nil {
			log.Error(err, "Changes and loans wait: what was taken before is not known", "again", readAgain.String())
		}
		return err == nil, nil
	})
	return nil
}

// Recall reads what was taken from all checkpoints. One that cannot be decoded counts nothing: its workload is not
// changed until its checkpoint is fixed.
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
				logf.FromContext(ctx).Error(err, "Not counted in the change budget and in loans", "checkpoint", key)
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
	maps.Copy(spent, b.spent) // what was written meanwhile is newer
	maps.Copy(loans, b.loans)
	b.spent, b.loans, b.known = spent, loans, true
	b.version++
	return nil
}

// reserve calls decide with what other workloads have spent, and keeps what it returns: all that its own workload has
// spent. Workloads decide at the same time; one that spends something while another did decides again, so that two
// cannot spend the same budget. decide must be free of side effects. Without a budget it is given nil.
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
	b.mu.Lock() // many workloads spend: in turn
	defer b.mu.Unlock()
	b.commit(own, decide(b.allowance(own)))
}

// allowance is what other workloads leave. The caller holds mu.
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

// same reports whether a workload has spent nothing else than before. The caller holds mu.
func (b *Accounts) same(own client.ObjectKey, spent []rollout.Spent) bool {
	return slices.EqualFunc(rollout.Recent(b.spent[own], b.Clock.Now()), spent, func(x, y rollout.Spent) bool {
		at := x.At.Equal(y.At)
		x.At, y.At = time.Time{}, time.Time{}
		return at && x == y
	})
}

// commit keeps what a workload has spent. The caller holds mu.
func (b *Accounts) commit(own client.ObjectKey, spent []rollout.Spent) {
	if !b.same(own, spent) {
		b.version++
	}
	b.spent = noted(b.spent, own, slices.Clone(spent), b.known)
}

// used is what all workloads took within the last hour.
func (b *Accounts) used() (bytes memory.Bytes, pods int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, spent := range b.spent {
		moreBytes, morePods := rollout.SumOf(rollout.Recent(spent, b.Clock.Now()))
		bytes, pods = bytes.Plus(moreBytes), pods+morePods
	}
	return bytes, pods
}

// Register adds the metrics of the budget: its bounds, where there are any, and what was taken.
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

// lent keeps the loans of a workload.
func (b *Accounts) lent(of memory.WorkloadRef, loans []rescue.Loan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loans = noted(b.loans, accountOf(of), loans, b.known)
}

// lend calls decide with what the pods of a node have on loan and how many loans were given there within the last hour,
// and keeps the workload's loans that it returns, before they are written: alarms are decided in turn, so that two
// cannot have the same room. It reports false, and decides nothing, until the checkpoints were read.
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

// loansOn is what pods of a node have on loan, and how many loans were given there within the last hour, returned or
// not. Known is false until the checkpoints were read.
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

// noted is all with the entries of one workload; none are kept, too, until the checkpoints were read, where they
// replace older ones.
func noted[T any](all map[client.ObjectKey][]T, of client.ObjectKey, entries []T, known bool) map[client.ObjectKey][]T {
	if all == nil {
		all = map[client.ObjectKey][]T{}
	}
	if all[of] = entries; len(entries) == 0 && known {
		delete(all, of)
	}
	return all
}
