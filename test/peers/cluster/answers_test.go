// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/memory"
)

// answers are what memfit has decided so far, as the API server sends it to all that watch MemoryRecommendations. A
// decision is a status with containers[].decision: what memfit would do about a workload, and be it to hold. It is
// measured when evidence.samples is above 0, too.
type answers struct {
	mu                sync.Mutex
	decided, measured map[types.NamespacedName]bool
	// first and firstMeasured are when the first of each came, last and lastMeasured the newest.
	first, firstMeasured, last, lastMeasured time.Time
	// awaited are workloads that were rolled out, and told when the status of each knew.
	awaited map[types.NamespacedName]expected
	told    map[types.NamespacedName]time.Time
	failed  error
}

// expected is what a status reports that knows a rollout. New pods have another limit, which the status takes from the
// newest; and as they were all there before the first old one went, it governs their number only when it knows that
// all old ones are gone, and with that all new ones.
type expected struct {
	limit    memory.Bytes
	governed int
}

// follow watches MemoryRecommendations until ctx ends.
func (w *world) follow(ctx context.Context) (*answers, error) {
	a := &answers{
		decided: map[types.NamespacedName]bool{}, measured: map[types.NamespacedName]bool{},
		awaited: map[types.NamespacedName]expected{}, told: map[types.NamespacedName]time.Time{},
	}
	news, err := w.client.Watch(ctx, &v1alpha1.MemoryRecommendationList{})
	if err != nil {
		return nil, fmt.Errorf("watching MemoryRecommendations: %w", err)
	}
	go func() {
		for event := range news.ResultChan() {
			a.take(event, time.Now())
		}
		if ctx.Err() == nil {
			a.fail(errors.New("the watch of MemoryRecommendations ended"))
		}
	}()
	return a, nil
}

func (a *answers) take(event watch.Event, now time.Time) {
	rec, ok := event.Object.(*v1alpha1.MemoryRecommendation)
	if !ok {
		a.fail(fmt.Errorf("watching MemoryRecommendations: %s %v", event.Type, event.Object))
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(rec.Status.Containers) == 0 || rec.Status.Containers[0].Decision == "" {
		return
	}
	c, key := &rec.Status.Containers[0], client.ObjectKeyFromObject(rec)
	if !a.decided[key] {
		a.decided[key], a.last = true, now
		if a.first.IsZero() {
			a.first = now
		}
	}
	if c.Evidence.Samples > 0 && !a.measured[key] {
		a.measured[key], a.lastMeasured = true, now
		if a.firstMeasured.IsZero() {
			a.firstMeasured = now
		}
	}
	want, awaited := a.awaited[key]
	if !awaited || c.Current.Limit == nil || rec.Status.Coverage == nil {
		return
	}
	if memory.FromQuantity(*c.Current.Limit) == want.limit && int(rec.Status.Coverage.Governed) == want.governed {
		a.told[key] = now
		delete(a.awaited, key)
	}
}

func (a *answers) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = errors.Join(a.failed, err)
}

// await begins to look for a status that knows the rollout of a workload.
func (a *answers) await(key types.NamespacedName, want expected) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.awaited[key] = want
}

// counts are how many workloads have a decision, a measured one, and how many rollouts no status knows yet.
func (a *answers) counts() (decided, measured, awaited int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.decided), len(a.measured), len(a.awaited), a.failed
}

// times are when the answers came.
func (a *answers) times() (first, last, firstMeasured, lastMeasured time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.first, a.last, a.firstMeasured, a.lastMeasured
}
