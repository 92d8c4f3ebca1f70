// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
)

const (
	// lowsSpan is long enough that the garbage collector of any runtime runs within it.
	lowsSpan = 6 * period.Hour
	// soonSpan is the period of the first low point: an hour, before which no size is recommended (enoughSpan in
	// internal/recommend).
	soonSpan = period.Hour
	// liveSetDays is how many days a live set is kept after a replica was last near it: long enough for a weekly peak.
	liveSetDays = 8
	// nearPercent of a live set counts as reaching it, because collections differ.
	nearPercent = 90
	// fallPercent bounds each decrease of a live set after liveSetDays: to no less than this share.
	fallPercent = 75
)

// Lows has the lowest memory of one instance in spans of six hours. The zero value is ready to use.
type Lows struct {
	first, since, last stamp  // start of the instance, start of the current span, last sample
	low, whole         uint32 // KiB, in the current span and in the span before it; 0: none yet
}

// Add adds a sample of an instance that started at that time (zero: with its first sample). It ignores samples of the
// first minutes (warmUp), in which the live set is not allocated yet.
func (l *Lows) Add(s memory.Sample, started time.Time) {
	at := s.Time.Unix()
	if at <= int64(l.last) || at > math.MaxUint32 {
		return
	}
	if l.first == 0 {
		if l.first = stamp(at); !started.IsZero() && started.Before(s.Time) { //nolint:gosec // checked above
			l.first = stamp(max(started.Unix(), 1)) //nolint:gosec // earlier than at
		}
	}
	if at-int64(l.first) < int64(warmUp.Duration()/time.Second) {
		return
	}
	use := s.RSS
	if !s.HasRSS {
		use = s.WorkingSet // more than RSS, so the live set is not too small
	}
	kib := uint32(min(use/memory.KiB+1, math.MaxUint32)) //nolint:gosec // bounded
	switch {
	case l.since == 0:
		l.since, l.low = stamp(at), kib //nolint:gosec // checked above
	case at-int64(l.since) >= int64(lowsSpan.Duration()/time.Second):
		l.since, l.low, l.whole = stamp(at), kib, min(l.low, kib) //nolint:gosec // checked above
	default:
		l.low = min(l.low, kib)
	}
	l.last = stamp(at) //nolint:gosec // checked above
}

// Low returns the lowest memory of the last complete span of six hours, with whole true. Without such a span it returns
// the lowest of the current span after an hour, and 0 before.
func (l *Lows) Low() (low memory.Bytes, whole bool) {
	switch {
	case l.whole > 0:
		return memory.Bytes(l.whole) * memory.KiB, true
	case l.last-l.since >= stamp(soonSpan.Duration()/time.Second): //nolint:gosec // an hour at most
		return memory.Bytes(l.low) * memory.KiB, false
	}
	return 0, false
}

// LiveSet is the highest low point of a container's replicas: an upper bound of its live heap. Zero: unknown.
type LiveSet struct {
	Bytes memory.Bytes
	// Seen is the day (UTC) on which a replica last reached nearPercent of Bytes.
	Seen time.Time
}

// With returns the live set after replicas did not go below low for six hours. The live set rises immediately and falls
// slowly, for weekly peaks. It changes in steps of 2 to 3 %, so that values derived from it rarely change.
func (s LiveSet) With(low memory.Bytes, now time.Time) LiveSet {
	today := now.UTC().Truncate(period.Day.Duration())
	switch {
	case low == 0:
		return s
	case low > s.Bytes:
		return LiveSet{stepped(low), today}
	case low >= s.Bytes.Percent(nearPercent):
		return LiveSet{s.Bytes, today}
	case today.Sub(s.Seen) > (liveSetDays * period.Day).Duration():
		return LiveSet{min(s.Bytes, stepped(max(low, s.Bytes.Percent(fallPercent)))), today}
	}
	return s
}

// stepped rounds up to a 32nd of a power of two, at least to whole MiB.
func stepped(b memory.Bytes) memory.Bytes {
	step := memory.MiB
	for step*64 < b {
		step *= 2
	}
	return b.CeilTo(step)
}
