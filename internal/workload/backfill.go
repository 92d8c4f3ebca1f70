// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

// youngHistory is the length from which on a history needs no past from elsewhere.
const youngHistory = period.Hour

// Past is what a workload used before memfit saw it.
type Past struct {
	// Source is where it comes from: "prometheus".
	Source string
	// There: reading it has ended; what could not be read has no containers.
	There      bool
	Containers map[string]*history.Container
}

// backfill is what is known of a workload's past.
type backfill struct {
	// pastKnown: it was read, or is not needed.
	pastKnown bool
	// asked: it is on its way, and since are the samples that came after it was asked for.
	asked bool
	since []memory.Sample
}

// note keeps samples while the past is on its way.
func (b *backfill) note(samples []memory.Sample) {
	if b.asked && len(b.since) < MaxSamples {
		b.since = append(b.since, samples...)
	}
}

// WantsPast reports whether a past is still to be read: none is known, and what memfit saw itself does not reach back
// for youngHistory.
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

// takePast puts a workload's past, once it is there, before what was seen since it was asked for.
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
		of := *h // the past stays as it is until the step is safe
		for _, s := range st.since {
			if s.Container.Container == name && s.Time.After(of.Last()) {
				of.Add(s, st.limit(s.Container))
			}
		}
		st.newest(name).history, st.Past = &of, p.Source
	}
	st.since = nil
}

// KnowsPast reports whether what the workload used before memfit saw it was taken over, as far as anybody knows it.
func (st *State) KnowsPast() bool { return st.pastKnown }
