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
	average     float32 // the percentage of time in which all tasks waited (PSI memory full, avg300)
	counted     bool    // faults is known
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

// showsNoStall reports whether the sample has neither faults nor pressure, so it cannot show a stall.
func (s stallSample) showsNoStall() bool { return !s.counted && s.average == 0 }

// run is a series of consecutive intervals with the same signal.
type run struct {
	signal signal
	n      int32          // the number of intervals
	since  memory.Instant // the start of the first interval
	faults int64
	waited float64 // seconds in which all tasks waited
	lasted time.Duration
}

// signal is what an interval shows: nothing, a stall, its end, or that a raise did not end it.
type signal uint8

const (
	noSignal signal = iota
	stallSignal
	calmSignal
	ineffectiveSignal
)

// interval is the time between two samples.
type interval struct {
	from, to stallSample
	bounds   StallBounds
}

func (i interval) lasted() time.Duration { return i.to.at.Sub(i.from.at) }

// faults returns the number of major faults in the interval; 0 if unknown.
func (i interval) faults() int64 {
	if !i.to.counted || !i.from.counted {
		return 0
	}
	return max(i.to.faults-i.from.faults, 0)
}

func (i interval) rate() float64 { return float64(i.faults()) / i.lasted().Seconds() }

// pressure returns the percentage of the interval in which all tasks waited. The kernel's average decays exponentially
// over averageSpan, so pressure subtracts the rest of the first average from the second. Averages have two decimals,
// so an interval of 15 s is exact to 0.2 %.
func (i interval) pressure() float64 {
	left := math.Exp(-i.lasted().Seconds() / averageSpan.Seconds())
	return min(max((float64(i.to.average)-float64(i.from.average)*left)/(1-left), 0), 100)
}

// atLimit reports whether anonymous memory fills nearly all of the limit, so that the kernel must drop page cache, or
// the kernel throttles the container at memory.high.
func (i interval) atLimit() bool { return i.fills(i.bounds.Limit) || i.throttled() }

func (i interval) fills(bound memory.Bytes) bool {
	return bound > 0 && i.to.rss >= bound.Percent(stallAnonPercent) && i.to.usage >= bound.Percent(stallUsagePercent)
}

// throttled reports whether usage is at memory.high and tasks wait. Above memory.high the kernel makes allocating tasks
// sleep, which only pressure shows: no pages may be left to read back.
func (i interval) throttled() bool { return i.fills(i.bounds.High) && i.pressure() >= stallPressure }

// readsBack reports whether the pages that were read did not enlarge the page cache, so others were dropped for them.
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

// rate returns the major faults per second over the run.
func (r *run) rate() int32 {
	return int32(min(float64(r.faults)/r.lasted.Seconds()+0.5, 1<<30))
}
