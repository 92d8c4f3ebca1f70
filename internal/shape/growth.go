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
	// grownPercent and grownBytes are the growth of the floor up to which it may be noise, fragmentation or a table.
	grownPercent = 10
	grownBytes   = float64(6 * memory.MiB)
	// fillsPercent is the growth up to which a heap below its cap may still be filling, which is not a leak.
	fillsPercent = 60
	// muchPercent is the growth within a day up to which load may be the cause. Of 92 pods of a Java shop with no known
	// leak (docs/evidence/shapes.md), nine grew by 10 to 25 % in half a day without slowing down, and one by more.
	muchPercent = 25
	minStep     = float64(4 * memory.MiB) // the smallest jump
	// warmUpShare of the window and warmUpTime of an instance are ignored, because every process grows at its start.
	warmUpShare = 0.08
	warmUpTime  = 10 * period.Minute
	// stepShare is the least share of growth in jumps for StepRetention. If all growth has ended, stepShareEnded is
	// enough, and if the growth outside of jumps has ended, stepShareRest.
	stepShare, stepShareEnded, stepShareRest = 0.72, 0.6, 0.45
	// minPace is the least pace (see course) of endless growth, minPaceEarly of steady growth. A cache or a warm-up slows
	// down: its pace is 0.78 over half of its time constant, and 0.47 over one and a half. A leak has 1.
	minPace, minPaceEarly = 0.6, 0.8
	// minEnding is the least growth.ending of a climb.
	minEnding    = 0.45
	minLateShare = 0.12             // the least share of growth in the last third of the window
	minClimbSpan = 2 * period.Hour  // the shortest window in which growth is distinguished from a start
	earlySpan    = 6 * period.Hour  // in a shorter window only the steadiest growth is a climb
	longEnough   = 23 * period.Hour // nearly a day: long enough to exclude a daily pattern
	trendZ       = 3.0              // the least Mann-Kendall Z of a climb
)

// growth describes how the floor of a series rises.
type growth struct {
	from, to float64 // bytes at both ends of the floor, after warm-up
	steps    []jump
	stepped  float64 // growth in steps, in bytes
	// slope is the slope of the low points in bytes per hour of evidence; slow and fast are its 95 % interval.
	slope, slow, fast float64
	ending            float64 // slope of the median points in the newest third, relative to the whole window
	floor             []float64
	returned          []float64 // heights of finished excursions above the floor
	skip              int       // number of warm-up cells, which are ignored
	all, rest         course    // of all growth, and of the growth outside of steps
}

// course describes whether growth continues.
type course struct {
	gained float64 // bytes
	late   float64 // bytes gained in the last third
	pace   float64 // slope of the low points in the second half, relative to the first half; 1: constant
}

func (g growth) gained() float64 { return g.to - g.from }

// significant reports whether growth exceeds noise and the usual excursion.
func (g growth) significant() bool {
	return g.gained() > max(grownBytes, g.from*grownPercent/100, g.tooth())
}

// tooth returns the usual height of finished excursions; 0: none.
func (g growth) tooth() float64 { return stats.Median(g.returned) }

// grow measures the growth of a series.
func grow(s series) growth {
	lows := s.lows()
	g := growth{floor: floor(lows), skip: s.warmUp()}
	g.skip = min(g.skip, len(g.floor)-2)
	f, x, lows := g.floor[g.skip:], s.hours()[g.skip:], lows[g.skip:]
	finished := excursions(s.cells[g.skip:], f)
	f = f[:reliableLength(f, finished)]
	g.floor = g.floor[:g.skip+len(f)]
	g.from, g.to = f[0], f[len(f)-1]
	for _, e := range finished {
		g.returned = append(g.returned, e.height)
	}
	g.steps = jumps(f, g.gained(), g.tooth())
	g.all = courseOf(f, x, lows)
	if g.rest = g.all; len(g.steps) > 0 {
		g.rest = courseOf(without(f, g.steps), x, without(lows, g.steps))
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

// courseOf measures the course of floor f, which may have fewer cells than the lows. x has the hours of the cells.
func courseOf(f, x, lows []float64) course {
	n := len(f)
	third, half := f[before(x[:n], x[0]+2*(x[n-1]-x[0])/3)], before(x, (x[0]+x[len(x)-1])/2)+1
	early, _, _ := stats.TheilSen(x[:half], lows[:half])
	late, _, _ := stats.TheilSen(x[half:], lows[half:])
	return course{gained: f[n-1] - f[0], late: f[n-1] - third, pace: ratio(late, early)}
}

// ratio returns after/before: 0 if growth ended, and infinity if growth began only later.
func ratio(after, before float64) float64 {
	switch {
	case after <= 0:
		return 0
	case before <= 0:
		return math.Inf(1)
	}
	return after / before
}

// endless reports whether growth does not slow down.
func (c course) endless() bool {
	return c.gained > 0 && c.late >= minLateShare*c.gained && c.pace >= minPace
}

// steady reports whether growth hardly slows down: a condition for young instances, whose start resembles a climb.
func (c course) steady() bool { return c.endless() && c.pace >= minPaceEarly }

// before returns the index of the last cell that is not after the hour, at least 0.
func before(hours []float64, hour float64) int {
	i, found := slices.BinarySearch(hours, hour)
	if found {
		return i
	}
	return max(i-1, 0)
}

func inHours(hours float64) period.Evidence { return period.Evidence(hours * float64(period.Hour)) }

// warmUp returns the number of cells to ignore at the start.
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
