// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"time"

	"github.com/memfit/memfit/internal/memory"
)

// Growth is a climb that lasts until the last reading.
type Growth struct {
	PerSecond memory.Bytes
	For       time.Duration
}

const (
	// dipPercent is the part of its gain that a climb may lose, because a garbage collector returns some memory during
	// growth. With a larger loss it is a sawtooth, and the climb begins at the last tooth.
	dipPercent = 25
	// growthLeast is the least reported climb, above noise of single pages.
	growthLeast = memory.MiB
	// noiseShare: a rate below 1/noiseShare of the later rate is not growth. Stepwise growth has flat parts.
	noiseShare = 20
)

// growth returns the growth that ends with the last point, from the lowest point without a large fall after it. It is
// zero below growthLeast.
func growth(points []point) Growth {
	if len(points) < 2 {
		return Growth{}
	}
	last := points[len(points)-1]
	start := last
	for i := len(points) - 2; i >= 0; i-- {
		p := points[i]
		gained := last.usage.Minus(start.usage)
		if p.usage.Minus(start.usage) > max(gained.Percent(dipPercent), growthLeast/2) {
			break // it fell from here to start
		}
		if p.usage < start.usage && partOfClimb(p, start, last) {
			start = p
		}
	}
	took := last.at.Sub(start.at)
	if took <= 0 || last.usage-start.usage < growthLeast {
		return Growth{}
	}
	return Growth{memory.Bytes(float64(last.usage-start.usage) / took.Seconds()), took}
}

// partOfClimb reports whether it also rose from p to start, at a rate that is significant compared with the rate from
// start. It excludes noise at the level before the climb.
func partOfClimb(p, start, last point) bool {
	before := float64(start.usage-p.usage) / start.at.Sub(p.at).Seconds()
	after := float64(last.usage-start.usage) / last.at.Sub(start.at).Seconds()
	return start == last || before >= after/noiseShare
}
