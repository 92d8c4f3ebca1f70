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
	// backfillReaders is the number of workloads whose past is read concurrently: a monitoring system has other users.
	backfillReaders = 2
	// backfillTries is how often a past that cannot be read is asked for, backfillPause apart, twice as long each time.
	// Then memfit lives with what it sees itself, until its next start.
	backfillTries = 4
	backfillPause = time.Minute
)

// HistoryBackfill reads what workloads used before memfit saw them, once each, in the background.
type HistoryBackfill struct {
	// Read hands over the samples of a workload between two times, oldest first.
	Read func(ctx context.Context, w memory.WorkloadRef, from, to time.Time, take func(memory.Sample)) error
	// Name is the source, as status shows it: "prometheus".
	Name string
	// Span is how far back it goes.
	Span time.Duration
	// Clock is the time.
	Clock clock.WithTicker
	// Queue queues a workload when its past has arrived. Nil: nothing is queued.
	Queue interface{ Enqueue(...memory.WorkloadRef) }

	once    sync.Once
	waiting workqueue.TypedRateLimitingInterface[memory.WorkloadRef]
	mu      sync.Mutex
	asked   map[memory.WorkloadRef]*pastOf // until they are forgotten
}

// pastOf is one workload's past, once it was read.
type pastOf struct {
	done       bool
	containers map[string]*history.Container
}

// Source is the name of the source.
func (p *HistoryBackfill) Source() string { return p.Name }

// Start reads what is asked for until ctx ends, on the leader.
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

// Get asks for a workload's past, and hands it over when it is there, until [HistoryBackfill.Forget]. A past that
// cannot be read is empty.
func (p *HistoryBackfill) Get(w memory.WorkloadRef) (map[string]*history.Container, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, found := p.asked[w]; found {
		return a.containers, a.done
	}
	if p.asked == nil {
		p.asked = map[memory.WorkloadRef]*pastOf{}
	}
	p.asked[w] = &pastOf{}
	p.queue().Add(w)
	return nil, false
}

// Forget drops a past that was taken over, or whose workload is gone: it is not read any more.
func (p *HistoryBackfill) Forget(w memory.WorkloadRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.asked, w)
	p.queue().Forget(w)
}

// readNext waits for a workload and reads its past, and returns false when there will be none.
func (p *HistoryBackfill) readNext(ctx context.Context) bool {
	w, ended := p.queue().Get()
	if ended {
		return false
	}
	defer p.queue().Done(w)
	a := p.askedFor(w)
	if a == nil {
		return true
	}
	log := logf.FromContext(ctx).WithValues("workload", w.String(), "source", p.Name)
	containers, err := p.read(ctx, w)
	try := p.queue().NumRequeues(w) + 1
	switch {
	case p.askedFor(w) != a: // forgotten meanwhile
		return true
	case err == nil:
		log.Info("Read what a workload used before", "containers", len(containers))
	default:
		log.Info("Could not read what a workload used before", "try", try, "of", backfillTries, "reason", err.Error())
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

func (p *HistoryBackfill) askedFor(w memory.WorkloadRef) *pastOf {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[w]
}

// read makes histories of a workload's past.
func (p *HistoryBackfill) read(ctx context.Context, w memory.WorkloadRef) (map[string]*history.Container, error) {
	now, containers := p.Clock.Now(), map[string]*history.Container{}
	err := p.Read(ctx, w, now.Add(-p.Span), now, func(s memory.Sample) {
		h, found := containers[s.Container.Container]
		if !found {
			h = history.New()
			containers[s.Container.Container] = h
		}
		h.Add(s, 0) // the limits of then are not known
	})
	if err != nil {
		return nil, err
	}
	return containers, nil
}
