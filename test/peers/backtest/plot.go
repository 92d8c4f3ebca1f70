// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"image/color"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/memfit/memfit/internal/recommend"
)

// The colors of the pictures can be distinguished without red and green.
var (
	grey   = color.RGBA{0x88, 0x88, 0x88, 0xff}
	blue   = color.RGBA{0x1f, 0x5f, 0xbf, 0xff}
	sky    = color.RGBA{0x8f, 0xbf, 0xef, 0xff}
	orange = color.RGBA{0xe0, 0x7b, 0x00, 0xff}
)

// mostColumns bounds the points of a line; more would not be visible.
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
	}{{"VPA", newVPA(vpaFlagDefaults), orange}, {"memfit", newMemfit(recommend.Balanced), blue}} {
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

// curvePlot shows kills and slack of memfit's postures and VPA's variants, and the curve of each product.
func curvePlot(v Verdict) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = v.Set
	p.X.Label.Text = "slack (GiB-days held for nothing)"
	p.Y.Label.Text = "OOM kills"
	p.X.Min, p.Y.Min = 0, 0
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	vpa, named := plotter.XYs{}, labels{}
	for _, policy := range slices.Sorted(maps.Keys(v.trades)) {
		t := v.trades[policy]
		at := plotter.XY{X: t.slack, Y: t.kills}
		switch {
		case strings.HasPrefix(policy, "vpa-"):
			vpa = append(vpa, at)
			continue
		case strings.HasPrefix(policy, settingsPrefix), strings.HasPrefix(policy, pricePrefix): // only on a curve
			continue
		case policy == "naive20": // has so many kills that the others would overlap
			continue
		}
		named.at, named.names = append(named.at, at), append(named.names, policy)
	}
	p.X.Max, p.Y.Max = 1.6*max(v.postures[len(v.postures)-1].slack, v.trades["clairvoyant"].slack), 1.2*v.postures[0].kills
	named = named.within(p.X.Max, p.Y.Max)
	err := errors.Join(addMarks(p, vpa, orange, 1.5), addMarks(p, named.at, grey, 3),
		addCurve(p, "VPA over its flags", v.vpa, orange), addCurve(p, "memfit over its settings", v.settings, sky),
		addCurve(p, "memfit over its postures", v.postures, blue))
	if err != nil {
		return nil, err
	}
	p.Add(named)
	return p, nil
}

// addMarks draws the points inside the picture.
func addMarks(p *plot.Plot, at plotter.XYs, shade color.Color, radius float64) error {
	at = slices.DeleteFunc(slices.Clone(at), func(xy plotter.XY) bool { return xy.X > p.X.Max || xy.Y > p.Y.Max })
	if len(at) == 0 {
		return nil
	}
	marks, err := plotter.NewScatter(at)
	if err != nil {
		return err
	}
	marks.Color, marks.Shape, marks.Radius = shade, draw.CircleGlyph{}, vg.Points(radius)
	xMax, yMax := p.X.Max, p.Y.Max
	p.Add(marks)
	p.X.Max, p.Y.Max = xMax, yMax
	return nil
}

// addCurve draws the part of a curve inside the picture.
func addCurve(p *plot.Plot, name string, c curve, shade color.Color) error {
	var at plotter.XYs
	for i := range 401 {
		x := p.X.Max * float64(i) / 400
		if y := c.at(x); y <= p.Y.Max {
			at = append(at, plotter.XY{X: x, Y: y})
		}
	}
	if len(at) == 0 {
		return nil
	}
	line, err := plotter.NewLine(at)
	if err != nil {
		return err
	}
	line.Color, line.Width = shade, vg.Points(1.5)
	p.Add(line)
	p.Legend.Add(name, line)
	return nil
}
