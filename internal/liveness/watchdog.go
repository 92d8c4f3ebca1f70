// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// Package liveness tracks workers, so that a stuck one fails the liveness check.
package liveness

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/memfit/memfit/internal/format"
)

// stuckAfter is how long a worker may process one object. A reconcile is canceled after ten seconds; if it ignores
// this so long, memfit must restart.
const stuckAfter = 3 * time.Minute

// Watchdog tracks workers for the liveness check. Safe for concurrent use; create it with [NewWatchdog].
type Watchdog struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	next  uint64
	on    map[uint64]errand
}

// errand is the current object of a worker.
type errand struct {
	what  string
	since time.Time
}

// NewWatchdog returns an empty Watchdog.
func NewWatchdog(c clock.PassiveClock) *Watchdog {
	return &Watchdog{clock: c, on: map[uint64]errand{}}
}

// Begin records that a worker is on an object until done is called. A nil Watchdog does nothing.
func (d *Watchdog) Begin(what fmt.Stringer) (done func()) {
	if d == nil {
		return func() {}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	id := d.next
	d.on[id] = errand{what.String(), d.clock.Now()}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.on, id)
	}
}

// Check is a liveness check: it fails while a worker has been on one object for minutes.
func (d *Watchdog) Check(*http.Request) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	var longest errand
	for _, e := range d.on {
		if longest.what == "" || e.since.Before(longest.since) {
			longest = e
		}
	}
	if longest.what == "" || now.Sub(longest.since) < stuckAfter {
		return nil
	}
	return fmt.Errorf("a worker has been on %s since %s", longest.what, format.Time(longest.since))
}
