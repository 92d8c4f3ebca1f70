// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"time"

	"golang.org/x/time/rate"
)

// Writes schedules the writes of one pod's MemorySnapshot.
type Writes struct {
	first  time.Time // earliest first write without an event
	last   time.Time
	follow bool          // the last write was triggered: one follow-up is due after followUp
	burst  *rate.Limiter // triggered writes
	quiet  *rate.Limiter // writes of changed numbers
	jumps  *rate.Limiter // additional writes of numbers that jumped
}

const (
	// quietEvery allows six writes an hour for a pod without events: a node of 110 pods writes at most 0.2 objects a
	// second. Up to maxQuiet may follow each other at quietFloor, because users check within a minute after a burst.
	quietEvery = 10 * time.Minute
	maxQuiet   = 3
	quietFloor = 30 * time.Second
	// jumpsEvery allows two more writes an hour for a pod whose numbers change by half or more: a pod's start uses up the
	// quiet writes, and one replica that then used three times as much was reported eight minutes late.
	jumpsEvery     = 30 * time.Minute
	maxJumps       = 2
	unchangedEvery = 3 * time.Hour   // unchanged numbers are written anyway, to update their time
	floor          = 5 * time.Second // minimum time between any two writes of one pod
	followUp       = time.Minute     // delay of a second write after a trigger, with the restarted container
	// maxBurst triggered writes may follow each other at floor, later ones every burstEvery: a pod that is OOM-killed
	// every ten seconds is reported every minute, with its count of kills.
	maxBurst   = 6
	burstEvery = time.Minute
	// firstAfter is the age of a pod at its first write: a pod that lives for seconds needs no object. First writes are
	// spread over firstSpread, so that those of a new node or of a thousand restarted agents do not coincide.
	firstAfter  = 30 * time.Second
	firstSpread = time.Minute
)

// NewWrites returns the schedule of a pod first seen now. spread, from 0 to 1, delays its first write by up to
// firstSpread.
func NewWrites(now time.Time, spread float64) Writes {
	return Writes{
		first: now.Add(firstAfter + time.Duration(spread*float64(firstSpread))),
		burst: rate.NewLimiter(rate.Every(burstEvery), maxBurst),
		quiet: rate.NewLimiter(rate.Every(quietEvery), maxQuiet),
		jumps: rate.NewLimiter(rate.Every(jumpsEvery), maxJumps),
	}
}

// Change is the difference between the current and the last written numbers.
type Change int

// The changes.
const (
	Same    Change = iota // by less than an eighth
	Changed               // by an eighth or more, or a change other than of numbers
	Jumped                // by a half or more
)

// Due reports whether the object should be written now. trigger: an event must be written immediately.
func (w *Writes) Due(now time.Time, trigger bool, change Change) bool {
	since := now.Sub(w.last)
	switch {
	case w.last.IsZero():
		return trigger || !now.Before(w.first)
	case since < floor:
		return false
	case trigger:
		return w.burst.TokensAt(now) >= 1
	case change != Same:
		left := w.quiet.TokensAt(now) >= 1 || change == Jumped && w.jumps.TokensAt(now) >= 1
		return since >= quietFloor && left || w.follow && since >= followUp
	}
	return since >= unchangedEvery
}

// Wrote records a write. Failed attempts count, so that an overloaded API server gets no more requests.
func (w *Writes) Wrote(now time.Time, trigger bool) {
	switch {
	case trigger:
		w.burst.AllowN(now, 1)
	case !w.quiet.AllowN(now, 1):
		w.jumps.AllowN(now, 1)
	}
	w.last, w.follow = now, trigger
}
