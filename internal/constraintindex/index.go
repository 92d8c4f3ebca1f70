// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraintindex

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/memory"
)

// Index is the latest state. The zero value is empty; it is safe for concurrent use.
type Index struct {
	nodes Nodes

	mu     sync.Mutex
	spaces map[string]*space
	// shared is spaces for readers; nil: to be copied again, because a namespace appeared or went.
	shared atomic.Pointer[map[string]*space]

	registrations []toolscache.ResourceEventHandlerRegistration
}

// space is one namespace: its objects, and their bounds.
type space struct {
	ranges map[string]*corev1.LimitRange
	quotas map[string]*corev1.ResourceQuota
	says   atomic.Pointer[constraints.Namespace]
}

// Objects are those whose informers an index follows.
func Objects() []client.Object {
	return []client.Object{&corev1.LimitRange{}, &corev1.ResourceQuota{}, &corev1.Node{}}
}

// Follow begins to listen to the informers of a cache, which need not run yet.
func (x *Index) Follow(ctx context.Context, c cache.Cache) error {
	for _, obj := range Objects() {
		informer, err := c.GetInformer(ctx, obj)
		if err != nil {
			return fmt.Errorf("watching %T: %w", obj, err)
		}
		handler := x.handler()
		if _, node := obj.(*corev1.Node); node {
			handler = x.nodes.Handler()
		}
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("watching %T: %w", obj, err)
		}
		x.registrations = append(x.registrations, registration)
	}
	return nil
}

// Ready is a readiness check: before all is known that existed, new pods could get what their namespace refuses.
func (x *Index) Ready(*http.Request) error {
	if slices.ContainsFunc(
		x.registrations, func(r toolscache.ResourceEventHandlerRegistration) bool { return !r.HasSynced() },
	) {
		return errors.New("LimitRanges, ResourceQuotas and nodes are not read yet")
	}
	return nil
}

// In returns the bounds of a namespace; nil when it has none on memory.
func (x *Index) In(namespace string) *constraints.Namespace {
	shared := x.shared.Load()
	if shared == nil {
		shared = x.share()
	}
	if s := (*shared)[namespace]; s != nil {
		return s.says.Load()
	}
	return nil
}

// LargestNode is the most allocatable memory of a node; 0 when none is known.
func (x *Index) LargestNode() memory.Bytes { return x.nodes.Largest() }

func (x *Index) share() *map[string]*space {
	x.mu.Lock()
	defer x.mu.Unlock()
	shared := maps.Clone(x.spaces)
	x.shared.Store(&shared)
	return &shared
}

func (x *Index) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    x.Note,
		UpdateFunc: func(_, obj any) { x.Note(obj) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			x.Forget(obj)
		},
	}
}

// Note takes in a LimitRange or a ResourceQuota as it is now, Forget one that is gone.
func (x *Index) Note(obj any) { x.note(obj, false) }

// Forget takes out an object that is gone.
func (x *Index) Forget(obj any) { x.note(obj, true) }

func (x *Index) note(obj any, gone bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch o := obj.(type) {
	case *corev1.LimitRange:
		s := x.space(o.Namespace)
		keep(s.ranges, o.Name, o, gone)
		x.read(o.Namespace, s)
	case *corev1.ResourceQuota:
		s := x.space(o.Namespace)
		keep(s.quotas, o.Name, o, gone)
		x.read(o.Namespace, s)
	}
}

func keep[T any](objects map[string]T, name string, object T, gone bool) {
	if gone {
		delete(objects, name)
		return
	}
	objects[name] = object
}

func (x *Index) space(namespace string) *space {
	s := x.spaces[namespace]
	if s == nil {
		s = &space{ranges: map[string]*corev1.LimitRange{}, quotas: map[string]*corev1.ResourceQuota{}}
		if x.spaces == nil {
			x.spaces = map[string]*space{}
		}
		x.spaces[namespace] = s
		x.shared.Store(nil)
	}
	return s
}

// read makes of the objects of a namespace what those read who ask for it.
func (x *Index) read(namespace string, s *space) {
	if len(s.ranges)+len(s.quotas) == 0 {
		delete(x.spaces, namespace)
		x.shared.Store(nil)
	}
	s.says.Store(constraints.ReadNamespace(values(s.ranges), values(s.quotas)))
}

func values[T any](objects map[string]*T) []T {
	out := make([]T, 0, len(objects))
	for _, o := range objects {
		out = append(out, *o)
	}
	return out
}
