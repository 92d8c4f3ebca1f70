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

// statuses records the decisions in the statuses of MemoryRecommendations, from a watch. A status with
// containers[].decision has a decision, which may be to hold; it is measured when evidence.samples is above 0.
type statuses struct {
	mu                sync.Mutex
	decided, measured map[types.NamespacedName]bool
	// Times of the first and the last decision, and of the first and the last measured one.
	first, firstMeasured, last, lastMeasured time.Time
	// awaited has the statuses expected after rollouts; observed the times at which they arrived.
	awaited  map[types.NamespacedName]expected
	observed map[types.NamespacedName]time.Time
	failed   error
}

// expected is the status after a rollout: the limit of the new pods, which a status reads from the newest pod, and the
// number of governed pods. The old pods are deleted after all new ones were created, so that number is reached only
// when the status is based on exactly the new pods.
type expected struct {
	limit    memory.Bytes
	governed int
}

// watchStatuses watches MemoryRecommendations until ctx ends.
func (w *world) watchStatuses(ctx context.Context) (*statuses, error) {
	a := &statuses{
		decided: map[types.NamespacedName]bool{}, measured: map[types.NamespacedName]bool{},
		awaited: map[types.NamespacedName]expected{}, observed: map[types.NamespacedName]time.Time{},
	}
	watch, err := w.client.Watch(ctx, &v1alpha1.MemoryRecommendationList{})
	if err != nil {
		return nil, fmt.Errorf("watching MemoryRecommendations: %w", err)
	}
	go func() {
		for event := range watch.ResultChan() {
			a.handle(event, time.Now())
		}
		if ctx.Err() == nil {
			a.fail(errors.New("the watch of MemoryRecommendations ended"))
		}
	}()
	return a, nil
}

func (a *statuses) handle(event watch.Event, now time.Time) {
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
		a.observed[key] = now
		delete(a.awaited, key)
	}
}

func (a *statuses) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = errors.Join(a.failed, err)
}

// expect registers the status that is expected after the rollout of a workload.
func (a *statuses) expect(key types.NamespacedName, want expected) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.awaited[key] = want
}

// counts returns the numbers of workloads with a decision, with a measured one, and with an awaited status.
func (a *statuses) counts() (decided, measured, awaited int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.decided), len(a.measured), len(a.awaited), a.failed
}

// times returns the times of the first and last decision, and of the first and last measured one.
func (a *statuses) times() (first, last, firstMeasured, lastMeasured time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.first, a.last, a.firstMeasured, a.lastMeasured
}
