// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"slices"
	"sync"
	"time"

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
	Clock clock.Clock
	// Queue queues a workload when its past has arrived. Nil: nothing is queued.
	Queue interface{ Enqueue(...memory.WorkloadRef) }

	mu    sync.Mutex
	asked map[memory.WorkloadRef]*pastOf
	queue []*pastOf
	ready chan struct{}
}

// pastOf is one workload's past on its way. It is in asked until it is forgotten, and in queue until it is read.
type pastOf struct {
	workload   memory.WorkloadRef
	done       bool
	containers map[string]*history.Container
}

// Source is the name of the source.
func (p *HistoryBackfill) Source() string { return p.Name }

// NeedLeaderElection is true: only the leader remembers.
func (p *HistoryBackfill) NeedLeaderElection() bool { return true }

// Start reads what is asked for until ctx ends.
func (p *HistoryBackfill) Start(ctx context.Context) error {
	var wg sync.WaitGroup
	for range backfillReaders {
		wg.Go(func() {
			for ctx.Err() == nil {
				a, found := p.next()
				if !found {
					select {
					case <-ctx.Done():
					case <-p.wake():
					}
					continue
				}
				p.finish(a, p.read(ctx, a))
			}
		})
	}
	wg.Wait()
	return nil
}

// Get asks for a workload's past, and hands it over when it is there, until [HistoryBackfill.Forget]. A past that
// cannot be read is empty.
func (p *HistoryBackfill) Get(w memory.WorkloadRef) (map[string]*history.Container, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == nil {
		p.asked = map[memory.WorkloadRef]*pastOf{}
	}
	a, found := p.asked[w]
	switch {
	case !found:
		a = &pastOf{workload: w}
		p.asked[w] = a
		p.queue = append(p.queue, a)
		p.signal()
		return nil, false
	case !a.done:
		return nil, false
	}
	return a.containers, true
}

// Forget drops a past that was taken over, or whose workload is gone: it is not read any more.
func (p *HistoryBackfill) Forget(w memory.WorkloadRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, found := p.asked[w]
	if !found {
		return
	}
	delete(p.asked, w)
	if i := slices.Index(p.queue, a); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
}

func (p *HistoryBackfill) next() (*pastOf, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return nil, false
	}
	a := p.queue[0]
	p.queue = slices.Delete(p.queue, 0, 1)
	if len(p.queue) > 0 {
		p.signal()
	}
	return a, true
}

// wanted reports whether a past was not forgotten since it was asked for.
func (p *HistoryBackfill) wanted(a *pastOf) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[a.workload] == a
}

func (p *HistoryBackfill) finish(a *pastOf, containers map[string]*history.Container) {
	if !p.wanted(a) {
		return
	}
	p.mu.Lock()
	a.done, a.containers = true, containers
	p.mu.Unlock()
	if p.Queue != nil {
		p.Queue.Enqueue(a.workload)
	}
}

// read makes histories of a workload's past. It fails in silence but for the log: what memfit sees itself is enough to
// go on.
func (p *HistoryBackfill) read(ctx context.Context, a *pastOf) map[string]*history.Container {
	w := a.workload
	log := logf.FromContext(ctx).WithValues("workload", w.String(), "source", p.Name)
	pause := backfillPause
	for try := 1; ; try++ {
		now := p.Clock.Now()
		containers, samples := map[string]*history.Container{}, 0
		err := p.Read(ctx, w, now.Add(-p.Span), now, func(s memory.Sample) {
			h, found := containers[s.Container.Container]
			if !found {
				h = history.New()
				containers[s.Container.Container] = h
			}
			h.Add(s, 0) // the limits of then are not known
			samples++
		})
		if err == nil {
			log.Info("Read what a workload used before", "samples", samples, "containers", len(containers))
			return containers
		}
		log.Info("Could not read what a workload used before", "try", try, "of", backfillTries, "reason", err.Error())
		if try == backfillTries {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.Clock.After(pause):
			pause *= 2
		}
		if !p.wanted(a) {
			return nil
		}
	}
}

// wake is what signal sends on. It holds one signal, so that none is lost between reading the queue and the wait.
func (p *HistoryBackfill) wake() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.channel()
}

func (p *HistoryBackfill) channel() chan struct{} {
	if p.ready == nil {
		p.ready = make(chan struct{}, 1)
	}
	return p.ready
}

func (p *HistoryBackfill) signal() {
	select {
	case p.channel() <- struct{}{}:
	default:
	}
}
