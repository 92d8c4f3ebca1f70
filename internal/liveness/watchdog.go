// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package liveness tracks the workers of the manager and the agent, and fails their liveness check if one is stuck.
package liveness

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/memfit/memfit/internal/format"
)

// stuckAfter is how long a worker may process one object. A reconcile is canceled after ten seconds; one that ignores
// the cancellation for minutes ends only with a restart of memfit.
const stuckAfter = 3 * time.Minute

// Watchdog tracks workers for the liveness check. Safe for concurrent use; create it with [NewWatchdog].
type Watchdog struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	next  uint64
	tasks map[uint64]task
}

// task is the object that a worker processes, and the time when it started.
type task struct {
	object string
	since  time.Time
}

// NewWatchdog returns an empty Watchdog.
func NewWatchdog(c clock.PassiveClock) *Watchdog {
	return &Watchdog{clock: c, tasks: map[uint64]task{}}
}

// Begin records that a worker processes an object until done is called. A nil Watchdog records nothing.
func (d *Watchdog) Begin(object fmt.Stringer) (done func()) {
	if d == nil {
		return func() {}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	id := d.next
	d.tasks[id] = task{object.String(), d.clock.Now()}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.tasks, id)
	}
}

// Check is a liveness check. It returns an error while a worker has processed one object for stuckAfter or longer.
func (d *Watchdog) Check(*http.Request) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	var longest task
	for _, e := range d.tasks {
		if longest.object == "" || e.since.Before(longest.since) {
			longest = e
		}
	}
	if longest.object == "" || now.Sub(longest.since) < stuckAfter {
		return nil
	}
	return fmt.Errorf("a worker has been processing %s since %s", longest.object, format.Time(longest.since))
}
