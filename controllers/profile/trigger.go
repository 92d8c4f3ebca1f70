// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Trigger is a source that anybody may call: it queues the keys it is given once its controller has started, and drops
// them before. A controller reconciles everything when it starts, so nothing is missed.
type Trigger[key comparable] struct {
	queue atomic.Pointer[triggerQueue[key]]
}

type triggerQueue[key comparable] struct {
	workqueue.TypedRateLimitingInterface[key]
}

// Start takes the controller's queue.
func (t *Trigger[key]) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[key]) error {
	t.queue.Store(&triggerQueue[key]{queue})
	return nil
}

// Enqueue queues keys, each at most once until it is dealt with.
func (t *Trigger[key]) Enqueue(keys ...key) {
	queue := t.queue.Load()
	if queue == nil {
		return
	}
	for _, k := range keys {
		queue.AddAfter(k, 100*time.Millisecond)
	}
}
