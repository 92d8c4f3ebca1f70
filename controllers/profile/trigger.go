// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Trigger is a source that anybody may ring: it queues the keys it is given once its controller has started, and forgets them before.
// A controller looks at everything when it starts, so nothing is missed.
type Trigger[key comparable] struct {
	queue atomic.Pointer[triggerQueue[key]]
}

type triggerQueue[key comparable] struct {
	workqueue.TypedRateLimitingInterface[key]
}

// Start hands the bell its controller's queue.
func (b *Trigger[key]) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[key]) error {
	b.queue.Store(&triggerQueue[key]{queue})
	return nil
}

// Enqueue queues keys, each at most once until it is dealt with.
func (b *Trigger[key]) Enqueue(keys ...key) {
	queue := b.queue.Load()
	if queue == nil {
		return
	}
	for _, k := range keys {
		queue.AddAfter(k, 100*time.Millisecond)
	}
}
