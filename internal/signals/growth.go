// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"math"
	"slices"
	"time"

	"github.com/memfit/memfit/internal/memory"
)

const (
	// grownPercent and grownBytes: less growth of the floor than both is noise, fragmentation or a lookup table.
	grownPercent = 10
	grownBytes   = float64(6 * memory.MiB)
	// stepLeast is the smallest jump that is called one.
	stepLeast = float64(4 * memory.MiB)
	// warmUpShare of the window, and warmUpTime of an instance's life, are left out: every process grows while it starts.
	warmUpShare = 0.08
	warmUpTime  = 10 * time.Minute
	// stepShare is how much of the growth must have come in jumps for the jumps to be the story.
	stepShare = 0.72
	// stepShareFew is the same in a window of few cells, where every rise looks like a jump; and no more than a quarter of its cells may jump.
	stepShareFew = 0.8
	// keepsPace is the least that the last third must grow compared with the third before it, or keepsCentre how far into the window the
	// middle of all growth must lie, for the growth to be called endless. A cache or a warm-up fills ever more slowly: watched for one and
	// a half of its time constants, these are 0.61 and 0.38; a leak has 1 and 0.5.
	keepsPace   = 0.75
	keepsCentre = 0.42
	// keepsSlope is the same for the two halves. For a cache watched for one and a half of its time constants it is 0.47.
	keepsSlope = 0.5
	// lateShare of all growth must have come in the last third.
	lateShare = 0.12
	// leastClimb is the shortest window in which a climb is told from a start.
	leastClimb = 2 * time.Hour
	// soonToTell: in a shorter window only the steadiest growth is called a climb.
	soonToTell = 6 * time.Hour
	// longEnough is a day, less what the edges cost: the time of day is then no explanation any more.
	longEnough = 23 * time.Hour
	// trendZ is the Mann-Kendall Z a climb needs.
	trendZ = 3.0
	// changeP is the Pettitt p a step needs; a window of few cells cannot give a small one.
	changeP, changePFew = 0.02, 0.25
	// fewCells is where a window counts as one of few cells.
	fewCells = 48
)

// growth says how the floor of a series rose.
type growth struct {
	from, to float64 // bytes, after warm-up and before the tail
	steps    []jump
	stepped  float64 // of the growth, in bytes
	pace     float64 // last third against the third before it; 1 is steady
	late     float64 // bytes gained in the last third
	centre   float64 // where in the window the middle of the growth lies, 0 to 1
	// slope in bytes per hour with its 95 % interval, of the lows.
	slope, slow, fast float64
	slopes, halves    float64 // how the second half grew against the first
	change            float64 // Pettitt p of the lows
	floor             []float64
	// returned are the heights above the floor of the excursions that came down again.
	returned []float64
	skip     int
}

// jump is one step of the floor.
type jump struct {
	at int // cell
	by float64
}

func (g growth) gained() float64 { return g.to - g.from }

// significant growth is more than noise, and more than memory rises and falls by anyway.
func (g growth) significant() bool {
	return g.gained() > max(grownBytes, g.from*grownPercent/100, g.tooth())
}

// tooth is the usual height of what came down again; 0 when nothing did.
func (g growth) tooth() float64 { return median(g.returned) }

// grow measures the growth of a series.
func grow(s series) growth {
	lows := s.lows()
	g := growth{floor: floor(lows), skip: s.warmUp()}
	g.skip = min(g.skip, len(g.floor)-2)
	f, n := g.floor[g.skip:], len(g.floor)-g.skip
	g.from, g.to = f[0], f[n-1]
	x := s.hours()[g.skip:]
	window := x[n-1] - x[0]
	for i := 1; i < n && g.gained() > 0; i++ {
		g.centre += (x[i] - x[0]) / window * (f[i] - f[i-1]) / g.gained()
	}
	g.returned = excursions(s.cells[g.skip:], f)
	g.steps = jumps(f, g.gained(), g.tooth())
	for i := range g.steps {
		g.steps[i].at += g.skip
		g.stepped += g.steps[i].by
	}
	first, second := f[before(x[:n], x[0]+window/3)], f[before(x[:n], x[0]+2*window/3)]
	g.late = g.to - second
	if second > first {
		g.pace = g.late / (second - first)
	} else if g.late > 0 {
		g.pace = math.Inf(1)
	}
	steady := lows[g.skip:]
	g.slope, g.slow, g.fast = theilSen(x, steady)
	g.slopes, g.halves = halves(f, x, steady)
	_, g.change = pettitt(steady)
	return g
}

