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

// ClusterTotals holds the totals of all workloads: changes of running pods, which the change budget limits, and memory
// on loan. Each workload's part is stored in its MemoryCheckpoint; [ClusterTotals.Start] reads these when memfit
// becomes the leader. Before that, the budget allows no change, and memfit lends nothing. It is safe for concurrent
// use; create it with Budget, APIReader and Clock.
type ClusterTotals struct {
	// Budget is the administrator's budget. The zero value is unlimited.
	Budget    rollout.ChangeBudget
	APIReader client.Reader // of the API server
	Clock     clock.PassiveClock

	// lending is held while a loan is decided. It is locked before mu.
	lending sync.Mutex

	mu      sync.Mutex
	known   bool // all checkpoints were read
	spent   map[client.ObjectKey][]rollout.Spent
	loans   map[client.ObjectKey][]rescue.Loan
	version int // counts changes of spent, which affect the allowance of other workloads
}

const (
	checkpointPage = 500         // in one request: some 2 MB for workloads of one container
	retryInterval  = time.Second // after the checkpoints could not be read
	reserveTries   = 3           // attempts to decide without the lock; then a workload decides under the lock
)

// Start reads all checkpoints, with retries, on the leader.
func (t *ClusterTotals) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("accounts")
	_ = wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		err := t.Load(logf.IntoContext(ctx, log))
		if err != nil && ctx.Err() == nil {
			log.Error(err, "Could not read all checkpoints; running pods remain unchanged", "retryAfter",
				retryInterval.String())
		}
		return err == nil, nil
	})
	return nil
}

