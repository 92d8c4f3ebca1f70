// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/shape"
)

const (
	// readingsKept is the number of readings, spread over the life of an instance: when full, every other one is dropped.
	// So there are always 16 to 32, enough for the shape of a fast leak, over minutes or hours. They take 228 bytes per
	// running container.
	readingsKept = 32
	// widestSpacing limits them to two hours, after which the history is as good.
	widestSpacing = 4 * period.Minute
	// latestKept is the number of latest readings for the comparison with replicas: a minute at the usual interval.
	latestKept = 4
)

// readings are the demand of one running instance: times in Unix seconds, sizes in KiB.
type readings struct {
	from           uint32
	after          [readingsKept]uint16 // seconds after from
	kib            [readingsKept]uint32
	spacing        uint16 // seconds
	n              uint8
	latestCount    uint8 // of latest, the last few without gaps
	workingSetOnly bool
	latest         [latestKept]uint32
	last           uint32
	usage          uint32 // the last reading of all usage, page cache included; 0: unknown
}

// inKiB returns a size in whole KiB, up to 4 TiB.
func inKiB(b memory.Bytes) uint32 {
	return uint32(min(b/memory.KiB, math.MaxUint32)) //nolint:gosec // bounded
}

// add adds one sample; it skips repeated and late ones.
func (r *readings) add(s *memory.Sample) {
	at := uint32(s.Time.Unix()) //nolint:gosec // valid until 2106
	if at <= r.last {
		return
	}
	copy(r.latest[1:], r.latest[:])
	r.latest[0], r.last, r.usage = inKiB(s.Demand()), at, inKiB(s.Usage)
	r.workingSetOnly = !s.HasRSS && !s.Exact
	r.latestCount = min(r.latestCount+1, latestKept)

	if r.n > 0 && at-r.at(int(r.n)-1) < uint32(r.spacing) {
		return
	}
	if r.n == readingsKept {
		r.thin()
	}
	if r.n > 0 && at-r.from > math.MaxUint16 {
		r.n, r.spacing = 0, 0 // after a gap of most of a day, earlier readings do not continue
	}
	if r.n == 0 {
		r.from = at
	}
	r.after[r.n], r.kib[r.n] = uint16(at-r.from), r.latest[0] //nolint:gosec // checked
	r.n++
}

// at returns the time of reading i, in Unix seconds.
func (r *readings) at(i int) uint32 { return r.from + uint32(r.after[i]) }

// thin drops every other reading, or the older half if they cover two hours.
func (r *readings) thin() {
	const half = readingsKept / 2
	kept := func(i int) int { return 2*i + 1 }
	if reach := r.at(readingsKept-1) - r.at(1); period.Of(time.Duration(r.spacing)*time.Second) >= widestSpacing {
		kept = func(i int) int { return half + i }
	} else {
		r.spacing = uint16(max(reach/(half-1)-1, 1)) //nolint:gosec // a part of what after holds
	}
	from := r.at(kept(0))
	for i := range half {
		r.after[i], r.kib[i] = uint16(r.at(kept(i))-from), r.kib[kept(i)] //nolint:gosec // less than it was
	}
	r.from, r.n = from, half
}

// lastAt returns the time of the last reading, in whole seconds; zero: none.
func (r *readings) lastAt() time.Time {
	if r.last == 0 {
		return time.Time{}
	}
	return time.Unix(int64(r.last), 0).UTC()
}

func (r *readings) now() memory.Bytes { return memory.Bytes(r.latest[0]) * memory.KiB }

// most returns the highest kept reading, at most two hours old.
func (r *readings) most() memory.Bytes {
	most := slices.Max(r.latest[:])
	if r.n > 0 {
		most = max(most, slices.Max(r.kib[:r.n]))
	}
	return memory.Bytes(most) * memory.KiB
}

// low returns the lowest of the latest readings, so that a burst does not make a pod an outlier; 0: too few, as just
// after a start.
func (r *readings) low() memory.Bytes {
	if r.latestCount < latestKept {
		return 0
	}
	return memory.Bytes(slices.Min(r.latest[:])) * memory.KiB
}

// rises is a cheap first test, which most instances fail: use rises from quarter to quarter, and by a quarter in total.
func (r *readings) rises() bool {
	last := int(r.n) - 1
	if last < 4 {
		return false
	}
	for q := range 4 {
		if r.kib[last*q/4] >= r.kib[last*(q+1)/4] {
			return false
		}
	}
	return uint64(r.kib[last])*4 >= uint64(r.kib[0])*5
}

func (r *readings) instance(c memory.ContainerRef, started time.Time) shape.Instance {
	in := shape.Instance{Container: c, Started: started}
	for i := range int(r.n) {
		p := shape.Point{Time: time.Unix(int64(r.at(i)), 0).UTC(), RSS: memory.Bytes(r.kib[i]) * memory.KiB}
		in.Points = append(in.Points, p)
	}
	return in
}
