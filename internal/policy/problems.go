// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"sync"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/profile"
)

// Problems holds the workloads whose profile is missing or ambiguous, with what to fix. It is safe for concurrent use.
type Problems struct {
	// OnChange is called with all profiles that select a workload whose problem changed; may be nil.
	OnChange func(...profile.Key)

	mu  sync.Mutex
	all map[memory.WorkloadRef]problem
}

// problem describes a missing or ambiguous profile. why may have text from the workload's owner; claims never do.
type problem struct {
	why    string
	claims []profile.Key
}

// Set records the problem of a workload and the conflicting profiles, and reports whether the problem changed.
func (p *Problems) Set(w memory.WorkloadRef, why string, claims []*profile.Profile) (changed bool) {
	now := problem{why: why}
	for _, n := range claims {
		now.claims = append(now.claims, n.Key())
	}
	p.mu.Lock()
	if p.all == nil {
		p.all = map[memory.WorkloadRef]problem{}
	}
	old, known := p.all[w]
	p.all[w] = now
	p.mu.Unlock()
	if known && old.why == now.why && slices.Equal(old.claims, now.claims) {
		return false
	}
	p.changed(append(slices.Clone(old.claims), now.claims...))
	return true
}

// Clear removes the problem of a workload.
func (p *Problems) Clear(w memory.WorkloadRef) {
	p.mu.Lock()
	concerned := p.all[w].claims
	delete(p.all, w)
	p.mu.Unlock()
	p.changed(concerned)
}

func (p *Problems) changed(concerned []profile.Key) {
	if len(concerned) > 0 && p.OnChange != nil {
		p.OnChange(concerned...)
	}
}

// Claiming returns the sorted problems of workloads that key and another profile select.
func (p *Problems) Claiming(key profile.Key) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var texts []string
	for w, problem := range p.all {
		if slices.Contains(problem.claims, key) {
			texts = append(texts, w.String()+": "+problem.why)
		}
	}
	slices.Sort(texts)
	return texts
}
