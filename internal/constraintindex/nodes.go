// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraintindex

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/memory"
)

// nodes holds the allocatable memory of nodes by name. The zero value is empty; it is safe for concurrent use.
type nodes struct {
	mu      sync.Mutex
	byName  map[string]memory.Bytes
	shared  map[string]memory.Bytes // nil: rebuild, with largest
	largest memory.Bytes
}

// handler handles the events of an informer of nodes.
func (s *nodes) handler() toolscache.ResourceEventHandler {
	seen := func(n *corev1.Node) { s.set(n.Name, memory.FromQuantity(*n.Status.Allocatable.Memory())) }
	return informers.Handler[*corev1.Node]{
		Seen: seen, Changed: func(_, after *corev1.Node) { seen(after) }, Gone: func(n *corev1.Node) { s.set(n.Name, 0) },
	}
}

// set stores a size; 0 removes the node.
func (s *nodes) set(name string, size memory.Bytes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.byName[name] == size:
		return
	case size == 0:
		delete(s.byName, name)
	case s.byName == nil:
		s.byName = map[string]memory.Bytes{name: size}
	default:
		s.byName[name] = size
	}
	s.shared = nil
}

// all returns the sizes by name, and the largest; 0 if none is known. The returned map never changes, so that readers
// share it.
func (s *nodes) all() (map[string]memory.Bytes, memory.Bytes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared == nil {
		s.shared, s.largest = maps.Clone(s.byName), 0
		for _, size := range s.shared {
			s.largest = max(s.largest, size)
		}
	}
	return s.shared, s.largest
}
