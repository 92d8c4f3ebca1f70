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
	// lowsSpan contains a collection of any collecting runtime; soonSpan is the age of a first low point: as long as a
	// container is too young for a size (enoughSpan in internal/recommend).
	lowsSpan = 6 * period.Hour
	soonSpan = period.Hour
	// liveSetDays is how long a live set is kept after replicas were last near it: a week and a day, so that a weekly
	// peak counts.
	liveSetDays = 8
	// nearPercent of a live set counts as reaching it, because collections differ. After liveSetDays it falls by at most
	// a quarter at a time.
	nearPercent = 90
	fallPercent = 75
)

// Lows holds the lowest memory of one instance in every six hours. The zero value is ready.
type Lows struct {
	first, since, last stamp
	low, whole         uint32 // KiB; of the hours since, and of the six hours before them (0: not yet)
}

// Add adds a sample of an instance with this start (zero: its first sample). Samples of its first minutes do not count,
// before the live set is allocated.
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
		use = s.WorkingSet // more than RSS, so not too small
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

// Low returns the lowest memory of the last whole six hours; before that, of an hour or more, with whole false. 0: too
// soon.
func (l *Lows) Low() (low memory.Bytes, whole bool) {
	switch {
	case l.whole > 0:
		return memory.Bytes(l.whole) * memory.KiB, true
	case l.last-l.since >= stamp(soonSpan.Duration()/time.Second): //nolint:gosec // an hour at most
		return memory.Bytes(l.low) * memory.KiB, false
	}
	return 0, false
}

// LiveSet is the highest low point of a container's replicas: an upper bound of its live heap. The zero value is
// unknown.
type LiveSet struct {
	Bytes memory.Bytes
	// Seen is the day (UTC) on which a replica was last close to it.
	Seen time.Time
}

// With returns the live set after replicas did not go below low for six hours. It rises immediately and falls slowly,
// for weekly peaks. It changes in steps of 2 to 3 %, because others depend on it.
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
