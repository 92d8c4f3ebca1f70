// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"time"

	"golang.org/x/time/rate"
)

// Writes is when the object of one pod was and may be written.
type Writes struct {
	first  time.Time // when the object may first be written where nothing happens
	last   time.Time
	follow bool          // the last write was triggered: what became of it may follow soon, once
	burst  *rate.Limiter // triggered writes
	quiet  *rate.Limiter // writes of changed numbers
	jumps  *rate.Limiter // the same of numbers that jumped, beside those
}

const (
	// quietEvery makes at most six writes an hour and pod where nothing happens. A node of 110 pods writes at most 0.2
	// objects a second then, and a thousand such nodes as many as a small controller does.
	// Up to quietMost of them may follow each other at quietFloor: numbers that jump and then stay, as after a burst, are
	// what a user inspects a minute later; ten minutes are too long.
	quietEvery = 10 * time.Minute
	quietMost  = 3
	quietFloor = 30 * time.Second
	// jumpsEvery makes two writes an hour and pod more, for numbers that jump by a half: what a pod needs to start uses up
	// the others, and one replica of six that then took three times as much was reported eight minutes late.
	jumpsEvery = 30 * time.Minute
	jumpsMost  = 2
	// unchangedEvery is when numbers that are still the same are written anyway, so that their time is not a riddle.
	unchangedEvery = 3 * time.Hour
	// floor is the least time between two writes of one pod, whatever happens.
	floor = 5 * time.Second
	// followUp is when, after a trigger, the numbers are written that came of it: the container that was started again.
	followUp = time.Minute
	// burstMost triggers may follow each other at the floor, and then one burstEvery: a pod that is killed every ten
	// seconds is reported every minute, with the count of its kills.
	burstMost  = 6
	burstEvery = time.Minute
	// firstAfter is how old a pod gets before it is written: a pod that lives for seconds is not worth an object. Writes
	// are spread over firstSpread more, so that the containers of a node that starts, or of a thousand nodes whose agents
	// start, are not written at the same time.
	firstAfter  = 30 * time.Second
	firstSpread = time.Minute
)

// NewWrites is for a pod that was first seen now. spread, from 0 to 1, is its position among others.
func NewWrites(now time.Time, spread float64) Writes {
	return Writes{
		first: now.Add(firstAfter + time.Duration(spread*float64(firstSpread))),
		burst: rate.NewLimiter(rate.Every(burstEvery), burstMost),
		quiet: rate.NewLimiter(rate.Every(quietEvery), quietMost),
		jumps: rate.NewLimiter(rate.Every(jumpsEvery), jumpsMost),
	}
}

// Change is how far the numbers are from those that were written.
type Change int

const (
	// Same is by less than an eighth.
	Same Change = iota
	// Changed is by an eighth or more, or something else than a number.
	Changed
	// Jumped is by a half or more.
	Jumped
)

// Due reports whether the object should be written now. Trigger: something happened that is to be written immediately.
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

// Wrote takes note of a write, or of an attempt: one that fails counts, so that an API server in trouble is not asked
// more often than one that is well.
func (w *Writes) Wrote(now time.Time, trigger bool) {
	switch {
	case trigger:
		w.burst.AllowN(now, 1)
	case !w.quiet.AllowN(now, 1):
		w.jumps.AllowN(now, 1)
	}
	w.last, w.follow = now, trigger
}
