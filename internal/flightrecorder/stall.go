// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"fmt"
	"time"

	"github.com/memfit/memfit/internal/cgroup"
	"github.com/memfit/memfit/internal/format"
	"github.com/memfit/memfit/internal/memory"
)

// Stall is a period in which a container stalled just below its limit without an OOM kill.
type Stall struct {
	Limits
	Minute // before the first sample that showed the stall, stallWindow after Started

	Started, Ended time.Time // Ended is zero while the stall continues
	Anon           memory.Bytes
	High           memory.Bytes // memory.high, if the container stalled at it; 0: at its limit
	FaultsPerSec   int
	StalledPercent int // PSI memory full; 0 where it is unavailable
}

// The thresholds of a stall are the same as in internal/oom, which justifies each with recordings. In a stall,
// anonymous memory leaves no space for page cache, so that the program's own files are read from disk again and again.
const (
	stallAnonPercent  = 85
	stallUsagePercent = 95
	stallFaults       = 3
	stallPressure     = 10
	// stallTimesUsual: in a stall, the rate of faults is at least this many times the usual rate.
	stallTimesUsual = 3
	// stallWindow is the period over which counters are compared, although a container at its limit is read more often.
	stallWindow = 5 * time.Second
	// stallBegins is how long consecutive windows must show a stall. It excludes bursts, as when a library is loaded.
	stallBegins = 6 * stallWindow
	stallOver   = time.Minute      // a stall has ended when no window has shown it for this long
	stallStart  = 2 * time.Minute  // faults count as usual only after this time: a starting process loads its program
	stallGap    = 30 * time.Second // the longest time between two readings that are compared
)

// stallWatch compares readings [stallWindow] apart.
type stallWatch struct {
	first  time.Time      // the first reading
	from   cgroup.Reading // the reading at the start of the window
	fromAt time.Time
	usual  float64 // the highest rate of faults per second in a period of stallBegins away from the limit
	away   away
	run    stallRun
	shown  time.Time // the end of the last window that showed a stall
	last   *Stall    // the last stall, which may be going on
	going  bool
}

// away is a period away from the limit that is not yet in usual. It must last stallBegins, because memory pressure on
// the node can also drop page cache of a stalled container.
type away struct {
	lasted time.Duration
	faults uint64
}

// stallRun is a series of windows that all show a stall; began is zero if the last window did not show one.
type stallRun struct {
	began  time.Time
	before Minute // the minute before the end of its first window
	faults uint64
	waited time.Duration // PSI memory full
}

// add adds a full sample, and reports whether a stall began or ended. It calls approach when a stall may begin, because
// the minute before is dropped by the time the stall is certain.
func (w *stallWatch) add(s Sample, approach func(before time.Time, level memory.Bytes) Minute) bool {
	took := s.At.Sub(w.fromAt)
	if w.first.IsZero() {
		w.first = s.At
	}
	if w.fromAt.IsZero() || took < 0 || took > stallGap { // faults in a gap are unknown
		w.from, w.fromAt, w.run, w.away, w.shown = s.Reading, s.At, stallRun{}, away{}, s.At
		return false
	}
	if took < stallWindow {
		return false
	}
	if faults, waited := w.window(s); w.shows(s, took, faults, waited) {
		if w.run.began.IsZero() {
			w.run = stallRun{began: w.fromAt, before: approach(s.At, s.bound().Percent(stallUsagePercent))}
		}
		w.run.faults, w.run.waited, w.shown = w.run.faults+faults, w.run.waited+waited, s.At
	} else {
		w.run = stallRun{}
	}
	w.from, w.fromAt = s.Reading, s.At
	return w.judge(s)
}

// window returns the pages read from disk since the last window, and how long all tasks waited.
func (w *stallWatch) window(s Sample) (faults uint64, waited time.Duration) {
	if s.Reading.Faults > w.from.Faults {
		faults = s.Reading.Faults - w.from.Faults
	}
	if now, before := s.Reading.Waited, w.from.Waited; now != nil && before != nil {
		waited = max(*now-*before, 0)
	}
	return faults, waited
}

// shows reports whether the window has the signs of a stall.
func (w *stallWatch) shows(s Sample, took time.Duration, faults uint64, waited time.Duration) bool {
	rate, limit := float64(faults)/took.Seconds(), s.bound()
	if limit == cgroup.Unlimited || s.Reading.Usage < limit.Percent(stallUsagePercent) ||
		s.Reading.Anon < limit.Percent(stallAnonPercent) {
		if w.fromAt.Sub(w.first) >= stallStart {
			w.updateUsual(took, faults)
		}
		return false
	}
	w.away = away{}
	return s.Reading.Faults >= w.from.Faults &&
		(rate >= max(stallFaults, stallTimesUsual*w.usual) || 100*waited >= stallPressure*took)
}

// updateUsual updates the usual rate of faults.
func (w *stallWatch) updateUsual(took time.Duration, faults uint64) {
	w.away = away{w.away.lasted + took, w.away.faults + faults}
	if a := w.away; a.lasted >= stallBegins {
		w.usual, w.away = max(w.usual, float64(a.faults)/a.lasted.Seconds()), away{}
	}
}

// bound returns the lowest of the limits of container and pod, and memory.high, above which the kernel slows tasks.
func (s *Sample) bound() memory.Bytes { return min(s.Reading.Limit, s.PodLimit, s.Reading.High) }

// judge begins or ends a stall if it is certain, and reports whether it did.
func (w *stallWatch) judge(s Sample) bool {
	lasted := s.At.Sub(w.run.began)
	switch {
	case !w.going && !w.run.began.IsZero() && lasted >= stallBegins:
		w.going, w.last = true, &Stall{
			Limits: Limits{s.Reading.Limit, s.PodLimit}, Minute: w.run.before, Started: w.run.began, Anon: s.Reading.Anon,
			FaultsPerSec:   int(float64(w.run.faults) / lasted.Seconds()),
			StalledPercent: int(min(100*w.run.waited/lasted, 100)),
		}
		limit, _ := w.last.Limit()
		if bound := s.bound(); bound < limit {
			w.last.High = bound
		}
		return true
	case w.going && s.At.Sub(w.shown) >= stallOver:
		w.going = false
		ended := *w.last // do not change the reported stall
		ended.Ended = s.At
		w.last = &ended
		return true
	}
	return false
}

// Summary describes the stall in a sentence.
func (s *Stall) Summary() string {
	limit, _ := s.Limit()
	where := "its limit of " + limit.String()
	if limit < s.ContainerLimit {
		where = "the limit of " + limit.String() + " of its pod"
	}
	if s.High > 0 {
		where = fmt.Sprintf("memory.high of %s, below its limit", s.High)
		if limit != cgroup.Unlimited {
			where += " of " + limit.String()
		}
	}
	text := fmt.Sprintf("stalls at %s without an OOM kill: %s is anonymous memory, and %d pages a second of its "+
		"program or files are read back from disk", where, s.Anon, s.FaultsPerSec)
	if s.StalledPercent > 0 {
		text += fmt.Sprintf("; all its tasks waited for memory %d %% of the time", s.StalledPercent)
	}
	if g := s.Growth; g.For > 0 {
		text += fmt.Sprintf("; before that, usage grew by %s/s for %s", g.PerSecond, format.Short(g.For))
	}
	return text
}
