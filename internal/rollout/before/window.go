// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package before

import (
	"time"

	"github.com/memfit/memfit/api/v1alpha1"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/recommend"
	"github.com/memfit/memfit/internal/rollout/before/guards"
)

// waitsForWindow refuses what may be done in maintenance windows only, while none is open. A raise in place that
// restarts nothing is done at any time, and so is whatever a kill asks for, unless the owner wants raises to wait, too.
// Giving back what a change took away waits for nothing.
func (d *decider) waitsForWindow(c Container, in guards.Change) (reason, message string, refused bool) {
	to, from := in.Recommendation.Size, in.Current
	raises := in.Recommendation.Decision == recommend.Increase && !lowers(from.Limit, to.Limit)
	switch {
	case d.givesBack(c, to, from):
		return "", "", false
	case raises && d.Policy.IncreasesInWindows:
	case raises && (in.Recommendation.Urgent || !in.Restarts):
		return "", "", false
	case !in.Restarts && from.Limit == to.Limit: // a lower request in place disturbs nobody
		return "", "", false
	}
	if why := d.outsideWindows(); why != "" {
		return v1alpha1.ReasonWaitingForWindow, why, true
	}
	return "", "", false
}

// givesBack reports whether a change rolls back a size that did harm.
func (d *decider) givesBack(c Container, to, from memory.Size) bool {
	r, active := d.State.ActiveRevert(c.key(), d.Now)
	return active && from.Limit < to.Limit && to.Limit <= r.Restored.Limit
}

// tooLate reports whether a step that is not done yet has to wait again: the window in which it was written down has
// closed, or the owner's query speaks against it by now.
func (d *decider) tooLate(c Container, st Step, to memory.Size) bool {
	in, _ := d.changeOf(d.pod(st), c, to)
	in.Restarts = st.Evict || c.RestartsOnResize && !c.Literal
	_, _, shut := d.waitsForWindow(c, in)
	_, _, queried := d.waitsForQuery(lowers(in.Current.Limit, to.Limit))
	return shut || queried
}

// outsideWindows says that no window is open; empty: one is, or there are none.
func (d *decider) outsideWindows() string {
	open, next := d.Policy.Windows.Open(d.Now)
	switch {
	case open:
		return ""
	case next.IsZero():
		return "none of the maintenance windows ever opens: see the profile's condition Ready"
	}
	d.requeueIn(next.Sub(d.Now) + time.Second)
	return "waits for the next maintenance window, which opens at " + format.Time(next)
}
