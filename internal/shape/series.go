// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"slices"
	"time"

	"github.com/memfit/memfit/internal/history"
	"github.com/memfit/memfit/internal/memory"
	"github.com/memfit/memfit/internal/period"
	"github.com/memfit/memfit/internal/stats"
)

const (
	cells        = 96 // in a series: enough to show sawteeth and steps, few enough for computations over all pairs
	fewest       = 8  // a series with fewer cells has no shape
	pointsOfSpan = 3  // how many points a span counts as
)

// cell has the low, usual and high memory of one instance in a period.
type cell struct {
	hours          float64 // hours of evidence from the series' start to the middle of the cell
	low, mid, high float64 // bytes
}

// series is one instance's memory in cells of equal length, without empty cells.
type series struct {
	pod    string
	began  time.Time
	span   period.Evidence
	age    period.Evidence // of the instance at the first point; negative: unknown
	points int
	cells  []cell
	top    float64   // the highest point, in bytes
	newest time.Time // time of the last point
	last   float64   // the last point, in bytes
}

// newSeries returns the series of an instance's points, without duplicates and empty points.
func newSeries(in Instance) series {
	points := slices.Clone(in.Points)
	points = slices.DeleteFunc(points, func(p Point) bool { return p.RSS <= 0 || p.Time.IsZero() })
	slices.SortStableFunc(points, func(a, b Point) int { return a.Time.Compare(b.Time) })
	points = slices.CompactFunc(points, func(a, b Point) bool { return a.Time.Equal(b.Time) })
	s := series{pod: in.Container.Pod, points: len(points), age: -1}
	if len(points) == 0 {
		return s
	}
	s.began, s.newest = points[0].Time, points[len(points)-1].Time
	s.span = period.Of(s.newest.Sub(s.began))
	s.last = float64(points[len(points)-1].RSS)
	if !in.Started.IsZero() && !in.Started.After(s.began) {
		s.age = period.Of(s.began.Sub(in.Started))
	}
	for _, p := range points {
		s.top = max(s.top, float64(p.RSS))
	}
	s.cut(points)
	return s
}

// pastSeries returns the series of spans. Each span becomes a cell.
func pastSeries(spans []history.Span) series {
	s := series{points: pointsOfSpan * len(spans), age: -1}
	if len(spans) == 0 {
		return s
	}
	newest := spans[len(spans)-1]
	s.cells = make([]cell, 0, len(spans))
	s.began, s.newest, s.last = spans[0].Start, newest.Start.Add(newest.Length), float64(newest.Peak)
	s.span = period.Of(s.newest.Sub(s.began))
	for _, p := range spans {
		s.top = max(s.top, float64(p.Peak))
		s.cells = append(s.cells, cell{
			hours: period.Of(p.Start.Sub(s.began) + p.Length/2).Hours(), low: float64(p.Low), mid: float64(p.Usual),
			high: float64(p.Peak),
		})
	}
	return s
}

// cut divides sorted points into cells.
func (s *series) cut(points []Point) {
	width := s.newest.Sub(s.began)/cells + 1
	s.cells = make([]cell, 0, min(len(points), cells))
	buffer := make([]float64, len(points))
	for len(points) > 0 {
		k := points[0].Time.Sub(s.began) / width
		n := 1
		for n < len(points) && points[n].Time.Sub(s.began)/width == k {
			n++
		}
		values := buffer[:n]
		for i, p := range points[:n] {
			values[i] = float64(p.RSS)
		}
		slices.Sort(values)
		s.cells = append(s.cells, cell{
			hours: (float64(k) + 0.5) * period.Of(width).Hours(),
			low:   stats.Quantile(values, 0.1), mid: stats.Quantile(values, 0.5), high: stats.Quantile(values, 0.95),
		})
		points = points[n:]
	}
}

func (s *series) hours() []float64 { return each(s.cells, func(c cell) float64 { return c.hours }) }
func (s *series) lows() []float64  { return each(s.cells, func(c cell) float64 { return c.low }) }
func (s *series) mids() []float64  { return each(s.cells, func(c cell) float64 { return c.mid }) }

func each(c []cell, f func(cell) float64) []float64 {
	out := make([]float64, len(c))
	for i := range c {
		out[i] = f(c[i])
	}
	return out
}

// floor returns the retained memory, without bursts and sawteeth: for every cell, the lowest of its low point and all
// later ones. It omits the newest cells, because what follows them is unknown: a quarter more than the longest finished
// excursion, and at least a twelfth of all.
func floor(lows []float64) []float64 {
	f := slices.Clone(lows)
	for i := len(f) - 2; i >= 0; i-- {
		f[i] = min(f[i], f[i+1])
	}
	tail := max(1, len(f)/12, longestExcursion(lows, f)*5/4)
	return f[:max(len(f)-tail, 2)]
}

// longestExcursion returns the number of cells in the longest rise clearly above the floor that has ended.
func longestExcursion(lows, floor []float64) int {
	longest, run := 0, 0
	for i := range lows {
		if lows[i] > floor[i]+max(0.03*floor[i], float64(2*memory.MiB)) {
			run++
			continue
		}
		longest, run = max(longest, run), 0
	}
	return longest
}

func toBytes(f float64) memory.Bytes { return memory.Bytes(max(f, 0)) }