// Load reads all checkpoints. It ignores unreadable ones: memfit does not change their workloads.
func (t *ClusterTotals) Load(ctx context.Context) error {
	spent, loans := map[client.ObjectKey][]rollout.Spent{}, map[client.ObjectKey][]rescue.Loan{}
	page := &v1alpha1.MemoryCheckpointList{}
	for more := true; more; more = page.Continue != "" {
		if err := t.APIReader.List(ctx, page, client.Limit(checkpointPage), client.Continue(page.Continue)); err != nil {
			return fmt.Errorf("listing MemoryCheckpoints: %w", err)
		}
		for i := range page.Items {
			key := client.ObjectKeyFromObject(&page.Items[i])
			state, err := workload.RolloutIn(&page.Items[i])
			if err != nil {
				logf.FromContext(ctx).Error(err, "Ignored an unreadable checkpoint in the cluster's totals", "checkpoint", key)
			}
			if len(state.Spent) > 0 {
				spent[key] = state.Spent
			}
			if len(state.Loans) > 0 {
				loans[key] = state.Loans
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(spent, t.spent) // entries written meanwhile are newer
	maps.Copy(loans, t.loans)
	t.spent, t.loans, t.known = spent, loans, true
	t.version++
	return nil
}

// reserve calls decide with the budget that other workloads leave, and stores the result of decide as the spending of
// this workload. Workloads decide concurrently: if another workload has spent meanwhile, reserve calls decide again, so
// that two workloads cannot spend the same budget. decide must have no side effects. Its argument is nil without a
// budget.
func (t *ClusterTotals) reserve(of memory.WorkloadRef, decide func(*rollout.Allowance) []rollout.Spent) {
	if !t.Budget.Limited() {
		decide(nil)
		return
	}
	own := totalsKey(of)
	for range reserveTries {
		t.mu.Lock()
		a, version := t.allowance(own), t.version
		t.mu.Unlock()
		spent := decide(a)
		t.mu.Lock()
		if version == t.version || t.same(own, spent) {
			t.commit(own, spent)
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
	}
	t.mu.Lock() // too many conflicts: decide under the lock
	defer t.mu.Unlock()
	t.commit(own, decide(t.allowance(own)))
}

// allowance returns the budget that other workloads leave. The caller holds mu.
func (t *ClusterTotals) allowance(own client.ObjectKey) *rollout.Allowance {
	now := t.Clock.Now()
	a := &rollout.Allowance{Budget: t.Budget, Unknown: !t.known}
	for key, spent := range t.spent {
		switch recent := rollout.Recent(spent, now); {
		case len(recent) == 0 && t.known:
			delete(t.spent, key)
		case key != own:
			a.Others = append(a.Others, recent...)
		}
	}
	return a
}

// same reports whether the spending of a workload is unchanged. The caller holds mu.
func (t *ClusterTotals) same(own client.ObjectKey, spent []rollout.Spent) bool {
	return slices.EqualFunc(rollout.Recent(t.spent[own], t.Clock.Now()), spent, func(x, y rollout.Spent) bool {
		at := x.At.Equal(y.At)
		x.At, y.At = time.Time{}, time.Time{}
		return at && x == y
	})
}

// commit stores the spending of a workload. The caller holds mu.
func (t *ClusterTotals) commit(own client.ObjectKey, spent []rollout.Spent) {
	if !t.same(own, spent) {
		t.version++
	}
	t.spent = withEntries(t.spent, own, slices.Clone(spent), t.known)
}

// used returns the spending of all workloads within the last hour.
func (t *ClusterTotals) used() (bytes memory.Bytes, pods int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, spent := range t.spent {
		moreBytes, morePods := rollout.SumOf(rollout.Recent(spent, t.Clock.Now()))
		bytes, pods = bytes.Plus(moreBytes), pods+morePods
	}
	return bytes, pods
}

// Register registers the metrics of the budget: its limits, and what is used.
func (t *ClusterTotals) Register(r prometheus.Registerer) {
	gauge := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge("memfit_change_budget_bytes", "Limit of the total increase of running pods' sizes within an hour; 0: no limit.",
		func() float64 { return float64(t.Budget.Bytes) })
	gauge("memfit_change_budget_pods", "Limit of running pods evicted or restarted within an hour; 0: no limit.",
		func() float64 { return float64(t.Budget.Pods) })
	gauge("memfit_change_budget_used_bytes", "Total increase of running pods' sizes within the last hour.",
		func() float64 { bytes, _ := t.used(); return float64(bytes) })
	gauge("memfit_change_budget_used_pods", "Number of running pods evicted or restarted within the last hour.",
		func() float64 { _, pods := t.used(); return float64(pods) })
}

// setLoans stores the loans of a workload.
func (t *ClusterTotals) setLoans(of memory.WorkloadRef, loans []rescue.Loan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loans = withEntries(t.loans, totalsKey(of), loans, t.known)
}

// lend calls decide with the memory on loan on a node and its number of loans within the last hour, and stores the
// workload's loans that decide returns. It calls decide for one alarm at a time, so that two loans cannot use the same
// memory. It does not call decide and returns false until all checkpoints were read.
func (t *ClusterTotals) lend(
	of memory.WorkloadRef, node string, decide func(onNode memory.Bytes, lastHour int) []rescue.Loan,
) (known bool) {
	t.lending.Lock()
	defer t.lending.Unlock()
	onNode, lastHour, known := t.loansOn(node)
	if known {
		t.setLoans(of, decide(onNode, lastHour))
	}
	return known
}

// loansOn returns the memory on loan on a node, and its number of loans within the last hour, including ended loans.
func (t *ClusterTotals) loansOn(node string) (onNode memory.Bytes, lastHour int, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.Clock.Now()
	for _, loans := range t.loans {
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
	return onNode, lastHour, t.known
}

func totalsKey(w memory.WorkloadRef) client.ObjectKey {
	return client.ObjectKey{Namespace: w.Namespace, Name: policy.RecordName(w)}
}

// withEntries sets the entries of one workload. An empty list removes them; but until all checkpoints were read it is
// kept, because it replaces the entries in the checkpoint.
func withEntries[T any](
	all map[client.ObjectKey][]T, of client.ObjectKey, entries []T, known bool,
) map[client.ObjectKey][]T {
	if all == nil {
		all = map[client.ObjectKey][]T{}
	}
	if all[of] = entries; len(entries) == 0 && known {
		delete(all, of)
	}
	return all
}
