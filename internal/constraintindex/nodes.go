// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package constraintindex

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/memfit/memfit/internal/constraints"
	"github.com/memfit/memfit/internal/informers"
	"github.com/memfit/memfit/internal/memory"
)

// nodes stores the memory of all nodes. The zero value is empty; it is safe for concurrent use.
type nodes struct {
	mu     sync.Mutex
	byName map[string]node
	shared *constraints.Nodes // what all returned last, which readers share; nil: byName has changed
}

// node has the allocatable memory of a node, and when its MemoryPressure began; zero: no pressure.
type node struct {
	size  memory.Bytes
	short time.Time
}

// handler returns the handler of node events.
func (s *nodes) handler() toolscache.ResourceEventHandler {
	seen := func(n *corev1.Node) {
		s.set(n.Name, node{memory.FromQuantity(*n.Status.Allocatable.Memory()), pressureSince(n)})
	}
	return informers.Handler[*corev1.Node]{
		Seen: seen, Changed: func(_, after *corev1.Node) { seen(after) },
		Gone: func(n *corev1.Node) { s.set(n.Name, node{}) },
	}
}

func pressureSince(n *corev1.Node) time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeMemoryPressure && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.UTC()
		}
	}
	return time.Time{}
}

// set stores a node; the zero node removes it.
func (s *nodes) set(name string, n node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName[name] == n {
		return
	}
	if s.byName == nil {
		s.byName = map[string]node{}
	}
	if s.byName[name] = n; n == (node{}) {
		delete(s.byName, name)
	}
	s.shared = nil
}

// all returns all nodes. Its maps are shared: do not change them.
func (s *nodes) all() constraints.Nodes {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared == nil {
		all := constraints.Nodes{NodeSize: map[string]memory.Bytes{}, NodePressureSince: map[string]time.Time{}}
		for name, n := range s.byName {
			if n.size > 0 {
				all.NodeSize[name], all.LargestNode = n.size, max(all.LargestNode, n.size)
			}
			if !n.short.IsZero() {
				all.NodePressureSince[name] = n.short
			}
		}
		s.shared = &all
	}
	return *s.shared
}