// before is the last cell that is not after the hour.
func before(hours []float64, hour float64) int {
	i, found := slices.BinarySearch(hours, hour)
	if found {
		return i
	}
	return max(i-1, 0)
}

// warmUp is the number of cells to leave out.
func (s series) warmUp() int {
	skip := max(1, int(warmUpShare*float64(len(s.cells))))
	if s.age >= warmUpTime {
		skip = 0
	}
	for skip < len(s.cells)-fewest/2 && s.age < warmUpTime && time.Duration(s.cells[skip].hours*float64(time.Hour))+max(s.age, 0) < warmUpTime {
		skip++
	}
	return min(skip, len(s.cells)-1)
}

// excursions are the heights by which memory rose clearly above the floor and came back to it.
func excursions(c []cell, floor []float64) []float64 {
	var out []float64
	up := 0.0
	for i, f := range floor {
		if over := c[i].high - f; over > max(stillBytes, f*stillPercent/100) {
			up = max(up, over)
		} else if up > 0 {
			out = append(out, up)
			up = 0
		}
	}
	return out
}

// jumps finds the steps of a floor: rises within a cell or two that are a fair part of all growth and of the level, and that stick out
// of what the floor rises all the time.
func jumps(f []float64, gained, tooth float64) []jump {
	width := 3
	if len(f) < fewCells {
		width = 1
	}
	rises := make([]float64, 0, len(f))
	for i := 1; i < len(f); i++ {
		rises = append(rises, f[i]-f[i-1])
	}
	least := max(stepLeast, 0.12*gained, tooth/2, 2.5*float64(width)*median(rises))
	var out []jump
	for i := max(2, len(f)/16); i < len(f); { // before, there is no plateau to jump from
		end := min(i+width, len(f))
		by := f[end-1] - f[i-1]
		if f[i]-f[i-1] < least/4 || by < max(least, 0.04*f[i-1]) {
			i++
			continue
		}
		out = append(out, jump{at: i, by: by})
		i = end
	}
	return out
}

// changed is true when ranks, too, say that the level changed once at least.
func (g growth) changed() bool {
	if len(g.floor) < fewCells {
		return g.change <= changePFew
	}
	return g.change <= changeP
}

// inSteps is true when the floor stands still but for its steps, or when the growth is over and most of it came in a few large ones.
func (g growth) inSteps() bool {
	if len(g.steps) == 0 {
		return false
	}
	if n := len(g.floor); n < fewCells {
		return g.stepped >= stepShareFew*g.gained() && 4*len(g.steps) <= n+1
	}
	if g.stepped >= stepShare*g.gained() {
		return true
	}
	largest := 0.0
	for _, s := range g.steps {
		largest = max(largest, s.by)
	}
	return !g.endless() && g.stepped >= 0.6*g.gained() && largest >= 0.3*g.gained() && g.gained() > 0.3*g.from
}

// halves compares the second half with the first: how the median slopes of the low points compare, which trusts all points but sees a
// staircase as flat, and the geometric mean of that with what the floor gained, which trusts few points. The mean errs less than either.
func halves(floor, x, lows []float64) (slopes, both float64) {
	n := len(floor)
	middle := before(x[:n], (x[0]+x[n-1])/2)
	m := before(x, (x[0]+x[len(x)-1])/2) + 1
	first, second := floor[middle]-floor[0], floor[n-1]-floor[middle]
	early, _, _ := theilSen(x[:m], lows[:m])
	late, _, _ := theilSen(x[m:], lows[m:])
	slopes, both = math.Inf(1), math.Inf(1) // it began to grow in the middle
	if early > 0 {
		slopes = max(late, 0) / early
	}
	if early > 0 && first > 0 {
		both = math.Sqrt(max(second, 0) / first * slopes)
	}
	return slopes, both
}

// endless growth does not slow down.
func (g growth) endless() bool {
	return g.late >= lateShare*g.gained() && g.halves >= keepsSlope && (g.pace >= keepsPace || g.centre >= keepsCentre)
}

// steady growth does not slow down by any measure. Early in a life that is asked for, because starting looks much like climbing.
func (g growth) steady() bool {
	return g.endless() && g.late >= 2*lateShare*g.gained() && g.pace >= keepsPace && g.centre >= keepsCentre && g.halves >= 0.8
}
