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
	// dipPercent of what it has gained so far, a climb may lose on the way: a garbage collector gives back a little now
	// and then while the whole goes up. What loses more is a sawtooth, and its climb begins at the last tooth.
	dipPercent = 25
	// growthLeast is a climb worth a word. Single pages come and go.
	growthLeast = memory.MiB
	// noiseShare of the rate is no longer growth. Memory that grows in steps has flat parts between them.
	noiseShare = 20
)

// growth finds the growth that ends with the last point: back to the lowest point after which nothing fell by much. It
// is at least growthLeast; slower growth is reported as none.
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

// partOfClimb: from p to start it went up too, at a rate that is not nothing beside the one from start on. What is
// left out is the noise of a level from which the climb began.
func partOfClimb(p, start, last point) bool {
	before := float64(start.usage-p.usage) / start.at.Sub(p.at).Seconds()
	after := float64(last.usage-start.usage) / last.at.Sub(start.at).Seconds()
	return start == last || before >= after/noiseShare
}
