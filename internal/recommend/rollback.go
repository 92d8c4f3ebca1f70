// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package recommend

import (
	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
)

// rollbackLimit returns the limit before a raise that did not end its stall; 0: nothing is rolled back. The raise
// remains if a recent kill requires more, or if use does not fit below the previous limit.
func (e *evaluation) rollbackLimit() memory.Bytes {
	s, cur := e.Unrelieved, e.Current.Limit
	switch {
	case s.Limit == 0 || e.afterKill.limit > 0 || cur < s.Limit || e.stale():
		return 0
	case e.certainty != history.Exact:
		return 0 // use may be higher than the estimate
	case cur > s.RaisedTo && !within(s.RaisedTo, cur, e.Policy.MinChangePercent):
		return 0 // the limit has been raised further since
	}
	if used := max(e.InUse, e.highestDay()); !fits(used, s.Limit) {
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

// fits reports whether limit is more than 5 % above use, because use changes by a few percent between two samples.
func fits(used, limit memory.Bytes) bool { return used.Percent(105) < limit }
