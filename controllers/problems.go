// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"strings"
	"sync"

	"github.com/memfit/memfit/internal/memory"
)

// Problems are the workloads that ask for a profile and cannot have it, with what to mend. Safe for concurrent use; the zero
// value is empty.
type Problems struct {
	mu  sync.Mutex
	why map[memory.WorkloadRef]string
}

// Set notes a problem and reports whether it is news.
func (p *Problems) Set(w memory.WorkloadRef, why string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why == nil {
		p.why = map[memory.WorkloadRef]string{}
	}
	old, known := p.why[w]
	p.why[w] = why
	return !known || old != why
}

// Clear forgets a problem and reports whether there was one.
func (p *Problems) Clear(w memory.WorkloadRef) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.why[w]
	delete(p.why, w)
	return known
}

// Naming are the problems whose text names a profile ("MemoryProfile shop/web"), sorted.
func (p *Problems) Naming(profile string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for w, why := range p.why {
		if strings.Contains(why, profile+" ") {
			all = append(all, w.String()+": "+why)
		}
	}
	slices.Sort(all)
	return all
}
