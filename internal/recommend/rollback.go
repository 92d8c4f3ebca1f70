// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// rollBack returns the limit to go back to because a raise did not end the stall it was for; 0: nothing is rolled back.
// A kill that asks for more keeps the higher limit, and so does use that the lower one would not hold.
func (e *evaluation) rollBack() memory.Bytes {
	s, cur := e.Unrelieved, e.Current.Limit
	switch {
	case s.Limit == 0 || e.grown.limit > 0 || cur < s.Limit || e.stale():
		return 0
	case e.certainty != history.Exact:
		return 0 // what is in use may be more than is known
	case cur > s.RaisedTo && !within(s.RaisedTo, cur, e.Policy.MinChangePercent):
		return 0 // it has been raised further since
	}
	if used := max(e.InUse, e.highestDay()); !holds(s.Limit, used) {
		e.note(
			"the raise to %s did not end a stall, but it is not rolled back to %s: use has reached %s", s.RaisedTo, s.Limit,
			used,
		)
		return 0
	}
	e.rec.Guess = &Raise{From: s.Limit, At: s.Since}
	e.note("the raise from %s to %s did not end the stall of %s (%d major faults a second before, %d after): %s is "+
		"enough for what is in use",
		s.Limit, s.RaisedTo, e.at(s.Since), s.Faults, s.FaultsAfter, s.Limit)
	return s.Limit
}

// holds reports whether a limit may be lowered onto use: what is counted moves by a few percent between two samples.
func holds(limit, used memory.Bytes) bool { return used.Percent(105) < limit }
