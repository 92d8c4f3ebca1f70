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

// Change is something that memfit did to pods of a workload, and what came of it. It is kept for people: nothing is
// decided by it.
type Change struct {
	// Kind is the result.
	Kind FindingKind `json:"kind"`
	// At is when it was seen of the last pod, Since of the first.
	At    time.Time `json:"at"`
	Since time.Time `json:"since"`
	// Pod is the last one, Pods how many there were.
	Pod  string `json:"pod"`
	Pods int    `json:"pods"`
	// Sizes are the change in words, as in Action.Why; empty: the size stayed.
	Sizes string `json:"sizes,omitempty"`
	// From and To are the sizes of the containers that changed, and of the pod as a whole ([WholePod]); at most maxSizes.
	// A request or limit that is 0 in To stayed.
	From map[string]memory.Size `json:"from,omitempty"`
	To   map[string]memory.Size `json:"to,omitempty"`
	// Why is what was recommended then, or why it came to nothing.
	Why string `json:"why,omitempty"`
}

const (
	// maxChanges bounds what is kept of a workload: 400 bytes each, and never more than 1.5 KiB.
	maxChanges = 16
	// maxSizes bounds the sizes of a change; the API has the same number.
	maxSizes = 8
	// maxWords bounds the texts of a change, in bytes; the API has the same number.
	maxWords = 512
)

// Bounded is a change as it is kept and shown. What an earlier version kept may be longer.
func (c Change) Bounded() Change {
	c.Sizes, c.Why = quote.Cut(c.Sizes, maxWords), quote.Cut(c.Why, maxWords)
	if len(c.To) > maxSizes {
		from, to := map[string]memory.Size{}, map[string]memory.Size{}
		for _, name := range slices.Sorted(maps.Keys(c.To))[:maxSizes] {
			from[name], to[name] = c.From[name], c.To[name]
		}
		c.From, c.To = from, to
	}
	return c
}

// resized is a change of sizes.
func resized(c Change, from, to map[string]memory.Size) Change {
	c.Sizes, c.From, c.To = changes(from, to), maps.Clone(from), maps.Clone(to)
	return c
}

// record keeps a change. What happened to one pod after the other since a change began is one.
func (s *State) record(c Change, began time.Time) {
	c = c.Bounded()
	c.At = stamp(c.At)
	c.Since, c.Pods = c.At, 1
	s.Changes = slices.Clone(s.Changes)
	if i := slices.IndexFunc(s.Changes, func(old Change) bool {
		return old.Kind == c.Kind && old.Sizes == c.Sizes && !old.Since.Before(stamp(began))
	}); i >= 0 {
		c.Since, c.Pods = s.Changes[i].Since, s.Changes[i].Pods+1
		s.Changes = slices.Delete(s.Changes, i, i+1)
	}
	s.Changes = newest(append(s.Changes, c), maxChanges)
}
