// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"sync"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/rollout"
)

func podRef(name string) memory.WorkloadRef {
	return memory.WorkloadRef{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: name}
}

// TestWorkloadsDecideAtTheSameTime: with a budget, eight workers were one, because a decision held the lock.
func TestWorkloadsDecideAtTheSameTime(t *testing.T) {
	b := &ClusterTotals{Budget: rollout.ChangeBudget{Pods: 1}, Clock: clocktesting.NewFakePassiveClock(start), known: true}
	decided := 0
	b.reserve(podRef("a"), func(*rollout.Allowance) []rollout.Spent {
		b.reserve(podRef("b"), func(*rollout.Allowance) []rollout.Spent { // would wait forever
			decided++
			return nil
		})
		return nil
	})
	if decided != 1 {
		t.Errorf("the other workload decided %d times, want once", decided)
	}
}

// TestNoBudgetIsSpentTwice: whatever order workloads decide in.
func TestNoBudgetIsSpentTwice(t *testing.T) {
	const pods = 5
	b := &ClusterTotals{
		Budget: rollout.ChangeBudget{Pods: pods}, Clock: clocktesting.NewFakePassiveClock(start), known: true,
	}
	takes := func() func(*rollout.Allowance) []rollout.Spent {
		return func(a *rollout.Allowance) []rollout.Spent {
			if _, taken := rollout.SumOf(a.Others); taken >= pods {
				return nil
			}
			return []rollout.Spent{{At: start, UID: "pod", Pods: 1}}
		}
	}
	b.reserve(podRef("outer"), func(a *rollout.Allowance) []rollout.Spent {
		spent := takes()(a) // decided before the others, committed after them
		if len(a.Others) == 0 {
			for i := range pods {
				name := fmt.Sprintf("inner-%d", i)
				b.reserve(podRef(name), takes())
			}
		}
		return spent
	})
	if _, taken := b.used(); taken != pods {
		t.Errorf("%d pods were taken, want %d", taken, pods)
	}

	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() { b.reserve(podRef(fmt.Sprintf("more-%d", i)), takes()) })
	}
	all.Wait()
	if _, taken := b.used(); taken != pods {
		t.Errorf("%d pods were taken by many at once, want %d", taken, pods)
	}
}
