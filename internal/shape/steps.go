// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"cmp"
	"slices"

	"github.com/memfit/memfit/internal/stats"
)

// jump is one step of the floor.
type jump struct {
	at, until int // first cell of the rise, and first cell after it
	by        float64
}

// excursion is a rise clearly above the floor that fell again by at least half.
type excursion struct {
	until  int     // the cell in which it ended
	height float64 // above the floor, in bytes
}

// excursions returns the excursions of cells c above the floor. A rise that ends because the floor rises is not one.
func excursions(c []cell, floor []float64) []excursion {
	var out []excursion
	up, top := 0.0, 0.0
	for i, f := range floor {
		if over := c[i].high - f; over > max(flatBytes, f*flatPercent/100) {
			up, top = max(up, over), max(top, c[i].high)
			continue
		}
		if up > 0 && c[i].high <= top-up/2 {
			out = append(out, excursion{i, up})
		}
		up, top = 0, 0
	}
	return out
}

// reliableLength returns how many cells of a floor count. A rise since the last excursion counts only if it exceeds all
// excursions, or has lasted one and a half times the longest interval between their ends.
func reliableLength(f []float64, finished []excursion) int {
	if len(finished) == 0 {
		return len(f)
	}
	highest, gap, last := 0.0, 0, 0
	for _, e := range finished {
		highest, gap, last = max(highest, e.height), max(gap, e.until-last), e.until
	}
	since := len(f) - 1 - last
	if f[len(f)-1]-f[last] > highest || 2*since > 3*gap {
		return len(f)
	}
	return max(last+1, 2)
}

// jumps returns the steps of a floor: rises within a few cells that are a large part of all growth and of the level,
// and far above the floor's usual rise.
func jumps(f []float64, gained, tooth float64) []jump {
	width := max(1, (len(f)+14)/28) // cells of a step: 3 in a full window
	rises := make([]float64, 0, len(f))
	for i := 1; i < len(f); i++ {
		rises = append(rises, f[i]-f[i-1])
	}
	least := max(minStep, 0.12*gained, tooth/2, 2.5*float64(width)*stats.Median(rises))
	var out []jump
	for i := max(2, len(f)/16); i < len(f); { // a step needs a plateau before it
		end := min(i+width, len(f))
		by := f[end-1] - f[i-1]
		if f[i]-f[i-1] < least/4 || by < max(least, 0.04*f[i-1]) {
			i++
			continue
		}
		for end < len(f) && end-i < len(f)/10 && f[end]-f[end-1] > max(0.02*gained, 3*stats.Median(rises)) {
			end++ // the step continues
		}
		out = append(out, jump{at: i, until: end, by: f[end-1] - f[i-1]})
		i = end
	}
	return out
}

// without returns y minus the steps. A step over several cells is subtracted in equal parts.
func without(y []float64, steps []jump) []float64 {
	out := slices.Clone(y)
	for _, s := range steps {
		for i := s.at; i < len(out); i++ {
			out[i] -= s.by * min(1, float64(i-s.at+1)/float64(s.until-s.at))
		}
	}
	return out
}

// inSteps reports whether nearly all growth is in steps, or most growth is, one step is large, and all growth or the
// growth outside of steps has ended.
func (g growth) inSteps() bool {
	if len(g.steps) == 0 {
		return false
	}
	if g.stepped >= stepShare*g.gained() {
		return true
	}
	largest := slices.MaxFunc(g.steps, func(a, b jump) int { return cmp.Compare(a.by, b.by) }).by
	ended := !g.all.endless() && g.stepped >= stepShareEnded*g.gained() || !g.rest.endless() &&
		g.stepped >= stepShareRest*g.gained()
	return ended && largest >= 0.3*g.gained() && g.gained() > 0.3*g.from
}
