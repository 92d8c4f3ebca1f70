// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/memfit/memfit/internal/profile"
)

// queue is the controller's.
type queue = workqueue.TypedRateLimitingInterface[profile.Key]

// Trigger is a source that queues the profiles it is given once its controller has started, and drops them before. A
// controller reconciles everything when it starts, so nothing is missed.
type Trigger struct{ queue atomic.Pointer[queue] }

// Start takes the controller's queue.
func (t *Trigger) Start(_ context.Context, q queue) error {
	t.queue.Store(&q)
	return nil
}

// Enqueue queues profiles, each at most once until it is dealt with.
func (t *Trigger) Enqueue(keys ...profile.Key) {
	q := t.queue.Load()
	if q == nil {
		return
	}
	for _, k := range keys {
		(*q).AddAfter(k, 100*time.Millisecond)
	}
}
