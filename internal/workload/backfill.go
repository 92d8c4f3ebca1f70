// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// youngHistory is the length from which a history needs no backfill.
const youngHistory = period.Hour

// Past is the earlier history of a workload.
type Past struct {
	// Source is its source: "prometheus".
	Source string
	// There: reading has ended; after a failure there are no containers.
	There      bool
	Containers map[string]*history.Container
}

// backfill is the state of a workload's earlier history.
type backfill struct {
	// pastKnown: it was read, or is not needed.
	pastKnown bool
	// asked: it was requested, and since are the samples after the request.
	asked bool
	since []memory.Sample
}

// note keeps samples until the earlier history arrives.
func (b *backfill) note(samples []memory.Sample) {
	if b.asked && len(b.since) < MaxSamples {
		b.since = append(b.since, samples...)
	}
}

// WantsPast reports whether an earlier history is needed: none was read, and memfit's own is shorter than youngHistory.
func (st *State) WantsPast() bool {
	if st.pastKnown {
		return false
	}
	for name := range st.containers {
		if period.Of(st.newest(name).history.Span()) >= youngHistory && !st.asked {
			return false
		}
	}
	return true
}

// takePast merges a workload's earlier history, once available, with the samples since the request.
func (st *State) takePast(p *Past) {
	switch {
	case p == nil:
		return
	case !p.There:
		st.asked = true
		return
	}
	st.pastKnown, st.asked = true, false
	for name, h := range p.Containers {
		if h.Samples() == 0 || st.History(name).Samples() >= h.Samples() {
			continue
		}
		of := *h // do not change the history before the step is stored
		for _, s := range st.since {
			if s.Container.Container == name && s.Time.After(of.Last()) {
				of.Add(s, st.limit(s.Container))
			}
		}
		st.newest(name).history, st.Past = &of, p.Source
	}
	st.since = nil
}

// KnowsPast reports whether the earlier history was merged, as far as it is available.
func (st *State) KnowsPast() bool { return st.pastKnown }
