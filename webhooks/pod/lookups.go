// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"sync"
	"time"
)

// lookups is the context of one admission's lookups: its parent's, with a deadline. Caches answer without ever waiting,
// so the timer starts only when somebody asks whether it is over; [context.WithDeadline] would start and stop one for
// every pod.
type lookups struct {
	context.Context
	deadline time.Time

	once   sync.Once
	timed  context.Context
	cancel context.CancelFunc
}

// Deadline is the earlier of the parent's and its own.
func (l *lookups) Deadline() (time.Time, bool) {
	if parents, ok := l.Context.Deadline(); ok && parents.Before(l.deadline) {
		return parents, true
	}
	return l.deadline, true
}

// Done is closed at the deadline, or when the parent is.
func (l *lookups) Done() <-chan struct{} { return l.waiting().Done() }

// Err says why it is over, as soon as it is.
func (l *lookups) Err() error { return l.waiting().Err() }

func (l *lookups) waiting() context.Context {
	l.once.Do(func() { l.timed, l.cancel = context.WithDeadline(l.Context, l.deadline) })
	return l.timed
}

// end frees what waiting took. The context must not be used any more.
func (l *lookups) end() {
	l.once.Do(func() { l.timed, l.cancel = l.Context, func() {} })
	l.cancel()
}
