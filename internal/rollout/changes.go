// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/quote"
)

// Change is a change of pods and its result, stored for users. It affects no decision.
type Change struct {
	Kind  FindingKind `json:"kind"`
	At    time.Time   `json:"at"`              // the time of the result for the last pod
	Since time.Time   `json:"since"`           // the time of the result for the first pod
	Pod   string      `json:"pod"`             // the last pod
	Pods  int         `json:"pods"`            // the number of pods
	Sizes string      `json:"sizes,omitempty"` // the change, as Action.Why; empty: the size is unchanged
	// From and To are the sizes of the changed containers, and of the whole pod ([WholePod]); at most maxSizes. A request
	// or limit that is 0 in To is unchanged.
	From map[string]memory.Size `json:"from,omitempty"`
	To   map[string]memory.Size `json:"to,omitempty"`
	Why  string                 `json:"why,omitempty"` // the summary of the recommendation, or why the change failed
}

const (
	// maxChanges bounds the stored changes of a workload: 400 bytes each, at most 1.5 KiB.
	maxChanges = 16
	// maxSizes bounds the sizes of a change, as the API does.
	maxSizes = 8
	// maxText bounds each text of a change, in bytes, as the API does.
	maxText = 512
)

// Bounded returns the change within the bounds of the API, which a forged change may exceed.
func (c Change) Bounded() Change {
	c.Sizes, c.Why = quote.Cut(c.Sizes, maxText), quote.Cut(c.Why, maxText)
	if len(c.To) > maxSizes {
		from, to := map[string]memory.Size{}, map[string]memory.Size{}
		for _, name := range slices.Sorted(maps.Keys(c.To))[:maxSizes] {
			from[name], to[name] = c.From[name], c.To[name]
		}
		c.From, c.To = from, to
	}
	return c
}

func withSizes(c Change, from, to map[string]memory.Size) Change {
	c.Sizes, c.From, c.To = changes(from, to), maps.Clone(from), maps.Clone(to)
	return c
}

// record stores a change of a pod. Equal changes of several pods since a rollout began are stored as one.
func (s *State) record(c Change, began time.Time) {
	c = c.Bounded()
	c.At = toSeconds(c.At)
	c.Since, c.Pods = c.At, 1
	s.Changes = slices.Clone(s.Changes)
	if i := slices.IndexFunc(s.Changes, func(old Change) bool {
		return old.Kind == c.Kind && old.Sizes == c.Sizes && !old.Since.Before(toSeconds(began))
	}); i >= 0 {
		c.Since, c.Pods = s.Changes[i].Since, s.Changes[i].Pods+1
		s.Changes = slices.Delete(s.Changes, i, i+1)
	}
	s.Changes = newest(append(s.Changes, c), maxChanges)
}
