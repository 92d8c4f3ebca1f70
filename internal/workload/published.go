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
	// drifting is the reason of DriftDetected while it is true, and outliers are the pods far above the others.
	drifting string
	outliers []string
	// outOfDate: pods ran without what the profile would set.
	outOfDate bool
	// conflicted: another autoscaler manages this memory.
	conflicted bool
	// ledgerFull: kills are not counted any more.
	ledgerFull bool
	// sizes are the recommended sizes, by container.
	sizes map[string]memory.Size
}

// used is the highest demand of one running replica of a container.
type used struct {
	most memory.Bytes
	seen time.Time
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
		case v.used[c.Container].most > 0:
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
	Sizes      map[string]published `json:"sizes,omitempty"`
	Drifting   string               `json:"drifting,omitempty"`
	Outliers   []string             `json:"outliers,omitempty"`
	OutOfDate  bool                 `json:"outOfDate,omitempty"`
	Conflicted bool                 `json:"conflicted,omitempty"`
	LedgerFull bool                 `json:"ledgerFull,omitempty"`
	Identity   *identified          `json:"identity,omitempty"`
}

func (st *State) packPublished() ([]byte, error) {
	a := &st.announcing
	data, err := json.Marshal(storedPublished{
		Sizes: st.published, Drifting: a.drifting, Outliers: a.outliers, OutOfDate: a.outOfDate, Conflicted: a.conflicted,
		LedgerFull: a.ledgerFull, Identity: st.identity,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the published sizes: %w", err)
	}
	return empty(data), nil
}

func (s *storedPublished) unpack(st *State) {
	st.published, st.identity = s.Sizes, s.Identity
	sizes := make(map[string]memory.Size, len(s.Sizes))
	for name, p := range s.Sizes {
		sizes[name] = p.Size
	}
	st.announced = announced{
		drifting: s.Drifting, outliers: s.Outliers, outOfDate: s.OutOfDate, conflicted: s.Conflicted,
		ledgerFull: s.LedgerFull, sizes: sizes,
	}
	st.announcing = st.announced
}

// storedObserved is the stored form of what was observed besides histories. Like them it may be minutes old.
type storedObserved struct {
	Source     string                       `json:"source,omitempty"`
	Past       string                       `json:"past,omitempty"`
	Containers map[string]observedContainer `json:"containers,omitempty"`
}

// observedContainer is the part of one container: Unix seconds, bytes.
type observedContainer struct {
	Used        memory.Bytes           `json:"used,omitempty"`
	UsedSeen    int64                  `json:"usedSeen,omitempty"`
	LiveSet     memory.Bytes           `json:"liveSet,omitempty"`
	LiveSetSeen int64                  `json:"liveSetSeen,omitempty"`
	Found       *v1alpha1.FoundRuntime `json:"found,omitempty"`
}

func (st *State) packObserved() ([]byte, error) {
	s := storedObserved{Source: st.source, Past: st.past, Containers: map[string]observedContainer{}}
	for name, u := range st.used {
		s.Containers[name] = observedContainer{Used: u.most, UsedSeen: unix(u.seen)}
	}
	for name, set := range st.liveSets {
		c := s.Containers[name]
		c.LiveSet, c.LiveSetSeen = set.Bytes, unix(set.Seen)
		s.Containers[name] = c
	}
	for name, found := range st.found {
		c := s.Containers[name]
		c.Found = found
		s.Containers[name] = c
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding what was observed: %w", err)
	}
	return empty(data), nil
}

func (s *storedObserved) unpack(st *State) {
	st.source, st.past = s.Source, s.Past
	st.used, st.liveSets = map[string]used{}, map[string]history.LiveSet{}
	st.found = map[string]*v1alpha1.FoundRuntime{}
	for name, c := range s.Containers {
		if c.Used > 0 {
			st.used[name] = used{most: c.Used, seen: fromUnix(c.UsedSeen), recalled: true}
		}
		if c.LiveSet > 0 {
			st.liveSets[name] = history.LiveSet{Bytes: c.LiveSet, Seen: fromUnix(c.LiveSetSeen)}
		}
		if c.Found != nil {
			st.found[name] = c.Found
		}
	}
}

// empty is nil for a JSON object without fields.
func empty(data []byte) []byte {
	if string(data) == "{}" {
		return nil
	}
	return data
}
