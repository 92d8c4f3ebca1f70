// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"math"
	"time"
)

// Point is one measurement.
type Point struct {
	At    time.Duration // since the start
	Value float64
}

// Trend is the slope of a series with its 95 % interval, in units of the value per hour.
type Trend struct{ PerHour, Low, High float64 }

// block is the time that one point of the regression averages. Single readings of a garbage-collected heap are
// correlated, which would make the interval too narrow. A collection cycle of an idle Go program takes at most two
// minutes.
const block = 2 * time.Minute

// Slope returns the trend of a series by least squares over the means of blocks. ok is false with fewer than four
// blocks.
func Slope(series []Point) (t Trend, ok bool) {
	points := means(series)
	n := float64(len(points))
	if n < 4 {
		return Trend{}, false
	}
	var x, y float64
	for _, p := range points {
		x += p.At.Hours() / n
		y += p.Value / n
	}
	var xx, xy float64
	for _, p := range points {
		xx += (p.At.Hours() - x) * (p.At.Hours() - x)
		xy += (p.At.Hours() - x) * (p.Value - y)
	}
	slope := xy / xx
	var rest float64
	for _, p := range points {
		r := p.Value - y - slope*(p.At.Hours()-x)
		rest += r * r
	}
	half := quantile(n-2) * math.Sqrt(rest/(n-2)/xx)
	return Trend{slope, slope - half, slope + half}, true
}

// means returns the means of blocks.
func means(series []Point) []Point {
	var points []Point
	var sum Point
	n := 0
	flush := func() {
		if n > 0 {
			points = append(points, Point{sum.At / time.Duration(n), sum.Value / float64(n)})
		}
		sum, n = Point{}, 0
	}
	current := time.Duration(-1)
	for _, p := range series {
		if b := p.At / block; b != current {
			flush()
			current = b
		}
		sum.At += p.At
		sum.Value += p.Value
		n++
	}
	flush()
	return points
}

// quantile returns the 97.5 % quantile of Student's t by the Cornish-Fisher expansion, within 1 % from 4 degrees of
// freedom on.
func quantile(freedom float64) float64 {
	const z = 1.959964
	return z + (z*z*z+z)/(4*freedom) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*freedom*freedom) +
		(3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*freedom*freedom*freedom)
}
