// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

const (
	// backfillReaders limits concurrent reads, because the monitoring system has other users.
	backfillReaders = 2
	// backfillTries limits the attempts to read a history. The pause between attempts is backfillPause, doubled each time.
	// After the last attempt, memfit uses only its own samples until its next start.
	backfillTries = 4
	backfillPause = time.Minute
)

// HistoryBackfill reads the usage of each workload before memfit observed it, once, in the background.
type HistoryBackfill struct {
	// Read calls take with the samples of a workload between two times, oldest first.
	Read  func(ctx context.Context, w memory.WorkloadRef, from, to time.Time, take func(memory.Sample)) error
	Name  string        // of the source, as status shows it: "prometheus"
	Span  time.Duration // of the history
	Clock clock.WithTicker
	// Queue queues a workload when its history has arrived. nil: queue nothing.
	Queue interface{ Enqueue(...memory.WorkloadRef) }

	once      sync.Once
	waiting   workqueue.TypedRateLimitingInterface[memory.WorkloadRef]
	mu        sync.Mutex
	requested map[memory.WorkloadRef]*earlierUsage // until they are forgotten
}

// earlierUsage is the history of one workload, once read.
type earlierUsage struct {
	done       bool
	containers map[string]*history.Container
}

// Source returns the name of the source.
func (p *HistoryBackfill) Source() string { return p.Name }

// Start reads requested histories until ctx ends, on the leader.
func (p *HistoryBackfill) Start(ctx context.Context) error {
	defer context.AfterFunc(ctx, p.queue().ShutDown)()
	var wg sync.WaitGroup
	for range backfillReaders {
		wg.Go(func() {
			for p.readNext(ctx) {
			}
		})
	}
	wg.Wait()
	return nil
}

func (p *HistoryBackfill) queue() workqueue.TypedRateLimitingInterface[memory.WorkloadRef] {
	p.once.Do(func() {
		p.waiting = workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[memory.WorkloadRef](backfillPause, backfillPause<<backfillTries),
			workqueue.TypedRateLimitingQueueConfig[memory.WorkloadRef]{Clock: p.Clock},
		)
	})
	return p.waiting
}

// Get requests the history of a workload, by container, and returns false until it was read. A history that cannot be
// read is empty. It is kept until [HistoryBackfill.Forget].
func (p *HistoryBackfill) Get(w memory.WorkloadRef) (map[string]*history.Container, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, found := p.requested[w]; found {
		return a.containers, a.done
	}
	if p.requested == nil {
		p.requested = map[memory.WorkloadRef]*earlierUsage{}
	}
	p.requested[w] = &earlierUsage{}
	p.queue().Add(w)
	return nil, false
}

// Forget drops a history that was used, or whose workload was deleted.
func (p *HistoryBackfill) Forget(w memory.WorkloadRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.requested, w)
	p.queue().Forget(w)
}

// readNext waits for a request and reads the history. It returns false after the queue has shut down.
func (p *HistoryBackfill) readNext(ctx context.Context) bool {
	w, ended := p.queue().Get()
	if ended {
		return false
	}
	defer p.queue().Done(w)
	a := p.requestOf(w)
	if a == nil {
		return true
	}
	log := logf.FromContext(ctx).WithValues("workload", w.String(), "source", p.Name)
	containers, err := p.read(ctx, w)
	try := p.queue().NumRequeues(w) + 1
	switch {
	case p.requestOf(w) != a: // forgotten meanwhile
		return true
	case err == nil:
		log.Info("Read a workload's earlier usage", "containers", len(containers))
	default:
		log.Info("Could not read a workload's earlier usage", "try", try, "tries", backfillTries, "reason", err.Error())
		if try < backfillTries {
			p.queue().AddRateLimited(w)
			return true
		}
	}
	p.mu.Lock()
	a.done, a.containers = true, containers
	p.mu.Unlock()
	if p.Queue != nil {
		p.Queue.Enqueue(w)
	}
	return true
}

func (p *HistoryBackfill) requestOf(w memory.WorkloadRef) *earlierUsage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requested[w]
}

func (p *HistoryBackfill) read(ctx context.Context, w memory.WorkloadRef) (map[string]*history.Container, error) {
	now, containers := p.Clock.Now(), map[string]*history.Container{}
	err := p.Read(ctx, w, now.Add(-p.Span), now, func(s memory.Sample) {
		name := s.Container.Container
		if containers[name] == nil {
			containers[name] = history.New()
		}
		containers[name].Add(s, 0) // past limits are unknown
	})
	if err != nil {
		return nil, err
	}
	return containers, nil
}
