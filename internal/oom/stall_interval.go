// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package oom

import (
	"math"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// stallSample has the relevant fields of a sample.
type stallSample struct {
	at, started memory.Instant
	rss, usage  memory.Bytes
	faults      int64
	average     float32 // of waiting, in percent
	counted     bool    // next to average, where it takes no additional space
}

func stallSampleOf(s memory.Sample) stallSample {
	out := stallSample{
		at: memory.InstantOf(s.Time), started: memory.InstantOf(s.Started),
		usage: s.Usage, average: float32(s.WaitedPercent), faults: s.MajorFaults, counted: s.HasMajorFaults,
	}
	if s.HasRSS {
		out.rss = s.RSS
	}
	return out
}

// blind reports whether samples of this source cannot show a stall.
func (s stallSample) blind() bool { return !s.counted && s.average == 0 }

// run is a series of intervals with the same result.
type run struct {
	signal signal
	n      int32
	since  memory.Instant // the beginning of the first
	faults int64
	waited float64 // seconds
	lasted time.Duration
}

type signal uint8

const (
	noSignal signal = iota
	stallSignal
	calmSignal
	ineffectiveSignal
)

// interval is the evidence of two samples for the time between them.
type interval struct {
	from, to stallSample
	bounds   StallBounds
}

func (i interval) lasted() time.Duration { return i.to.at.Sub(i.from.at) }

// faults returns the major faults in it.
func (i interval) faults() int64 {
	if !i.to.counted || !i.from.counted {
		return 0
	}
	return max(i.to.faults-i.from.faults, 0)
}

func (i interval) rate() float64 { return float64(i.faults()) / i.lasted().Seconds() }

// pressure returns the share of the time in which all tasks waited, in percent, assuming a constant share: the kernel's
// average decays exponentially over averageSpan, so the first average is part of the second. Averages are in hundredths
// of a percent, which is 0.2 % of 15 s.
func (i interval) pressure() float64 {
	left := math.Exp(-i.lasted().Seconds() / averageSpan.Seconds())
	return min(max((float64(i.to.average)-float64(i.from.average)*left)/(1-left), 0), 100)
}

// full reports whether anonymous memory fills nearly all of the limit, so that the kernel must drop page cache; or the
// container is slowed down at memory.high.
func (i interval) full() bool { return i.fills(i.bounds.Limit) || i.throttled() }

func (i interval) fills(bound memory.Bytes) bool {
	return bound > 0 && i.to.rss >= bound.Percent(stallAnonPercent) && i.to.usage >= bound.Percent(stallUsagePercent)
}

// throttled reports whether memory is at memory.high and tasks wait for it. Above it the kernel makes allocating tasks
// sleep, which shows only as pressure: there may be no file to read back.
func (i interval) throttled() bool { return i.fills(i.bounds.High) && i.pressure() >= stallPressure }

// readsBack reports whether the pages read did not remain in memory, or displaced as many.
func (i interval) readsBack() bool {
	read := memory.Bytes(i.faults()) * minFaultBytes
	return i.to.cache().Minus(i.from.cache()) < read.Percent(50)
}

func (s stallSample) cache() memory.Bytes { return s.usage.Minus(s.rss) }

func (r *run) add(what signal, i interval) {
	if what != r.signal || r.n == 0 {
		*r = run{signal: what, since: i.from.at}
	}
	r.n++
	r.lasted += i.lasted()
	r.faults += i.faults()
	r.waited += i.pressure() / 100 * i.lasted().Seconds()
}

func (r *run) atLeast(d time.Duration, n int32) bool { return r.lasted >= d && r.n >= n }

// rate of major faults a second over the run.
func (r *run) rate() int32 {
	return int32(min(float64(r.faults)/r.lasted.Seconds()+0.5, 1<<30))
}
