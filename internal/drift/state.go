// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/rollout"
)

const (
	// day is what maxPerDay counts over.
	day = period.Day
	// restartsKept is the most that maxPerDay can be.
	restartsKept = 100
)

// Restart is one pod that was evicted for its memory.
type Restart = rollout.PastRestart

// State is the restarts of the last day: at most maxPerDay (100) of some 100 bytes. The zero value has none.
type State struct{ restarts []Restart }

type encoded struct {
	Restarts []Restart `json:"restarts"`
}

// Restarts are the restarts since a day before now, oldest first.
func (s *State) Restarts(now time.Time) []Restart {
	return slices.DeleteFunc(slices.Clone(s.restarts), func(r Restart) bool { return period.Of(now.Sub(r.At)) >= day })
}

// Add notes a restart, and forgets those of more than a day ago.
func (s *State) Add(r Restart) {
	r.At = r.At.UTC().Truncate(time.Second)
	s.restarts = append(s.Restarts(r.At), r)
}

// Undo forgets a restart that did not happen.
func (s *State) Undo(uid types.UID) {
	s.restarts = slices.DeleteFunc(slices.Clone(s.restarts), func(r Restart) bool { return r.UID == uid })
}

// MarshalJSON is nothing (null) when there is nothing to remember.
func (s *State) MarshalJSON() ([]byte, error) {
	if len(s.restarts) == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(encoded{s.restarts})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *State) UnmarshalJSON(data []byte) error {
	var e encoded
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	s.restarts = e.Restarts[max(0, len(e.Restarts)-restartsKept):]
	return nil
}
