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
	// readTimeout is how long an admission waits for a read, with the time until it begins. Together with two times
	// [lookupTimeout] it is below the webhook's own timeout of 2 s. With 500 ms, a read timed out on two cores at a load
	// of 27.
	readTimeout = time.Second
	// readInterval is the time from the beginning of a read to that of the next with the same key, so that there are at
	// most 20 a second, however many pods are created. Controllers create at most as many with the default settings of
	// client-go and Argo Workflows (20 a second) and of Tekton (5).
	readInterval = 50 * time.Millisecond
	// mostReads are under way at once, for all keys.
	mostReads = 4
)

// readKey is what a read returns: the same key, the same result.
type readKey struct{ namespace, selector string }

// sharedReads let concurrent callers share a read of the API server that begins after each of them has asked. A read
// that was under way when a caller asked may lack what the caller has to see, so it is not shared with that caller. The
// zero value is ready.
type sharedReads struct {
	mu     sync.Mutex
	queues map[readKey]*readQueue
	slots  chan struct{} // of mostReads
}

// readQueue are the reads with one key: one at a time, and the next. It exists while one is under way or began less
// than [readInterval] ago.
type readQueue struct{ next *sharedRead }

// sharedRead is a read that has not begun.
type sharedRead struct {
	do   func(ctx context.Context) error
	done chan struct{}
	err  error // once done is closed
}

// await returns when do, or that of a concurrent caller with the same key, has begun and returned, at the latest after
// [readTimeout], with an error.
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

// join returns the next read with the key.
func (s *sharedReads) join(ctx context.Context, key readKey, do func(context.Context) error) *sharedRead {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues == nil {
		s.queues, s.slots = map[readKey]*readQueue{}, make(chan struct{}, mostReads)
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

// work runs the reads of a queue, one after another, until none is waiting.
func (s *sharedReads) work(ctx context.Context, key readKey, q *readQueue) {
	for s.more(key, q) {
		s.slots <- struct{}{}
		interval := time.NewTimer(readInterval)
		s.begin(q).run(ctx)
		<-s.slots
		<-interval.C
	}
}

// more reports whether a read is next; else the queue is gone.
func (s *sharedReads) more(key readKey, q *readQueue) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.next == nil {
		delete(s.queues, key)
	}
	return q.next != nil
}

// begin takes the next read from the queue: callers who ask from here on wait for another one.
func (s *sharedReads) begin(q *readQueue) *sharedRead {
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
		if p := recover(); p != nil { // no handler of a request recovers here
			r.err = fmt.Errorf("panic: %v", p)
		}
	}()
	r.err = r.do(ctx)
}
