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

// Stall is a time in which a container stalled just below its limit without being killed.
type Stall struct {
	Limits
	Minute // before its first sign, stallWindow after it started

	Started, Ended time.Time // Ended is zero while it goes on
	Anon           memory.Bytes
	High           memory.Bytes // memory.high, where the kernel held it there, below Limit; 0: it did not
	FaultsPerSec   int
	StalledPercent int // PSI memory full; 0 where it is unavailable
}

// The thresholds of a stall are those of internal/oom, which justifies each with recordings: anonymous memory leaves no
// memory for the program's own files, which are read back from disk over and over.
const (
	stallAnonPercent  = 85
	stallUsagePercent = 95
	stallFaults       = 3
	stallPressure     = 10
	// stallWindow is what is compared; stallWindows of them, a minute, make a stall, and as many without it end it.
	stallWindow  = 10 * time.Second
	stallWindows = 6
)

// stallWatch compares readings ten seconds apart.
type stallWatch struct {
	from      cgroup.Reading
	fromAt    time.Time
	began     time.Time // of the windows that show it in a row
	before    Minute    // the first of them showed it
	in, out   int       // windows in a row that show it, or do not
	last      *Stall
	going     bool
	faults    int
	stalledPc int
}

// add reports whether a stall began or ended. approach is what was seen before a time: when a stall is certain, a
// minute after it began, that would be forgotten.
func (w *stallWatch) add(s Sample, approach func(before time.Time, level memory.Bytes) Minute) bool {
	took := s.At.Sub(w.fromAt)
	if w.fromAt.IsZero() || took < 0 || took > 3*stallWindow { // nothing is known about the time of a gap
		w.from, w.fromAt, w.in = s.Reading, s.At, 0
		return false
	}
	if took < stallWindow {
		return false
	}
	if w.shows(s, took) {
		if w.in == 0 {
			w.began, w.before = w.fromAt, approach(s.At, s.bound().Percent(stallUsagePercent))
		}
		w.in, w.out = w.in+1, 0
	} else {
		w.in, w.out = 0, w.out+1
	}
	w.from, w.fromAt = s.Reading, s.At
	return w.judge(s)
}

// shows: the time between both readings looks like a stall.
func (w *stallWatch) shows(s Sample, took time.Duration) bool {
	limit := s.bound()
	if limit == cgroup.Unlimited || s.Reading.Usage < limit.Percent(stallUsagePercent) ||
		s.Reading.Anon < limit.Percent(stallAnonPercent) || s.Reading.Faults < w.from.Faults {
		return false
	}
	w.faults = int(float64(s.Reading.Faults-w.from.Faults) / took.Seconds())
	w.stalledPc = 0
	if now, before := s.Reading.Pressure, w.from.Pressure; now != nil && before != nil {
		w.stalledPc = int(min(max(100*(now.Full-before.Full)/took, 0), 100))
	}
	return w.faults >= stallFaults || w.stalledPc >= stallPressure
}

// bound is what holds the container: its limit, that of its pod, or memory.high, from where on the kernel slows it
// down.
func (s *Sample) bound() memory.Bytes { return min(s.Reading.Limit, s.PodLimit, s.Reading.High) }

func (w *stallWatch) judge(s Sample) bool {
	switch {
	case !w.going && w.in >= stallWindows:
		w.going = true
		w.last = &Stall{
			Limits: Limits{s.Reading.Limit, s.PodLimit}, Minute: w.before, Started: w.began, Anon: s.Reading.Anon,
			FaultsPerSec: w.faults, StalledPercent: w.stalledPc,
		}
		limit, _ := w.last.Limit()
		if bound := s.bound(); bound < limit {
			w.last.High = bound
		}
		return true
	case w.going && w.out >= stallWindows:
		w.going = false
		ended := *w.last // what was reported before is unchanged
		ended.Ended = s.At
		w.last = &ended
		return true
	}
	return false
}

// Summary is the stall in a sentence.
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
	text := fmt.Sprintf("stands still at %s without being killed: %s of it is anonymous memory, and %d "+
		"times a second a page of its program or files is read back from disk", where, s.Anon, s.FaultsPerSec)
	if s.StalledPercent > 0 {
		text += fmt.Sprintf("; no task of it could go on for %d %% of the time", s.StalledPercent)
	}
	if g := s.Growth; g.For > 0 {
		text += fmt.Sprintf("; before that it had grown by %s/s for %s", memory.Bytes(g.PerSecond), format.Short(g.For))
	}
	return text
}
