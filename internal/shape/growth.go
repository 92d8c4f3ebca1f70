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
	// grownPercent and grownBytes: growth of the floor below either is noise, fragmentation or a lookup table.
	grownPercent = 10
	grownBytes   = float64(6 * memory.MiB)
	// fillsPercent: a heap below its cap that has grown by less is still filling, which is not a leak.
	fillsPercent = 60
	// muchPercent: growth by less within a day may be caused by the day's load. Of 92 pods of a Java shop with no known
	// leak (docs/evidence/shapes.md), nine grew by 10 to 25 % in half a day without slowing down, and one by more.
	muchPercent = 25
	minStep     = float64(4 * memory.MiB) // the smallest jump
	// warmUpShare of the window, and warmUpTime of an instance, are excluded, because every process grows at its start.
	warmUpShare = 0.08
	warmUpTime  = 10 * period.Minute
	// stepShare is the least share of growth in jumps for StepRetention.
	stepShare = 0.72
	// maxStepShare is that share if growth has ended, and stepShareHalf if the growth outside of jumps has ended.
	maxStepShare, stepShareHalf = 0.6, 0.45
	// keepsPace is the least ratio of slopes of the second and first half of the window for endless growth, and
	// keepsPaceEarly for steady growth. A cache or a warm-up slows down: over one and a half of its time constants, the
	// ratio is 0.47, over half of one 0.78; a leak has 1.
	keepsPace, keepsPaceEarly = 0.6, 0.8
	// keepsEnding is the least ratio of the slope of the newest third of the window to the slope of the whole window, over
	// all points.
	keepsEnding  = 0.45
	lateShare    = 0.12             // of all growth must have come in the last third
	minClimbSpan = 2 * period.Hour  // the shortest window in which growth is distinguished from a start
	earlySpan    = 6 * period.Hour  // in a shorter window only the steadiest growth is a climb
	longEnough   = 23 * period.Hour // a day, less the edges: long enough to exclude a daily pattern
	trendZ       = 3.0              // the least Mann-Kendall Z of a climb
)

// growth describes the rise of a series' floor.
type growth struct {
	from, to float64 // bytes, after warm-up and before the tail
	steps    []jump
	stepped  float64 // growth in steps, in bytes
	// slope of the lows in bytes per hour of evidence, with its 95 % interval.
	slope, slow, fast float64
	ending            float64 // ratio of slopes of the newest third of the window, with peaks, and the whole
	floor             []float64
	returned          []float64 // heights of finished excursions above the floor
	skip              int       // cells of warm-up
	all, rest         course    // of all growth, and of the growth outside of steps
}

// course describes whether growth continues.
type course struct {
	gained float64 // bytes
	late   float64 // the part gained in the last third
	pace   float64 // ratio of slopes of the second and first half, of low points; 1 is steady
}

func (g growth) gained() float64 { return g.to - g.from }

// significant reports whether growth exceeds noise and the usual rise and fall.
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

// follow measures the course of a floor, which may have fewer cells than the lows.
func follow(f, x, lows []float64) course {
	n := len(f)
	third, half := f[before(x[:n], x[0]+2*(x[n-1]-x[0])/3)], before(x, (x[0]+x[len(x)-1])/2)+1
	early, _, _ := stats.TheilSen(x[:half], lows[:half])
	late, _, _ := stats.TheilSen(x[half:], lows[half:])
	return course{gained: f[n-1] - f[0], late: f[n-1] - third, pace: ratio(late, early)}
}

// ratio returns after/before; growth that began only later counts as endless.
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
	return c.gained > 0 && c.late >= lateShare*c.gained && c.pace >= keepsPace
}

// steady reports whether growth slows down little. Young instances must show it, because a start resembles a climb.
func (c course) steady() bool { return c.endless() && c.pace >= keepsPaceEarly }

// before returns the last cell that is not after the hour.
func before(hours []float64, hour float64) int {
	i, found := slices.BinarySearch(hours, hour)
	if found {
		return i
	}
	return max(i-1, 0)
}

// inHours returns a period in hours of evidence.
func inHours(hours float64) period.Evidence { return period.Evidence(hours * float64(period.Hour)) }

// warmUp returns the number of cells to exclude.
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
