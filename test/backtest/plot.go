// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/memfit/memfit/internal/recommend"
)

// The colours of the pictures, readable without telling red from green.
var (
	grey   = color.RGBA{0x88, 0x88, 0x88, 0xff}
	blue   = color.RGBA{0x1f, 0x5f, 0xbf, 0xff}
	orange = color.RGBA{0xe0, 0x7b, 0x00, 0xff}
)

// mostColumns is how many points wide a line is drawn: more cannot be seen.
const mostColumns = 1200

// drawSeries shows the demand of one series, the limits of memfit and VPA, and their kills.
func drawSeries(path string, s Series) error {
	p := plot.New()
	p.Title.Text = s.Name
	p.Y.Label.Text = "MiB"
	p.X.Tick.Marker = plot.TimeTicks{Format: "01-02\n15:04"}
	p.Y.Min = 0
	p.Legend.Top = true

	demand := make([]int64, len(s.Points))
	for i, point := range s.Points {
		demand[i] = point.Bytes
	}
	if err := addLine(p, "demand", grey, s.Points, demand); err != nil {
		return err
	}
	for _, c := range []struct {
		name   string
		policy Policy
		shade  color.Color
	}{{"VPA", newVPA(250), orange}, {"memfit", newMemfit(recommend.Balanced), blue}} {
		r := Simulate(s, c.policy, true)
		if err := addLine(p, c.name+" limit", c.shade, s.Points, r.Limits); err != nil {
			return err
		}
		if err := addKills(p, c.name, c.shade, s.Points, r); err != nil {
			return err
		}
	}
	return p.Save(24*vg.Centimeter, 8*vg.Centimeter, path)
}

// addLine draws the highest value of every column.
func addLine(p *plot.Plot, name string, shade color.Color, points []Point, values []int64) error {
	step := max(len(points)/mostColumns, 1)
	var xys plotter.XYs
	for i := 0; i < len(points); i += step {
		high := values[i]
		for _, v := range values[i:min(i+step, len(values))] {
			high = max(high, v)
		}
		xys = append(xys, plotter.XY{X: float64(points[i].Unix), Y: float64(high) / (1 << 20)})
	}
	line, err := plotter.NewLine(xys)
	if err != nil {
		return err
	}
	line.Color, line.Width = shade, vg.Points(1)
	p.Add(line)
	p.Legend.Add(name, line)
	return nil
}

func addKills(p *plot.Plot, name string, shade color.Color, points []Point, r Result) error {
	if len(r.KilledAt) == 0 {
		return nil
	}
	var xys plotter.XYs
	for _, i := range r.KilledAt {
		xys = append(xys, plotter.XY{X: float64(points[i].Unix), Y: float64(r.Limits[i]) / (1 << 20)})
	}
	marks, err := plotter.NewScatter(xys)
	if err != nil {
		return err
	}
	marks.Color, marks.Shape, marks.Radius = shade, draw.CrossGlyph{}, vg.Points(4)
	p.Add(marks)
	p.Legend.Add(name+" kills", marks)
	return nil
}

// drawCurve shows every policy of a set by its kills and its slack; memfit's postures are joined.
func drawCurve(path, set string, contenders, postures []Outcome) error {
	p := plot.New()
	p.Title.Text = set
	p.X.Label.Text = "slack (memory held for nothing / memory used)"
	p.Y.Label.Text = "OOM kills"
	p.X.Min, p.Y.Min = 0, 0
	p.Add(plotter.NewGrid())
	var others []Outcome
	for _, o := range contenders {
		if o.Policy != "memfit" {
			others = append(others, o)
		}
	}
	var names labels
	if err := errors.Join(addOutcomes(p, &names, postures, blue, true), addOutcomes(p, &names, others, orange, false)); err != nil {
		return err
	}
	p.X.Max, p.Y.Max = p.X.Max*1.25, p.Y.Max*1.1 // room for names at the edges
	p.Add(names)
	return p.Save(14*vg.Centimeter, 9*vg.Centimeter, path)
}

func addOutcomes(p *plot.Plot, names *labels, outcomes []Outcome, shade color.Color, joined bool) error {
	var at plotter.XYs
	for _, o := range outcomes {
		at = append(at, plotter.XY{X: o.SlackTotal(), Y: float64(o.Kills())})
		names.names = append(names.names, o.Policy)
	}
	names.at = append(names.at, at...)
	if len(at) == 0 {
		return nil
	}
	marks, err := plotter.NewScatter(at)
	if err != nil {
		return err
	}
	marks.Color, marks.Shape, marks.Radius = shade, draw.CircleGlyph{}, vg.Points(3)
	p.Add(marks)
	if joined {
		line, err := plotter.NewLine(at)
		if err != nil {
			return err
		}
		line.Color = shade
		p.Add(line)
	}
	return nil
}
