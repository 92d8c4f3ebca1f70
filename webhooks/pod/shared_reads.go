// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// readTimeout is how long an admission waits for a read, including the time until the read begins. With twice
	// [lookupTimeout], it is below the webhook's timeout of 2 s. 500 ms was too short on two cores with a load of 27.
	readTimeout = time.Second
	// readInterval is the minimum time between the beginnings of two reads with the same key, so that there are at most
	// 20 a second for any number of new pods. Controllers create at most as many with the default settings of
	// client-go and Argo Workflows (20 a second) and of Tekton (5).
	readInterval = 50 * time.Millisecond
	// maxReads bounds concurrent reads over all keys.
	maxReads = 4
)

// readKey identifies a read: equal keys have equal results.
type readKey struct{ namespace, selector string }

// sharedReads lets concurrent callers share a read of the API server. A caller never shares a read that began before
// its call, because that read may lack the newest pods. The zero value is ready.
type sharedReads struct {
	mu     sync.Mutex
	queues map[readKey]*readQueue
	slots  chan struct{} // with capacity maxReads
}

// readQueue has the next read with one key, if any caller waits for it. The queue exists while the read before it runs,
// or has begun less than [readInterval] ago.
type readQueue struct{ next *sharedRead }

// sharedRead is one read, for all callers that wait for it.
type sharedRead struct {
	do   func(ctx context.Context) error
	done chan struct{}
	err  error // set before done is closed
}

// await runs do, or waits for a concurrent caller's do with the same key that has not begun, and returns its error. It
// returns an error after [readTimeout].
func (s *sharedReads) await(ctx context.Context, key readKey, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	read := s.join(context.WithoutCancel(ctx), key, do)
	select {
	case <-read.done:
		return read.err
	case <-ctx.Done():
		return fmt.Errorf("waiting for a read of the API server: %w", ctx.Err())
	}
}

// join returns the next read with the key, and makes sure that it runs.
func (s *sharedReads) join(ctx context.Context, key readKey, do func(context.Context) error) *sharedRead {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues == nil {
		s.queues, s.slots = map[readKey]*readQueue{}, make(chan struct{}, maxReads)
	}
	q, found := s.queues[key]
	if !found {
		q = &readQueue{}
		s.queues[key] = q
	}
	if q.next == nil {
		q.next = &sharedRead{do: do, done: make(chan struct{})}
	}
	next := q.next
	if !found {
		go s.work(ctx, key, q)
	}
	return next
}

// work runs the reads of a queue, one after another, until no caller waits.
func (s *sharedReads) work(ctx context.Context, key readKey, q *readQueue) {
	for s.more(key, q) {
		s.slots <- struct{}{}
		interval := time.NewTimer(readInterval)
		s.takeNext(q).run(ctx)
		<-s.slots
		<-interval.C
	}
}

// more reports whether there is a next read; if not, it drops the queue.
func (s *sharedReads) more(key readKey, q *readQueue) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.next == nil {
		delete(s.queues, key)
	}
	return q.next != nil
}

// takeNext takes the next read from the queue: later callers wait for another one.
func (s *sharedReads) takeNext(q *readQueue) *sharedRead {
	s.mu.Lock()
	defer s.mu.Unlock()
	read := q.next
	q.next = nil
	return read
}

func (r *sharedRead) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	defer close(r.done)
	defer func() {
		if p := recover(); p != nil { // this goroutine has no HTTP handler that recovers
			r.err = fmt.Errorf("panic: %v", p)
		}
	}()
	r.err = r.do(ctx)
}
