// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// shades can be distinguished without red and green.
var shades = []color.Color{
	color.RGBA{0x88, 0x88, 0x88, 0xff}, color.RGBA{0x1f, 0x5f, 0xbf, 0xff}, color.RGBA{0xe0, 0x7b, 0x00, 0xff},
	color.RGBA{0x5a, 0xb4, 0xac, 0xff},
}

// rssPicture shows each arm's RSS after some steps.
func rssPicture(name, title string, steps []string, arms ...string) Picture {
	p := Picture{Name: name, Title: title, Unit: "MiB", Groups: arms}
	for _, step := range steps {
		p.Series = append(p.Series, Series{"after " + step, func(r *Run) []float64 {
			var out []float64
			for _, arm := range arms {
				v, err := r.Value(arm, step, "rss")
				if err != nil {
					v = math.NaN()
				}
				out = append(out, v/mebi)
			}
			return out
		}})
	}
	return p
}

// draw writes the picture of a run, in the format of path's extension.
func (p *Picture) draw(r *Run, path string) error {
	c := plot.New()
	c.Title.Text, c.Y.Label.Text = p.Title, p.Unit
	c.Legend.Top, c.Legend.Left, c.Legend.Padding = true, true, vg.Points(3) // a browser's letters may be wider
	width := vg.Points(14)
	for i, s := range p.Series {
		values := plotter.Values(s.Values(r))
		if len(values) != len(p.Groups) {
			return fmt.Errorf("%s: %d numbers for %d groups", s.Name, len(values), len(p.Groups))
		}
		for j, v := range values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				values[j] = 0 // nothing is drawn
			}
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return err
		}
		bars.Color, bars.LineStyle.Width = shades[i%len(shades)], 0
		bars.Offset = width * vg.Length(float64(i)-float64(len(p.Series)-1)/2)
		c.Add(bars)
		c.Legend.Add(s.Name, bars)
		c.Y.Max = max(c.Y.Max, 1)
	}
	c.Y.Min = 0
	c.Y.Max *= 1.25 // space for the legend
	c.NominalX(p.Groups...)
	c.X.Max += 0.3 // space for the last name
	return c.Save(22*vg.Centimeter, 9*vg.Centimeter, path)
}
