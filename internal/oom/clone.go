// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"maps"
	"slices"
)

// Clone returns a copy that shares no mutable data. Decisions change the copy, and drop it if a write fails. A copy
// with 10,000 restarted pods takes milliseconds.
func (l *Ledger) Clone() Ledger {
	c := *l
	c.names, c.pods = maps.Clone(l.names), maps.Clone(l.pods)
	c.notFollowed = maps.Clone(l.notFollowed)
	for key, p := range c.pods {
		c.pods[key] = &pod{p.gone, slices.Clone(p.containers)}
	}
	for name, n := range c.names {
		of := *n
		of.Kills, of.Dropped, of.Stalls = slices.Clone(n.Kills), maps.Clone(n.Dropped), slices.Clone(n.Stalls)
		c.names[name] = &of
	}
	return c
}

// Keep drops the kills and stalls of all container names for which kept returns false. Cursors remain.
func (l *Ledger) Keep(kept func(name string) bool) {
	for name, n := range l.names {
		if !kept(name) {
			l.names[name] = &nameData{cursors: n.cursors}
		}
	}
}

// Clone returns a copy that shares no data that [StallWatch.Add] changes.
func (w *StallWatch) Clone() StallWatch {
	c := *w
	if w.stall != nil {
		s := *w.stall
		c.stall = &s
	}
	if w.run != nil {
		r := *w.run
		c.run = &r
	}
	return c
}
