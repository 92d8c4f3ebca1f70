// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraintindex

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/memory"
)

// nodes holds the allocatable memory of nodes by name, and the nodes that are short of memory. The zero value is empty;
// it is safe for concurrent use.
type nodes struct {
	mu      sync.Mutex
	byName  map[string]memory.Bytes
	shared  map[string]memory.Bytes // nil: rebuild, with largest
	largest memory.Bytes
	// short is since when nodes report MemoryPressure. It is replaced, never changed.
	short map[string]time.Time
}

// handler handles the events of an informer of nodes.
func (s *nodes) handler() toolscache.ResourceEventHandler {
	seen := func(n *corev1.Node) {
		s.set(n.Name, memory.FromQuantity(*n.Status.Allocatable.Memory()))
		s.setShort(n.Name, shortSince(n))
	}
	return informers.Handler[*corev1.Node]{
		Seen: seen, Changed: func(_, after *corev1.Node) { seen(after) },
		Gone: func(n *corev1.Node) {
			s.set(n.Name, 0)
			s.setShort(n.Name, time.Time{})
		},
	}
}

// shortSince returns since when a node reports MemoryPressure; zero: it does not.
func shortSince(n *corev1.Node) time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeMemoryPressure && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.UTC()
		}
	}
	return time.Time{}
}

func (s *nodes) setShort(name string, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.short[name].Equal(since) {
		return
	}
	next := maps.Clone(s.short)
	if next == nil {
		next = map[string]time.Time{}
	}
	if next[name] = since; since.IsZero() {
		delete(next, name)
	}
	s.short = next
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

// all returns the sizes by name, the largest (0 if none is known), and since when nodes are short of memory. The
// returned maps never change, so that readers share them.
func (s *nodes) all() (sizes map[string]memory.Bytes, largest memory.Bytes, short map[string]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared == nil {
		s.shared, s.largest = maps.Clone(s.byName), 0
		for _, size := range s.shared {
			s.largest = max(s.largest, size)
		}
	}
	return s.shared, s.largest, s.short
}
