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
	// readingsKept bounds the readings of an instance. When they are full, every other one is dropped, so that 16 to 32
	// readings over minutes or hours show the shape of a fast leak. They take 228 bytes per running container.
	readingsKept = 32
	// widestSpacing bounds the readings to the last two hours; the history covers earlier ones.
	widestSpacing = 4 * period.Minute
	// latestKept is the number of latest readings for comparing replicas: about a minute.
	latestKept = 4
)

// readings are the recent demand of one running instance. Times are in Unix seconds, sizes in KiB.
type readings struct {
	from           uint32               // time of the oldest kept reading
	after          [readingsKept]uint16 // seconds between from and each kept reading
	kib            [readingsKept]uint32 // demand at each kept reading
	spacing        uint16               // least seconds between kept readings
	n              uint8                // number of kept readings
	latestCount    uint8                // number of readings in latest
	workingSetOnly bool                 // the last reading is a working set, without RSS
	latest         [latestKept]uint32   // the last readings, newest first, whether kept or not
	last           uint32               // time of the last reading
	usage          uint32               // last reading of usage with page cache; 0: unknown
}

// inKiB returns a size in whole KiB, up to 4 TiB.
func inKiB(b memory.Bytes) uint32 {
	return uint32(min(b/memory.KiB, math.MaxUint32)) //nolint:gosec // bounded
}

// add adds one sample. It skips repeated samples and samples older than the last one.
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
		r.n, r.spacing = 0, 0 // after a gap: the oldest kept reading is more than 18 hours old
	}
	if r.n == 0 {
		r.from = at
	}
	r.after[r.n], r.kib[r.n] = uint16(at-r.from), r.latest[0] //nolint:gosec // checked
	r.n++
}

// at returns the time of reading i, in Unix seconds.
func (r *readings) at(i int) uint32 { return r.from + uint32(r.after[i]) }

// thin drops every other reading, or the older half if the readings already have the widest spacing.
func (r *readings) thin() {
	const half = readingsKept / 2
	kept := func(i int) int { return 2*i + 1 } // the index of the reading that moves to index i
	if period.Of(time.Duration(r.spacing)*time.Second) >= widestSpacing {
		kept = func(i int) int { return half + i }
	} else {
		reach := r.at(readingsKept-1) - r.at(1)
		r.spacing = uint16(max(reach/(half-1)-1, 1)) //nolint:gosec // less than after holds
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

// now returns the last reading; 0: none.
func (r *readings) now() memory.Bytes { return memory.Bytes(r.latest[0]) * memory.KiB }

// most returns the highest kept reading, which is at most about two hours old.
func (r *readings) most() memory.Bytes {
	most := slices.Max(r.latest[:])
	if r.n > 0 {
		most = max(most, slices.Max(r.kib[:r.n]))
	}
	return memory.Bytes(most) * memory.KiB
}

// low returns the lowest of the latest readings, so that a burst does not make a pod an outlier; 0: fewer than
// latestKept readings.
func (r *readings) low() memory.Bytes {
	if r.latestCount < latestKept {
		return 0
	}
	return memory.Bytes(slices.Min(r.latest[:])) * memory.KiB
}

// rises reports whether demand grew in each quarter of the readings, and by at least 25 % in total. It is a cheap first
// test for a leak.
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
