// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package history

import "math"

// ring has the newest points of all tracked instances, in order of arrival. A point that arrives after a newer point of
// another instance gets the newer time. Times are stored as gaps, so that the oldest point can be dropped at no cost.
type ring struct {
	newest int64              // time of the newest point
	gap    [PointsKept]uint16 // seconds since the previous point
	value  [PointsKept]size16
	number [PointsKept]uint8 // of the instance
	head   uint8             // index of the oldest
	n      uint8
}

// add appends a point. If the instance has a point within the last spacing seconds, add merges them, keeping the higher
// value.
func (r *ring) add(v size16, at int64, number uint8, spacing int64) {
	t := r.newest
	for i := int(r.n) - 1; i >= 0 && at-t < spacing; i-- {
		j := r.index(i)
		if r.number[j] == number {
			r.value[j] = max(r.value[j], v)
			return
		}
		t -= int64(r.gap[j])
	}
	gap := max(at-r.newest, 0)
	if r.n == 0 || gap > math.MaxUint16 {
		*r = ring{newest: at}
		gap = 0
	}
	j := r.index(int(r.n))
	if r.n == PointsKept {
		r.head = uint8(r.index(1)) //nolint:gosec // below PointsKept
	} else {
		r.n++
	}
	r.gap[j], r.value[j], r.number[j] = uint16(gap), v, number
	r.newest += gap
}

func (r *ring) index(i int) int { return (int(r.head) + i) % PointsKept }
