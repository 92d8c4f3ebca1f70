// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraintindex

import (
	"maps"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/memfit/memfit/internal/memory"
)

// Nodes keep the allocatable memory of nodes by name. The zero value knows none; it is safe for concurrent use.
type Nodes struct {
	mu     sync.Mutex
	byName map[string]memory.Bytes
	shared map[string]memory.Bytes // nil: to be made anew
	// largest is kept beside them for readers that only need it.
	largest atomic.Int64
}

// Handler takes in the events of an informer of nodes.
func (s *Nodes) Handler() toolscache.ResourceEventHandler {
	seen := func(obj any) {
		if node, ok := obj.(*corev1.Node); ok {
			s.set(node.Name, memory.FromQuantity(*node.Status.Allocatable.Memory()))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    seen,
		UpdateFunc: func(_, obj any) { seen(obj) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if node, ok := obj.(*corev1.Node); ok {
				s.set(node.Name, 0)
			}
		},
	}
}

// set notes a size; 0 forgets the node.
func (s *Nodes) set(name string, size memory.Bytes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.byName[name]
	switch {
	case before == size:
		return
	case size == 0:
		delete(s.byName, name)
	case s.byName == nil:
		s.byName = map[string]memory.Bytes{name: size}
	default:
		s.byName[name] = size
	}
	s.shared = nil
	switch largest := memory.Bytes(s.largest.Load()); {
	case size >= largest:
		s.largest.Store(int64(size))
	case before == largest: // it was the largest, and is not any more
		largest = 0
		for _, b := range s.byName {
			largest = max(largest, b)
		}
		s.largest.Store(int64(largest))
	}
}

// All are the sizes by name, and the largest. The returned map is never changed, so that readers share it.
func (s *Nodes) All() (map[string]memory.Bytes, memory.Bytes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared == nil {
		s.shared = maps.Clone(s.byName)
	}
	return s.shared, s.Largest()
}

// Largest is the most of them; 0 when none is known.
func (s *Nodes) Largest() memory.Bytes { return memory.Bytes(s.largest.Load()) }
