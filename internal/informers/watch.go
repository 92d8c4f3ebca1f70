// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Handler has the functions to call when objects of one kind change. Nil functions are skipped.
type Handler[T client.Object] struct {
	// Seen is called with each existing and each new object.
	Seen func(T)
	// Changed is called with two versions of an object. After a gap in the watch, they may be two objects of one name.
	Changed func(before, after T)
	// Gone is called with the last known version.
	Gone func(T)
}

// OnAdd implements [toolscache.ResourceEventHandler].
func (h Handler[T]) OnAdd(obj any, _ bool) {
	if o, ok := obj.(T); ok && h.Seen != nil {
		h.Seen(o)
	}
}

// OnUpdate implements [toolscache.ResourceEventHandler].
func (h Handler[T]) OnUpdate(before, after any) {
	a, okA := before.(T)
	if b, okB := after.(T); okA && okB && h.Changed != nil {
		h.Changed(a, b)
	}
}

// OnDelete implements [toolscache.ResourceEventHandler].
func (h Handler[T]) OnDelete(obj any) {
	if missed, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = missed.Obj
	}
	if o, ok := obj.(T); ok && h.Gone != nil {
		h.Gone(o)
	}
}

// Watch registers a handler for the objects of a kind in a cache. It does not wait for the existing objects.
func Watch(
	ctx context.Context, c cache.Cache, kind client.Object, on toolscache.ResourceEventHandler,
	options ...cache.InformerGetOption,
) (toolscache.ResourceEventHandlerRegistration, error) {
	informer, err := c.GetInformer(ctx, kind, options...)
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", kind, err)
	}
	registration, err := informer.AddEventHandler(on)
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", kind, err)
	}
	return registration, nil
}

// EveryReplica is a function that a manager runs on every replica, leader or not. A second cache that all replicas need
// must be added to the manager as EveryReplica: added as a cache, it would run on the leader only.
type EveryReplica func(context.Context) error

// Start calls the function, which runs until ctx ends.
func (f EveryReplica) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection returns false.
func (EveryReplica) NeedLeaderElection() bool { return false }
