// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// labels are names next to points, placed so that they overlap neither each other nor a point: similar policies, which
// readers compare, have points close together.
type labels struct {
	at    plotter.XYs
	names []string
}

// within omits points outside a picture, whose labels would overlap the next picture.
func (l labels) within(x, y float64) (kept labels) {
	for i, at := range l.at {
		if at.X <= x && at.Y <= y {
			kept.at, kept.names = append(kept.at, at), append(kept.names, l.names[i])
		}
	}
	return kept
}

// Plot implements plot.Plotter: placing labels needs the size of the picture.
func (l labels) Plot(c draw.Canvas, p *plot.Plot) {
	style := text.Style{
		Color: p.Title.TextStyle.Color, Font: p.X.Tick.Label.Font, YAlign: draw.YCenter, Handler: p.TextHandler,
	}
	x, y := p.Transforms(&c)
	var points, sizes []vg.Point
	for i, at := range l.at {
		points = append(points, vg.Point{X: x(at.X), Y: y(at.Y)})
		sizes = append(sizes, vg.Point{X: style.Width(l.names[i]), Y: style.Height(l.names[i]) * 1.2})
	}
	for i, box := range placed(points, sizes, c.Rectangle) {
		near := vg.Point{X: min(max(points[i].X, box.Min.X), box.Max.X), Y: min(max(points[i].Y, box.Min.Y), box.Max.Y)}
		if math.Hypot(float64(near.X-points[i].X), float64(near.Y-points[i].Y)) > float64(2*gap) {
			c.StrokeLine2(draw.LineStyle{Color: grey, Width: vg.Points(0.5)}, points[i].X, points[i].Y, near.X, near.Y)
		}
		c.FillText(style, vg.Point{X: box.Min.X, Y: (box.Min.Y + box.Max.Y) / 2}, l.names[i])
	}
}

// gap is between a point, whose mark has a radius of 3 points, and its label.
const gap = vg.Length(5)

// placed returns a box for each label: of its places, the first that is free and inside the area, otherwise the first.
func placed(points, sizes []vg.Point, area vg.Rectangle) []vg.Rectangle {
	var taken []vg.Rectangle
	for _, at := range points {
		taken = append(taken, around(at, gap-1, gap-1))
	}
	var boxes []vg.Rectangle
	for i, at := range points {
		all := places(at, sizes[i])
		best := slices.IndexFunc(all, func(box vg.Rectangle) bool {
			return inside(box, area) && !slices.ContainsFunc(taken, func(other vg.Rectangle) bool { return overlap(box, other) })
		})
		boxes = append(boxes, all[max(best, 0)])
		taken = append(taken, all[max(best, 0)])
	}
	return boxes
}

// places returns boxes around a point, the nearest first: to the right, left, above and below, in growing circles.
func places(at, size vg.Point) (all []vg.Rectangle) {
	half := vg.Point{X: size.X / 2, Y: size.Y / 2}
	for ring := range 12 {
		away := gap + vg.Length(ring)*gap
		for _, angle := range []float64{0, 30, -30, 60, -60, 180, 150, -150, 120, -120, 90, -90} {
			sin, cos := math.Sincos(angle * math.Pi / 180)
			center := vg.Point{X: at.X + vg.Length(cos)*(away+half.X), Y: at.Y + vg.Length(sin)*(away+half.Y)}
			all = append(all, around(center, half.X, half.Y))
		}
	}
	return all
}

func around(center vg.Point, x, y vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: center.X - x, Y: center.Y - y}, Max: vg.Point{X: center.X + x, Y: center.Y + y}}
}

func inside(box, area vg.Rectangle) bool {
	return box.Min.X >= area.Min.X && box.Max.X <= area.Max.X && box.Min.Y >= area.Min.Y && box.Max.Y <= area.Max.Y
}

func overlap(a, b vg.Rectangle) bool {
	return a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y
}
