// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
)

// variant makes another series of one: a part of it, or a stretched copy. A series without points is left out.
type variant struct {
	name string
	of   func(Series) []Point
}

// variants are what -variants replays beside each set: data that no constant was chosen on, to tell a rule from a lucky
// fit.
var variants = []variant{
	{"first-half", func(s Series) []Point { return s.Points[:len(s.Points)/2] }},
	{"second-half", func(s Series) []Point { return s.Points[len(s.Points)/2:] }},
	{"first-6h", func(s Series) []Point { return s.Points[:after(s, 6*3600)] }},
	{"without-6h", func(s Series) []Point { return s.Points[after(s, 6*3600):] }},
	{"half-an-hour-later", func(s Series) []Point { return stretched(s, 1, 1, 1800) }},
	{"memory-x0.25", func(s Series) []Point { return stretched(s, 0.25, 1, 0) }},
	{"memory-x4", func(s Series) []Point { return stretched(s, 4, 1, 0) }},
	{"time-x0.5", func(s Series) []Point { return stretched(s, 1, 0.5, 0) }},
	{"time-x4", func(s Series) []Point { return stretched(s, 1, 4, 0) }},
}

// Vary is a set in all its variants.
func Vary(set Set) (sets []Set) {
	for _, v := range variants {
		varied := Set{Name: set.Name + "/" + v.name}
		for _, s := range set.Series {
			if points := v.of(s); len(points) > 0 {
				varied.Series = append(varied.Series, Series{s.Name, points})
			}
		}
		sets = append(sets, varied)
	}
	return sets
}

// after is the index of the first point at least this many seconds after the first one.
func after(s Series, seconds int64) int {
	i := slices.IndexFunc(s.Points, func(p Point) bool { return p.Unix-s.Points[0].Unix >= seconds })
	if i < 0 {
		return len(s.Points)
	}
	return i
}

// stretched is a copy with other sizes, another pace, or another start.
func stretched(s Series, size, pace float64, later int64) []Point {
	points := make([]Point, len(s.Points))
	for i, p := range s.Points {
		since := float64(p.Unix - s.Points[0].Unix)
		points[i] = Point{s.Points[0].Unix + int64(since*pace) + later, int64(float64(p.Bytes)*size) &^ 4095}
	}
	return points
}
