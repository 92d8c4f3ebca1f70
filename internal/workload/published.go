// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// published is a size that was decided for a container, and the program that it is for.
type published struct {
	Size    memory.Size `json:"s"`
	Program string      `json:"p,omitempty"`
}

// announced is what Events reported last, so that nothing is reported twice.
type announced struct {
	// Drifting is the reason of DriftDetected while it is true, and Outliers are the pods far above the others.
	Drifting string   `json:"drifting,omitempty"`
	Outliers []string `json:"outliers,omitempty"`
	// OutOfDate: pods ran without what the profile would set.
	OutOfDate bool `json:"outOfDate,omitempty"`
	// Conflicted: another autoscaler manages this memory.
	Conflicted bool `json:"conflicted,omitempty"`
	// LedgerFull: kills are not counted any more.
	LedgerFull bool `json:"ledgerFull,omitempty"`
	// sizes are the recommended sizes, by container. What is stored as published was announced.
	sizes map[string]memory.Size
}

// used is the highest demand of one running replica of a container.
type used struct {
	Most memory.Bytes `json:"most"`
	Seen time.Time    `json:"seen"`
	// recalled: an earlier process of memfit read it. It is reported until this process reads usage.
	recalled bool
}

// publish makes the result of a step what was published last. A size that is near the one published before counts as
// that one, so that a size which creeps is a new one sooner or later. It does not depend on what became of the
// MemoryRecommendation: that is a projection of the state, and nothing is read back from it.
func (st *State) publish(v *result) {
	before, usedBefore := st.published, st.used
	st.published = make(map[string]published, len(v.recommended))
	st.used = make(map[string]used, len(v.status.Containers))
	sizes := make(map[string]memory.Size, len(v.recommended))
	for i := range v.status.Containers {
		c := &v.status.Containers[i]
		if size, found := v.recommended[c.Container]; found {
			if last, had := before[c.Container]; had && near(size, last.Size) {
				size = last.Size
			}
			sizes[c.Container] = size
			st.published[c.Container] = published{size, c.Program}
		}
		switch last := usedBefore[c.Container]; {
		case v.used[c.Container].Most > 0:
			st.used[c.Container] = v.used[c.Container]
		case last.recalled:
			st.used[c.Container] = last
		}
	}
	st.announcing.sizes = sizes
	st.liveSets, st.found = keptLiveSets(v.liveHeaps), v.found
}

// sizes are the sizes published last, by container.
func (st *State) sizes() map[string]memory.Size {
	all := make(map[string]memory.Size, len(st.published))
	for name, p := range st.published {
		all[name] = p.Size
	}
	return all
}

// Announced notes that the MemoryRecommendation and the Events of the last step were written.
func (st *State) Announced() { st.announced = st.announcing }

// storedPublished is the stored form of what was decided and reported. It is written before the MemoryRecommendation.
type storedPublished struct {
	Sizes map[string]published `json:"sizes,omitempty"`
	announced
	Identity *identified `json:"identity,omitempty"`
}

func (st *State) packPublished() ([]byte, error) {
	data, err := json.Marshal(storedPublished{st.published, st.announcing, st.identity})
	if err != nil {
		return nil, fmt.Errorf("encoding the published sizes: %w", err)
	}
	return empty(data), nil
}

func (s *storedPublished) unpack(st *State) {
	st.published, st.identity, st.announced = s.Sizes, s.Identity, s.announced
	st.announced.sizes = st.sizes()
	st.announcing = st.announced
}

// storedObserved is the stored form of what was observed besides histories. Like them it may be minutes old.
type storedObserved struct {
	Source   string                            `json:"source,omitempty"`
	Past     string                            `json:"past,omitempty"`
	Used     map[string]used                   `json:"used,omitempty"`
	LiveSets map[string]history.LiveSet        `json:"liveSets,omitempty"`
	Found    map[string]*v1alpha1.FoundRuntime `json:"found,omitempty"`
}

func (st *State) packObserved() ([]byte, error) {
	data, err := json.Marshal(storedObserved{st.source, st.past, st.used, st.liveSets, st.found})
	if err != nil {
		return nil, fmt.Errorf("encoding what was observed: %w", err)
	}
	return empty(data), nil
}

func (s *storedObserved) unpack(st *State) {
	st.source, st.past, st.used, st.liveSets, st.found = s.Source, s.Past, s.Used, s.LiveSets, s.Found
	for name, u := range s.Used {
		u.recalled = true
		s.Used[name] = u
	}
}

// empty is nil for a JSON object without fields.
func empty(data []byte) []byte {
	if string(data) == "{}" {
		return nil
	}
	return data
}
