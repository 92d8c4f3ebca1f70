// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"math"
	"slices"

	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/stats"
)

const (
	// grownPercent and grownBytes: less growth of the floor than both is noise, fragmentation or a lookup table.
	grownPercent = 10
	grownBytes   = float64(6 * memory.MiB)
	// fillsPercent: a heap below its cap that grew by less is filling.
	fillsPercent = 60
	// muchPercent: less growth than that within a day may be a day's load. Of 92 pods of a Java shop with no known leak
	// (docs/evidence/shapes.md), nine grew by 10 to 25 % in half a day without slowing down, and one by more.
	muchPercent = 25
	// stepLeast is the smallest jump that is called one.
	stepLeast = float64(4 * memory.MiB)
	// warmUpShare of the window, and warmUpTime of an instance's life, are left out: every process grows while it starts.
	warmUpShare = 0.08
	warmUpTime  = 10 * period.Minute
	// stepShare is how much of the growth must have come in jumps for the jumps to be the story.
	stepShare = 0.72
	// stepShareMost is the same when the growth is over, and stepShareHalf when what did not come in jumps is.
	stepShareMost, stepShareHalf = 0.6, 0.45
	// keepsPace is the least slope of the second half of the window against the first for growth to be called endless, and
	// keepsPaceEarly for what is called steady. A cache or a warm-up fills ever more slowly: watched for one and a half of
	// its time constants, this is 0.47, for half of one 0.78; a leak has 1.
	keepsPace, keepsPaceEarly = 0.6, 0.8
	// keepsEnding is the least slope of the newest third of the window against the whole, all points together.
	keepsEnding = 0.45
	// lateShare of all growth must have come in the last third.
	lateShare = 0.12
	// leastClimb is the shortest window in which growth is distinguished from a start.
	leastClimb = 2 * period.Hour
	// soonToTell: in a shorter window only the steadiest growth is called a climb.
	soonToTell = 6 * period.Hour
	// longEnough is a day, less what the edges cost: the time of day is then no explanation any more.
	longEnough = 23 * period.Hour
	// trendZ is the Mann-Kendall Z a climb needs.
	trendZ = 3.0
)

// growth is how the floor of a series rose.
type growth struct {
	from, to float64 // bytes, after warm-up and before the tail
	steps    []jump
	stepped  float64 // of the growth, in bytes
	// slope in bytes per hour of evidence with its 95 % interval, of the lows.
	slope, slow, fast float64
	// ending is the slope of the newest third of the window, peaks and all, against that of the whole: the floor ends
	// before the window does.
	ending float64
	floor  []float64
	// returned are the heights above the floor of the excursions that came down again.
	returned []float64
	skip     int // cells of warm-up
	// all is the course of the growth, rest that of what is left without the steps.
	all, rest course
}

// course is whether growth goes on.
type course struct {
	gained float64 // bytes
	late   float64 // of these, in the last third
	pace   float64 // slope of the second half against the first, of the low points; 1 is steady
}

func (g growth) gained() float64 { return g.to - g.from }

// significant growth is more than noise, and more than memory rises and falls by anyway.
func (g growth) significant() bool {
	return g.gained() > max(grownBytes, g.from*grownPercent/100, g.tooth())
}

// tooth is the usual height of what came down again; 0 when nothing did.
func (g growth) tooth() float64 { return stats.Median(g.returned) }

// grow measures the growth of a series.
func grow(s series) growth {
	lows := s.lows()
	g := growth{floor: floor(lows), skip: s.warmUp()}
	g.skip = min(g.skip, len(g.floor)-2)
	f, x, lows := g.floor[g.skip:], s.hours()[g.skip:], lows[g.skip:]
	came := excursions(s.cells[g.skip:], f)
	f = f[:proven(f, came)]
	g.floor = g.floor[:g.skip+len(f)]
	g.from, g.to = f[0], f[len(f)-1]
	for _, e := range came {
		g.returned = append(g.returned, e.height)
	}
	g.steps = jumps(f, g.gained(), g.tooth())
	g.all = follow(f, x, lows)
	if g.rest = g.all; len(g.steps) > 0 {
		g.rest = follow(without(f, g.steps), x, without(lows, g.steps))
	}
	for _, step := range g.steps {
		g.stepped += step.by
	}
	g.slope, g.slow, g.fast = stats.TheilSen(x, lows)
	mids := s.mids()[g.skip:]
	third := before(x, x[len(x)-1]-(x[len(x)-1]-x[0])/3)
	whole, _, _ := stats.TheilSen(x, mids)
	last, _, _ := stats.TheilSen(x[third:], mids[third:])
	g.ending = ratio(last, whole)
	return g
}

// follow measures the course of a floor, which ends before the lows do.
func follow(f, x, lows []float64) course {
	n := len(f)
	third, half := f[before(x[:n], x[0]+2*(x[n-1]-x[0])/3)], before(x, (x[0]+x[len(x)-1])/2)+1
	early, _, _ := stats.TheilSen(x[:half], lows[:half])
	late, _, _ := stats.TheilSen(x[half:], lows[half:])
	return course{gained: f[n-1] - f[0], late: f[n-1] - third, pace: ratio(late, early)}
}

// ratio is after against before; growth that only began later is without end so far.
func ratio(after, before float64) float64 {
	switch {
	case after <= 0:
		return 0
	case before <= 0:
		return math.Inf(1)
	}
	return after / before
}

// endless growth does not slow down.
func (c course) endless() bool {
	return c.gained > 0 && c.late >= lateShare*c.gained && c.pace >= keepsPace
}

// steady growth hardly slows down. Early in a life that is asked for, because starting looks much like climbing.
func (c course) steady() bool { return c.endless() && c.pace >= keepsPaceEarly }

// before is the last cell that is not after the hour.
func before(hours []float64, hour float64) int {
	i, found := slices.BinarySearch(hours, hour)
	if found {
		return i
	}
	return max(i-1, 0)
}

// inHours is a period of so many hours of evidence.
func inHours(hours float64) period.Evidence { return period.Evidence(hours * float64(period.Hour)) }

// warmUp is the number of cells to leave out.
func (s series) warmUp() int {
	skip := max(1, int(warmUpShare*float64(len(s.cells))))
	if s.age >= warmUpTime {
		skip = 0
	}
	for skip < len(s.cells)-fewest/2 && s.age < warmUpTime &&
		inHours(s.cells[skip].hours)+max(s.age, 0) < warmUpTime {
		skip++
	}
	return min(skip, len(s.cells)-1)
}
